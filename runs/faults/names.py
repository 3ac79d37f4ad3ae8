"""What faults are called: in options, in histories, in pictures and in verdicts.

Everything that names, shades or joins faults uses these tables. Operations of the first three are called
as Jepsen's are [jepsen.nemesis.combined].
"""

from typing import NamedTuple

FAULTS = ("partition", "kill", "pause", "loss", "duplicate", "slow", "store", "fence")


class Deed(NamedTuple):
    """What an operation of the nemesis does: a fault begins, or it ends."""

    fault: str
    begins: bool


_NAMED = {"kill": ("kill", "start"), "pause": ("pause", "resume")}
# fault -> its operation (`f`) that begins it, and the one that ends it.
OPERATIONS = {fault: _NAMED.get(fault, (f"start-{fault}", f"stop-{fault}")) for fault in FAULTS}
# f -> what it does.
DEEDS = {
    f: Deed(fault, begins)
    for fault, pair in OPERATIONS.items()
    for f, begins in zip(pair, (True, False), strict=True)
}

_FOREIGN = {"bump-clock": Deed("clock", True), "reset-clock": Deed("clock", False)}


def deed_of(f: str) -> Deed | None:
    """What an operation of a nemesis does, also one that only Jepsen's have; None: nothing known."""
    if known := DEEDS.get(f) or _FOREIGN.get(f):
        return known
    action, _, fault = f.partition("-")
    return Deed(fault, action == "start") if fault and action in ("start", "stop") else None
