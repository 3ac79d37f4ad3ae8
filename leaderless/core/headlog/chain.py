"""The chain that holds the log: head, segments below it, index, and the runs that the index names.

A batch moves from the head to a segment, and from there to a run. It is in the new place before it leaves the
old one: the head lets go of what a segment holds, and a segment is deleted when the index names its run. Runs
stay, those below a page perhaps in other files. Whoever reads the chain in this order misses no batch, whatever
others do between two reads:

1. an index, which may be old: a hint how much of the log is in runs;
2. the head;
3. the segments from the hint's last one to the head;
4. the index again, if one of these is gone, and then the segments that it does not have;
5. runs and pages of the newest index that was read.

Proof. A batch below the end of the head that was read is in its tail, or in a segment that was written before.
If the hint has that segment, so has each later index: it is in a run. If not, the segment is read, or it is
gone. One that is gone was named by the index before it was deleted, so an index that is read later has it. Each
round of 4 has more segments than the one before, and none beyond the head counts, so it ends.

An index that was read after the head may name runs of batches that the head has in its tail, or does not have
yet. A reader must not count those twice.
"""

from collections.abc import Generator, Sequence
from typing import Any, TypeVar

from leaderless.core.coordination import InvariantBroken
from leaderless.core.headlog.archive import windows
from leaderless.core.headlog.index import Index
from leaderless.core.headlog.records import segment_name

GONE = "it is gone, and segments of it are there"  # of a head
TORN = "one of them is older than the other, as in a copy that was made while others appended"
S = TypeVar("S")
Sealed = Generator[Sequence[int | None], list[Any], tuple[Index | None, list[S]]]


def sealed_below(first: int, end: int, at_once: int) -> Sealed[S]:
    """Find the segments from `first` to `end` - 1 that are in no run; also return the index, if it was needed.

    Yields numbers of segments, up to `at_once`, and is sent these, None for one that is gone. Yields a lone
    None, and is sent the index as it is then. Raises `InvariantBroken` when a gone segment is in no run.
    """
    index: Any = None
    while True:
        found: list[S] = []
        for some in windows(range(first, end), at_once):
            parts = yield some
            if None in parts:
                gone = some[parts.index(None)]
                break
            found += parts
        else:
            return index, found
        [index] = yield (None,)
        if index.sealed <= first:
            text = f"{segment_name(gone)} is gone, and in no run: {TORN}"
            raise InvariantBroken(f"CommittedReadable: {text}")
        first = index.sealed
