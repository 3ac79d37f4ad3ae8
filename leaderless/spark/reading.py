"""Reads slices of a log as Arrow: what a task does. Memory holds a row group, or the end of the log."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

import anyio
import pyarrow as pa
from anyio.from_thread import BlockingPortal, start_blocking_portal

from leaderless.core.headlog.records import HEAD
from leaderless.errors import Definite, NotInitialised
from leaderless.hosting.place import require_log
from leaderless.spark.columns import needed, shown
from leaderless.spark.predicate import ALL, Predicate, Range
from leaderless.spark.settings import Place
from leaderless.spark.slices import Slice, places_of, slots_of
from leaderless.store.calls import patiently
from leaderless.store.files import Gone
from leaderless.store.port import Store
from leaderless.table.memory import rare_collections
from leaderless.table.merge import ORDER
from leaderless.table.parquet import groups_for
from leaderless.table.snapshot import (
    FileRef,
    Snapshot,
    outline,
    reader_of,
    snapshot,
    table_in,
)

T = TypeVar("T")


def snapshot_of(place: Place, as_of: int | None = None) -> Snapshot:
    """The log of `place` as it is, or as it was when it had `as_of` batches, without its tail.

    Raises `LogError`.
    """
    return look(place, partial(outline, as_of=as_of))


def look(place: Place, take: Callable[[Store], Awaitable[T]]) -> T:
    """What `take` makes of the store of a place with a log. Raises `LogError`."""

    async def found(store: Store) -> T:
        await _require_readable(store)
        return await take(store)

    return anyio.run(with_store, place, found)


async def _require_readable(store: Store) -> None:
    """Return if there is a log, of the library or of nodes. Raises `NotInitialised` and others."""
    try:
        await require_log(store)
    except NotInitialised:
        if await patiently(lambda: store.read(HEAD)) is None:
            raise


def wanted_rows(
    place: Place, part: Slice, predicate: Predicate, columns: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The wanted rows of a slice, columns `columns`, ordered by key and offset in each file.

    Raises `Definite` when a file was replaced, and deleted, since the read was planned.
    """
    wanted = replace(predicate, slot=ALL)  # the slice says which slots
    with rare_collections(), start_blocking_portal() as portal:
        store = portal.call(_opened, place)
        source = _Source(portal, store, wanted, needed(columns, wanted))
        try:
            for table in source.tables(part):
                found = wanted.select(table)
                if found.num_rows:
                    yield from portal.call(shown, store, found, columns).to_batches()
        except Gone as gone:
            text = "it took longer than compaction keeps files for readers; read again"
            raise Definite(f"{gone}: {text}") from gone
        finally:
            portal.call(store.aclose)


async def _opened(place: Place) -> Store:
    return place.store()


class _Source(NamedTuple):
    """Where one task reads: a superset of the rows that `predicate` wants, `columns` of them."""

    portal: BlockingPortal
    store: Store
    predicate: Predicate
    columns: Sequence[str]

    def tables(self, part: Slice) -> Iterator[pa.Table]:
        """The rows of a slice, exactly of its slots."""
        if not part.files:
            keys = self.predicate.keys
            for table in self.portal.call(_of_slots, self.store, part.slots, keys):
                yield table.select([*self.columns])
        for ref in part.files:
            for table in self._of_file(ref, part):
                yield in_slots(table, ref, part.slots)

    def _of_file(self, ref: FileRef, part: Slice) -> Iterator[pa.Table]:
        if ref.kind == "json":
            yield self.portal.call(table_in, self.store, ref).select([*self.columns])
            return
        is_whole = part.slots.covers(slots_of(ref))
        columns = self.columns if is_whole else [*{*self.columns, "slot"}]
        reader = reader_of(self.store, ref)
        groups = reader.groups()
        mine = [groups[at] for at in places_of(len(groups), part.share, part.shares)]
        for place in groups_for(mine, self.predicate.keys, self.predicate.offset, part.slots):
            if not self.predicate.large or reader.has(place, "message"):
                yield reader.read([place], columns)


async def _of_slots(store: Store, slots: Range, keys: frozenset[str] | None) -> list[pa.Table]:
    """What a range of slots has of some keys, or of all, wherever it is now; files are read whole.

    Raises `Definite` when a retention has deleted some of it.
    """
    found = await snapshot(store, slots.last + 1, keys=keys)
    if slots.first < found.start:
        text = f"a retention has deleted batches {slots.first} to {found.start - 1}"
        raise Definite(f"{text} since this read was planned: read again")
    tables = [
        in_slots(await table_in(store, ref), ref, slots)
        for ref in found.files
        if ref.end > slots.first
    ]
    return [*tables, Predicate(slot=slots).select(found.tail).sort_by(ORDER)]


def in_slots(table: pa.Table, ref: FileRef, slots: Range) -> pa.Table:
    """The rows of a file, `table`, that are in a range of slots. Raises `Definite` for a divided JSON run."""
    held = slots_of(ref)
    if slots.covers(held):
        return table
    if ref.kind == "json":
        text = (
            f"a run of JSON has slots {held.first} to {held.last}, and not which record has which"
        )
        raise Definite(f"{text}: read again, or make the log with runs of Parquet")
    return Predicate(slot=slots).select(table)


async def with_store(place: Place, take: Callable[[Store], Awaitable[T]]) -> T:
    """What `take` makes of the store of a place, which is closed then."""
    store = place.store()
    try:
        return await take(store)
    finally:
        await store.aclose()
