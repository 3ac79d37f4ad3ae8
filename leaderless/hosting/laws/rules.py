"""What must hold in any state of a log: for each change (`laws`), and for a check of a whole log (`fsck`).

A rule tells `Broken` what is wrong. `raising` makes an exception of it.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise

from leaderless.core.coordination import InvariantBroken
from leaderless.core.headlog.index import IndexEntry, Page, Part, new_page, part_of
from leaderless.core.headlog.records import Run, Segment, Writers
from leaderless.core.lease import Lease
from leaderless.core.messages import Block
from leaderless.hosting.members import Tenure

Broken = Callable[[str, str], object]  # is told an invariant, and what is wrong
INDEXED = "IndexMatchesRuns"


def raising(invariant: str, text: str) -> None:
    """A `Broken` that ends whatever breaks a rule."""
    raise InvariantBroken(f"{invariant}: {text}")


def require(holds: bool, invariant: str, *what: object) -> None:
    """Raise `InvariantBroken` unless it holds."""
    if not holds:
        raising(invariant, " ".join(map(str, what)))


class Order:
    """The order of the log up to some slot: where each key ends, and the newest batch of each writer.

    `blind`: it begins in the middle of a log, so the first sight of a key, or of a writer, says where it is.
    """

    def __init__(self, ends: dict[str, int] | None = None, *, blind: bool = False) -> None:
        self.ends: dict[str, int] = ends or {}
        self.newest: dict[str, int] = {}
        self.blind = blind

    def take_blocks(self, blocks: Iterable[tuple[str, int, int]], broken: Broken) -> None:
        """Key, first offset and number of messages of the blocks that come next."""
        for key, first, count in blocks:
            end = self.ends.get(key, first if self.blind else 0)
            if first != end:
                broken("OffsetsDense", f"key {key!r} has offset {first} after {end - 1}")
            self.ends[key] = first + count

    def take_batches(self, batches: Iterable[tuple[str, int]], broken: Broken) -> None:
        """Writer and number of the batches that come next."""
        for writer, seq in batches:
            newest = self.newest.get(writer, -1)
            if seq <= newest:
                broken("AckedExactlyOnce", f"batch {seq} of {writer} after its batch {newest}")
            self.newest[writer] = seq


# ---------------------------------------------------------------- runs, pages, and the index


def merged(segments: Sequence[Segment]) -> Run:
    """The run of these segments; see `leaderless.core.headlog.records.merge`."""
    keys: dict[str, Block] = {}
    commits: dict[str, int] = {}
    writers: Writers = {}
    for writer, seq, appends, committed in chain(*(each.entries for each in segments)):
        writers[writer] = seq, {key: first for key, (first, _) in appends.items()}
        for key, (first, messages) in appends.items():
            keys.setdefault(key, (first, []))[1].extend(messages)
        for key, offset in committed.items():
            commits[key] = max(offset, commits.get(key, 0))
    return Run(segments[0].base, slot_after(segments[-1]), keys, commits, writers)


def slot_after(segment: Segment) -> int:
    """The slot after a segment."""
    return segment.base + len(segment.entries)


def require_order(listed: Sequence[IndexEntry], first: int, base: int, broken: Broken) -> None:
    """Runs and pages follow each other without a gap, from segment `first` and slot `base` on."""
    before = IndexEntry(0, 0, first - 1, 0, base, 1, 0)
    for one, other in pairwise((before, *listed)):
        if (one.last + 1, one.end) != (other.first, other.base):
            text = f"after segment {one.last} and slot {one.end - 1} comes {other.register()}, "
            broken(INDEXED, f"{text}of slot {other.base}")


def require_slots(listed: IndexEntry, part: Part, broken: Broken) -> None:
    """A run, or a part of a page, has the slots that the index says."""
    if (part.base, part.end) != (listed.base, listed.end):
        text = f"it has slots {part.base} to {part.end - 1}, and the index says {listed.base} to "
        broken(INDEXED, f"{text}{listed.end - 1}")


def pages_of(children: Sequence[tuple[IndexEntry, Sequence[Part]]], parts: int) -> list[Page]:
    """What the parts of the page above these children hold; see `leaderless.core.headlog.index.distribute`."""
    pages = [new_page([listed for listed, _ in children]) for _ in range(parts)]
    for place, (_, sources) in enumerate(children):
        for source in sources:
            for key, first, end in source.ranges():
                record = pages[part_of(key, parts)].keys.setdefault(key, [first])
                record += [place, end]
            for key, offset in source.commits.items():
                commits = pages[part_of(key, parts)].commits
                commits[key] = max(offset, commits.get(key, 0))
            for writer, newest in source.writers.items():
                pages[part_of(writer, parts)].writers[writer] = newest
    return pages


# ---------------------------------------------------------------- claims


def require_claimed(
    epoch: int, register: str, claim: Lease | Tenure | None, broken: Broken
) -> None:
    """Something was changed in an epoch that somebody has claimed. A new claim has the next epoch."""
    claimed = claim.epoch if claim else 0
    if epoch > claimed:
        text = f"it was changed in epoch {epoch}, and {register} has had {claimed} only"
        broken("OneLiveClaim", text)
