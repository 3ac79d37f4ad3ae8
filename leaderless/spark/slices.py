"""A range of the log as slices, each of which one task reads.

A slice is a share of a large file, or some small files, or slots that were in no file when the read was
planned. The last ones are looked for again when the slice is read, wherever compaction has moved them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from leaderless.spark.predicate import Predicate, Range
from leaderless.table.snapshot import FileRef, Snapshot

SLICE_BYTES = 32 << 20  # of a file as it is stored; in memory a task has a row group at a time


class Slice(NamedTuple):
    """What one task reads: slots `slots` of `files`, the row groups of share `share` of `shares`.

    Without files: those slots from wherever they are.
    """

    files: tuple[FileRef, ...]
    share: int
    shares: int
    slots: Range


def slices(found: Snapshot, predicate: Predicate) -> list[Slice]:
    """The slices of what is wanted of a snapshot, in the order of the log."""
    if predicate.empty:
        return []
    wanted = predicate.slot.meet(Range(last=found.version - 1))
    planned = [*_of_files(_wanted(found.files, predicate, wanted), predicate, wanted)]
    rest = wanted.meet(Range(first=found.files[-1].end if found.files else found.start))
    if rest.first <= rest.last:
        planned.append(Slice((), 0, 1, rest))
    return planned


def _wanted(files: Sequence[FileRef], predicate: Predicate, slots: Range) -> Iterator[FileRef]:
    for ref in files:
        if ref.end > slots.first and ref.base <= slots.last and predicate.may_hold(ref.keys):
            yield ref


def _of_files(files: Iterator[FileRef], predicate: Predicate, slots: Range) -> Iterator[Slice]:
    small: list[FileRef] = []
    for ref in files:
        shares = 1 if predicate.keys is not None else -(-(ref.size or 0) // SLICE_BYTES)
        if shares > 1:
            if small:
                yield Slice(tuple(small), 0, 1, slots)
                small = []
            yield from (Slice((ref,), share, shares, slots) for share in range(shares))
            continue
        if small and sum(each.size or 0 for each in (*small, ref)) > SLICE_BYTES:
            yield Slice(tuple(small), 0, 1, slots)
            small = []
        small.append(ref)
    if small:
        yield Slice(tuple(small), 0, 1, slots)


def places_of(count: int, share: int, shares: int) -> range:
    """The places of share `share` of `count` row groups; the shares have each place once."""
    return range(count * share // shares, count * (share + 1) // shares)


def slots_of(ref: FileRef) -> Range:
    """The slots of a file."""
    return Range(ref.base, ref.end - 1)
