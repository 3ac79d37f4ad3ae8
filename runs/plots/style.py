"""The one table of colours, and the templates that use it.

What a colour means, it means in every picture: plots of a run, pages, notebooks, timelines, diagrams.
Each colour of the table has a contrast of at least 3 on white and on the pages' dark ground [WCAG 1.4.11],
so that one picture serves both, and looks different from those beside it. A surface that needs another
strength asks `tint`. This is the only place of the project in which a colour of a fault, an outcome, a link,
a strategy or a quantile is written.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_BLUE, _RED, _AMBER, _ORANGE = "#2f83c5", "#d0452b", "#bd8500", "#d4772a"
_GREEN, _PURPLE, _TEAL, _PINK = "#1d9a74", "#8a6fa8", "#287478", "#d65b9d"
_GREY, _BROWN, _INDIGO, _VIOLET = "#858b94", "#8f7452", "#5b78d6", "#b05bd6"

INK = "#1f2933"  # text and axes; an inline SVG has the page's own colour instead
PAPER = "#ffffff"
MUTED = "#66727f"
GRID = "#e4e8ec"
EDGE = "#b8c1ca"  # of boxes, and of lifelines
NEUTRAL = _GREY  # for what stands in the background
ALARM = _RED
MARKED = "#fff3b0"  # behind text that must not be overlooked
DARK = {  # the same for readers whose screen is dark
    "INK": "#dde1e6",
    "PAPER": "#1d2024",
    "MUTED": "#9aa3ad",
    "GRID": "#343a41",
    "EDGE": "#59626c",
    "MARKED": "#5c4a00",
}

OUTCOMES = {"ok": _BLUE, "fail": _RED, "info": _AMBER, "open": _GREY}
OUTCOME_MEANINGS = {
    "ok": "ok",
    "fail": "fail",
    "info": "info (outcome unknown)",
    "open": "open (never completed)",
}
FAULTS = {
    "partition": _AMBER,
    "kill": "#d0553f",
    "pause": _INDIGO,
    "loss": _VIOLET,
    "duplicate": _PINK,
    "slow": _TEAL,
    "store": "#3f9a64",
    "fence": _BROWN,
    "membership": _PURPLE,
    "mute": "#7d8a2e",
}
LINKS = {"node-store": _GREEN, "node-node": _ORANGE, "client": _BLUE}
ARROWS = LINKS | {"lost": _RED}  # of a Lamport diagram
ARROW_MEANINGS = {
    "client": "client and node",
    "node-node": "node and node",
    "node-store": "node and service",
    "lost": "lost",
}
CAUSES = {  # of server messages, in the order in which bars are stacked
    "commit": _BLUE,
    "conflict": _AMBER,
    "refresh": _GREEN,
    "hand-over": _PINK,
    "retry": _TEAL,
    "other": _GREY,
}
QUANTILES = {"p50": _BLUE, "p90": _GREEN, "p99": _ORANGE, "max": _GREY}
STANDINGS = {  # of groups that are compared
    "baseline": INK,
    "better": _BLUE,
    "worse": _ORANGE,
    "not ranked": _BROWN,
}
STRATEGIES = {
    "leaderless": _BLUE,
    "cas": _AMBER,
    "prefetch-sealed": _GREEN,
    "leader": _PURPLE,
    "prefetch": _RED,
}
SERIES = (_BLUE, _AMBER, _GREEN, _PINK, _TEAL, _BROWN, _VIOLET, _GREY)  # of what has no meaning yet
_OTHER_STRATEGIES = (_TEAL, _PINK, _GREY, _BROWN)
INVALID = " (invalid)"  # behind the name of a program that has an invalid run

# What no XML document may hold, not even escaped; nodes are free to send it.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def fault_colour(kind: str) -> str:
    """The colour of a kind of fault; grey for one that only Jepsen has."""
    return FAULTS.get(kind, NEUTRAL)


def tint(colour: str, strength: float, ground: str = PAPER) -> str:
    """A colour of the table mixed with its ground: 1 is the colour itself, 0 the ground."""
    pairs = zip(bytes.fromhex(colour[1:]), bytes.fromhex(ground[1:]), strict=True)
    return "#" + "".join(f"{round(strength * a + (1 - strength) * b):02x}" for a, b in pairs)


def on_both(colour: str, strength: float = 1) -> str:
    """Of CSS: a colour of the table, mixed with paper or with the dark ground, whichever is shown."""
    return f"light-dark({tint(colour, strength)}, {tint(colour, strength, DARK['PAPER'])})"


def ground(name: str) -> str:
    """Of CSS: `INK`, `PAPER` or another name of `DARK`, for a light and for a dark screen."""
    return f"light-dark({globals()[name]}, {DARK[name]})"


def strategies(names: Iterable[str]) -> list[str]:
    """Names in the order in which they are shown: known strategies first, others after them.

    Place and colour of a name are those that it has without `INVALID`.
    """
    shown = {name.removesuffix(INVALID): name for name in names}
    return [shown[name] for name in known_first(shown, STRATEGIES)]


def known_first(names: Iterable[str], table: Iterable[str]) -> list[str]:
    """Each name once: those of a table in its order, others after them."""
    there = set(names)
    known = [name for name in table if name in there]
    return known + sorted(there - set(known), key=natural)


def strategy_colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each strategy; those of the table have theirs in every picture."""
    shown = strategies(names)
    plain = [name.removesuffix(INVALID) for name in shown]
    colours = colours_of(plain, STRATEGIES, _OTHER_STRATEGIES)
    return {name: colours[known] for name, known in zip(shown, plain, strict=True)}


def colours_of(
    names: Sequence[str],
    known: Mapping[str, str] | None = None,
    palette: Sequence[str] = SERIES,
) -> dict[str, str]:
    """A colour for each name: that of `known`, or the next of the palette; the same for the same names."""
    free = [name for name in names if name not in (known or {})]
    found = {name: palette[number % len(palette)] for number, name in enumerate(free)}
    return {name: (known or {}).get(name) or found[name] for name in names}


def natural(name: str) -> tuple[int, float, str]:
    """A sort key: numbers by value, before words."""
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name


def cut(text: str, characters: int) -> str:
    """A text that is at most so long, with a sign where something is left out."""
    return text if len(text) <= characters else text[: characters - 1] + "…"


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(template: str, **values: Any) -> str:
    """Fill in a template beside this module; everything that comes from a run is escaped.

    The template sees this module's tables as `style`.
    """
    functions = ("tint", "on_both", "ground")
    tables = {
        name: value for name, value in globals().items() if name.isupper() or name in functions
    }
    text = _ENVIRONMENT.get_template(template).render(style=tables, **values)
    return _FORBIDDEN.sub("\ufffd", text)
