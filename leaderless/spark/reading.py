"""What a read of a log is divided into, and what a task does: it reads a slice of the log as Arrow.

A slice is a share of a large file, or some small files, or slots that were in no file when the read was
planned. The last ones are looked for again when the slice is read, wherever compaction has moved them. Memory
holds a row group, or the end of the log.

The columns are those of the files (`leaderless.table.schema`), but `message`: a value that stands in an object
of its own is read, and appears in `value` or `bytes`.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import NamedTuple, TypeVar

import anyio
import orjson
import pyarrow as pa
from anyio.from_thread import BlockingPortal, start_blocking_portal

from leaderless.core.headlog.records import HEAD
from leaderless.errors import Broken, Definite, NotInitialised
from leaderless.hosting.data import Data
from leaderless.hosting.place import require_log
from leaderless.spark.predicate import ALL, Predicate, Range
from leaderless.spark.settings import Place
from leaderless.store.calls import patiently
from leaderless.store.files import Gone
from leaderless.store.port import Store
from leaderless.store.values import Reference
from leaderless.table.merge import ORDER
from leaderless.table.pieces import rare_collections
from leaderless.table.schema import COLUMNS, reference_of
from leaderless.table.snapshot import (
    FileRef,
    Snapshot,
    outline,
    reader_of,
    snapshot,
    table_in,
)

T = TypeVar("T")
SCHEMA = pa.schema([pa.field(each.name, each.type) for each in COLUMNS if each.name != "message"])
CONTENT = ("value", "bytes")
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
    files = (
        ref
        for ref in found.files
        if ref.end > wanted.first and ref.base <= wanted.last and predicate.may_hold(ref.keys)
    )
    planned = [*_of_files(files, predicate, wanted)]
    rest = wanted.meet(Range(first=found.files[-1].end if found.files else found.start))
    if rest.first <= rest.last:
        planned.append(Slice((), 0, 1, rest))
    return planned


def _of_files(files: Iterator[FileRef], predicate: Predicate, slots: Range) -> Iterator[Slice]:
    small: list[FileRef] = []
    for ref in files:
        shares = 1 if predicate.keys is not None else -(-(ref.size or 0) // SLICE_BYTES)
        is_full = sum(each.size or 0 for each in (*small, ref)) > SLICE_BYTES
        if small and (shares > 1 or is_full):
            yield Slice(tuple(small), 0, 1, slots)
            small = []
        if shares > 1:
            yield from (Slice((ref,), share, shares, slots) for share in range(shares))
        else:
            small.append(ref)
    if small:
        yield Slice(tuple(small), 0, 1, slots)


def places_of(count: int, share: int, shares: int) -> range:
    """The places of share `share` of `count` row groups; the shares have each place once."""
    return range(count * share // shares, count * (share + 1) // shares)


def slots_of(ref: FileRef) -> Range:
    """The slots of a file."""
    return Range(ref.base, ref.end - 1)


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
    wanted = predicate._replace(slot=ALL)  # the slice says which slots
    with rare_collections(), start_blocking_portal() as portal:
        store = portal.call(place.store)
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
        wanted = self.predicate._replace(slot=part.slots)
        for place in places_of(len(groups), part.share, part.shares):
            is_wanted = wanted.may_have(groups[place])
            if is_wanted and (not wanted.large or reader.has(place, "message")):
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
    async with aclosing(place.store()) as store:
        return await take(store)


def needed(columns: pa.Schema, predicate: Predicate) -> list[str]:
    """The columns of a file that these columns and a predicate need."""
    wanted = {*map(str.lower, columns.names), *predicate.columns}
    if wanted & {*CONTENT}:
        wanted |= {"message"}
    return [each.name for each in COLUMNS if each.name in wanted]


async def shown(store: Store, table: pa.Table, columns: pa.Schema) -> pa.Table:
    """The columns `columns` of a table of files. Reads the objects of large values."""
    names = [name.lower() for name in columns.names]
    if {*names} & {*CONTENT} and table["message"].null_count < table.num_rows:
        table = await _with_values(store, table, names)
    table = table.select(names)
    return table.rename_columns(columns.names).cast(columns) if names else table


async def _with_values(store: Store, table: pa.Table, names: Sequence[str]) -> pa.Table:
    messages = table["message"].to_pylist()
    places = [place for place, message in enumerate(messages) if message is not None]
    references = [_reference(messages[place]) for place in places]
    data = Data(store, 0, 0)
    values = iter(await data.values([each.message for each in references if each]))
    columns = {name: table[name].to_pylist() for name in names if name in CONTENT}
    for place, reference in zip(places, references, strict=True):
        value = next(values) if reference else orjson.loads(messages[place])
        is_bytes = isinstance(value, bytes)
        if (column := "bytes" if is_bytes else "value") in columns:
            columns[column][place] = value if is_bytes else orjson.dumps(value).decode()
    for name, column in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, SCHEMA.field(name), pa.array(column, SCHEMA.field(name).type))
    return table


def _reference(message: str) -> Reference | None:
    """Where a value is; None for a message that is none of the library's, which is shown as it is."""
    try:
        return reference_of(message)
    except Broken:
        return None
