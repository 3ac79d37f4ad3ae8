"""One look for all pictures: colours that colour-blind readers can tell apart (Okabe & Ito)."""

INK = "#1f2933"
MUTED = "#66727f"
GRID = "#e4e8ec"

TYPE_COLOURS = {"ok": "#0072b2", "fail": "#cc3311", "info": "#e69f00"}
TYPE_MEANINGS = {"ok": "ok", "fail": "fail", "info": "info (outcome unknown)"}
SERIES_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
QUANTILE_COLOURS = ("#cc3311", "#e69f00", "#0072b2", "#0b3c5d")

FAULT_COLOURS = {
    "partition": "#e9dca0",
    "kill": "#e9a4a0",
    "pause": "#a0b1e9",
    "loss": "#c9b8a4",
    "duplicate": "#a9dcb9",
    "slow": "#d8b4e6",
    "store": "#9fdbe6",
    "fence": "#f0bd8e",
}
OTHER_FAULT_COLOUR = "#d0d0d0"


def fault_colour(name: str) -> str:
    """The shade of a fault; the same in every picture (the first three as Jepsen's readers know them)."""
    return FAULT_COLOURS.get(name, OTHER_FAULT_COLOUR)


# Messages, by who talks to whom.
LINK_COLOURS = {"client": "#0072b2", "node": "#b5651d", "service": "#009e73", "lost": "#cc3311"}
LINK_MEANINGS = {
    "client": "client and node",
    "node": "node and node",
    "service": "node and service",
    "lost": "lost",
}
