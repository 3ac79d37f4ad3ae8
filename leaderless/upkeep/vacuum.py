"""Deletes the objects of large values that no record refers to, and the passes of programs of long ago.

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
from itertools import chain
from typing import NamedTuple

from leaderless.core.coordination import Json
from leaderless.core.headlog.records import Head, Run, Segment, run_of
from leaderless.core.messages import Block
from leaderless.hosting.data import FOLDER, written_at
from leaderless.store.calls import delete_all, each_of, own_objects
from leaderless.store.chain import read_listed, read_tail, runs_below
from leaderless.store.names import PEERS
from leaderless.store.port import Store
from leaderless.store.values import Reference, reference_in

NewEpoch = Callable[[], Awaitable[Head | None]]
References = Callable[[Store], AsyncIterator[Reference]]


class Vacuumed(NamedTuple):
    """Objects of large values: those that were deleted, their bytes, and those that stay.

    `files`, `files_bytes`: Parquet files that were deleted, because larger ones had replaced them.
    `staged`, `staged_bytes`: objects of sinks that were deleted (`leaderless.upkeep.staged`).
    """

    deleted: int
    bytes: int
    kept: int
    files: int = 0
    files_bytes: int = 0
    staged: int = 0
    staged_bytes: int = 0


async def vacuum_values(
    store: Store, now: float, retention_s: float, new_epoch: NewEpoch, found: References
) -> Vacuumed:
    """Delete the objects without a record that are older than the retention; see the module.

    `new_epoch` raises the epoch of the log; it gives None where nothing was appended yet. `found` gives every
    reference in the log.
    """
    objects = [listed async for listed in own_objects(store, FOLDER)]
    old = [each for each in objects if now - written_at(each) > retention_s]
    # Without a head there is no epoch yet, and an append of the first one may be under way.
    head = await new_epoch() if old else None
    if head is None:
        return Vacuumed(0, 0, len(objects))
    referred = {reference.key async for reference in found(store)}
    orphans = [each for each in old if each.key not in referred]
    await delete_all(store, [each.key for each in orphans])
    size = sum(each.size or 0 for each in orphans)
    return Vacuumed(len(orphans), size, len(objects) - len(orphans))


async def vacuum_peers(store: Store, now: float, retention_s: float) -> None:
    """Delete what programs long ago proved themselves by; one that lives makes its own again."""
    passes = [listed async for listed in own_objects(store, PEERS)]
    await delete_all(store, [each.key for each in passes if now - written_at(each) > retention_s])


async def references(store: Store) -> AsyncIterator[Reference]:
    """Every reference to a large value in a log. Raises `Broken` for what nobody can have written."""
    index, head, segments = await read_tail(store)
    parts: list[Head | Segment] = [head, *(held.value for held in segments or ())]
    for part in parts:
        for each in references_in(part):
            yield each
    runs = [listed.register() async for listed in runs_below(store, index.listed)]
    async for _, run in each_of(runs, lambda name: read_listed(store, name, run_of)):
        for each in references_in(run):
            yield each


async def references_in_files(store: Store) -> AsyncIterator[Reference]:
    """The same in a log whose runs are files, by a snapshot of it."""
    from leaderless.table.snapshot import file_references

    async for each in file_references(store):
        yield each


def references_in(part: Head | Segment | Run) -> Iterator[Reference]:
    """Those in a part of the log (`leaderless.core.headlog.records`)."""
    yield from filter(None, map(reference_in, messages_in(part)))


def messages_in(part: Head | Segment | Run) -> Iterator[Json]:
    """Those in a part of the log."""
    return chain.from_iterable(messages for _, (_, messages) in blocks_in(part))


def blocks_in(part: Head | Segment | Run) -> Iterable[tuple[str, Block]]:
    """The blocks of messages in a part of the log, with their keys, in the order of slots."""
    match part:
        case Run(keys=blocks):
            return blocks.items()
        case Head(tail=entries) | Segment(entries=entries):
            return chain.from_iterable(entry.appends.items() for entry in entries)
