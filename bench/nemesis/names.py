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
