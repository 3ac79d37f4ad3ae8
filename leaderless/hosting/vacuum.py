"""Deletes the objects of large values that no record refers to.

Why it never deletes what a record refers to. Appends keep the law `DataBeforeReference`: a reference gets
into the log in an epoch that was known before its object was written, or never.

1. The vacuum lists the objects that the log can have written and that are older than the retention.
2. It raises the epoch of the log.
3. It reads every reference in the log.
4. It deletes the listed objects without one.

A reference that got into the log before (2) is found in (3). One that comes later is of an epoch that nobody
knew before (2). So its object was written after (2), and is not listed.

No clock is in this proof. A wrong one makes objects candidates too early or too late: then an append writes its
value again, or an orphan stays.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import NamedTuple

from leaderless.core.coordination import Json
from leaderless.core.headlog.records import HEAD, Head, Run, Segment, head_of, run_of, segment_of
from leaderless.core.messages import Block
from leaderless.hosting.data import FOLDER, written_at
from leaderless.store.calls import delete_all, own_keys, own_objects, read_value, side_by_side
from leaderless.store.port import Store
from leaderless.store.values import Reference, reference_in

READ_AT_ONCE = 16

NewEpoch = Callable[[], Awaitable[Head | None]]
References = Callable[[Store], AsyncIterator[Reference]]


class Swept(NamedTuple):
    """Objects of large values: those that were deleted, their bytes, and those that stay."""

    deleted: int
    bytes: int
    kept: int


async def vacuum_values(
    store: Store, now: float, retention_s: float, new_epoch: NewEpoch, found: References
) -> Swept:
    """Delete the objects without a record that are older than the retention; see the module.

    `new_epoch` raises the epoch of the log; it gives None where nothing was appended yet. `found` gives every
    reference in the log.
    """
    objects = [listed async for listed in own_objects(store, FOLDER)]
    old = [each for each in objects if now - written_at(each) > retention_s]
    # Without a head there is no epoch yet, and an append of the first one may be under way.
    head = await new_epoch() if old else None
    if head is None:
        return Swept(0, 0, len(objects))
    referred = {reference.key async for reference in found(store)}
    orphans = [each for each in old if each.key not in referred]
    await delete_all(store, [each.key for each in orphans])
    size = sum(each.size or 0 for each in orphans)
    return Swept(len(orphans), size, len(objects) - len(orphans))


async def references(store: Store) -> AsyncIterator[Reference]:
    """Every reference to a large value in a log. Raises `Broken` for what nobody can have written.

    An entry moves from the head to a segment, and from there to a run, and is in the new place before it
    leaves the old one. So to look there in this order misses none.
    """
    head = await read_value(store, HEAD, head_of)
    for each in references_in(head and head.value):
        yield each
    folders: list[tuple[str, Callable[[Json], Segment | Run | None]]]
    folders = [("segment", segment_of), ("run", run_of)]
    for folder, decode in folders:
        names = await own_keys(store, folder)
        for start in range(0, len(names), READ_AT_ONCE):
            some = names[start : start + READ_AT_ONCE]
            reads = [partial(read_value, store, name, decode) for name in some]
            for found in await side_by_side(reads):
                for each in references_in(found and found.value):
                    yield each


async def references_in_files(store: Store) -> AsyncIterator[Reference]:
    """The same in a log whose runs are files, by a snapshot of it."""
    from leaderless.table.snapshot import file_references

    async for each in file_references(store):
        yield each


def references_in(part: Head | Segment | Run | None) -> Iterator[Reference]:
    """Those in a part of the log (`leaderless.core.headlog.records`), None: in one that was deleted."""
    messages = chain.from_iterable(messages for _, messages in _blocks_of(part))
    yield from filter(None, map(reference_in, messages))


def _blocks_of(part: Head | Segment | Run | None) -> Iterable[Block]:
    match part:
        case Run():
            return part.keys.values()
        case Head(tail=entries) | Segment(entries=entries):
            return chain.from_iterable(entry.appends.values() for entry in entries)
        case None:
            return ()
