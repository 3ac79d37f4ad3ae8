"""A consistent prefix of the log as a list of files, and the records that are in none yet.

The prefix is named by a number of batches: it has every record of the slots below it, and no other. The list of
merged files is read before the chain (`leaderless.core.headlog.chain`): a run moves into a merged file, and its
own file stays for a while. Where the index that was read is newer than the head, the prefix ends with its runs.

Files stay for the retention of readers after they were replaced (`leaderless.table.upkeep`). A reader that
needs longer gets `Gone`.
"""

import sys
from collections.abc import AsyncIterator, Collection
from functools import partial
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from leaderless.core.coordination import Json
from leaderless.core.headlog.index import Index, IndexEntry
from leaderless.core.headlog.records import Run, rest_of, run_of
from leaderless.errors import Unfit
from leaderless.store.calls import blocking, in_thread
from leaderless.store.chain import read_index, read_listed, read_tail, runs_below
from leaderless.store.files import Gone, files_of
from leaderless.store.format import shape_in
from leaderless.store.port import Store
from leaderless.store.values import Reference
from leaderless.table.manifest import Manifest, read_manifest
from leaderless.table.parquet import Reader
from leaderless.table.pieces import (
    Stretch,
    rare_collections,
    table_of_run,
    table_of_stretches,
)
from leaderless.table.runs import SUFFIX, directory_of, run_path
from leaderless.table.schema import COLUMNS, reference_of, rows_in

__all__ = ["FileRef", "Snapshot", "locations", "snapshot"]
RUN_ROWS = 8192  # at a time of a file that is read in the order of slots


class FileRef(NamedTuple):
    """A file of the log: what must be known to plan a read of it.

    `path`: its key in the store, of the log's own folder. `kind`: "parquet", or "json" for a run of a log
    without Parquet. `first` to `last`: its segments; `base` to `end` - 1: its slots. `size` in bytes, `rows`,
    and `keys`, the first and the last: None where only the file itself says them.
    """

    path: str
    kind: Literal["parquet", "json"]
    first: int
    last: int
    base: int
    end: int
    size: int | None = None
    rows: int | None = None
    keys: tuple[str, str] | None = None


class Snapshot(NamedTuple):
    """A prefix of the log.

    `version`: how many batches it has; slots from there on are not in it. Of `files` the last ones may hold
    such slots, if `version` was asked for: rows of `slot >= version` are to be passed over. `tail`: the
    records that are in no file, in the order of the log; without rows if it was not read (`has_tail`).
    `head_version`: of the head that was read.
    """

    version: int
    head_version: int
    files: list[FileRef]
    tail: pa.Table
    start: int = 0
    has_tail: bool = True


async def snapshot(
    store: Store,
    as_of: int | None = None,
    *,
    keys: Collection[str] | None = None,
    segments_max: int = sys.maxsize,
) -> Snapshot:
    """The log in `store` as it is now, or as it was when it had `as_of` batches.

    `keys`: the tail has these alone. `segments_max`: a tail of more segments is not read.

    Raises `Unfit`: the log has not so many batches, or `as_of` divides a run of JSON. Raises
    `NotInitialised`, `Broken`, and what the store says.
    """
    with rare_collections():
        manifest, _ = await read_manifest(store)
        index, head, segments = await read_tail(store, segments_max)
        files = await files_below(store, manifest, index)
        stretches = [Stretch(*held.value, held.modified) for held in segments or ()]
        if segments is not None:
            stretches.append(Stretch(*rest_of(head, index.end), None))
        tail = table_of_stretches(stretches, keys)
    version, start = max(head.end, index.end), manifest.start.slot
    found = Snapshot(version, head.version, files, tail, start, segments is not None)
    return found if as_of is None else cut_snapshot(found, as_of)


async def outline(store: Store, as_of: int | None = None) -> Snapshot:
    """The same without its tail, which is not read: for the plan of a read."""
    return await snapshot(store, as_of, segments_max=-1)


async def file_refs(store: Store) -> list[FileRef]:
    """The files of the log, without what is in none yet. Raises `LogError`."""
    manifest, _ = await read_manifest(store)
    return await files_below(store, manifest, await read_index(store))


async def files_below(store: Store, manifest: Manifest, index: Index) -> list[FileRef]:
    """The files of a log, by its list of merged files and an index that was read later."""
    files = [
        FileRef(path, "parquet", first, last, base, end, size, rows, keys)
        for path, _, first, last, base, end, rows, size, keys in manifest.files
    ]
    return files + [ref async for ref in _runs(store, index, manifest.sealed)]


async def _runs(store: Store, index: Index, first: int) -> AsyncIterator[FileRef]:
    """The runs of segments from `first` on, in their order."""
    parquet = (await shape_in(store)).sliced
    async for listed in runs_below(store, index.listed, first):
        path = run_path(listed.first, listed.last) if parquet else listed.register()
        kind: Literal["parquet", "json"] = "parquet" if parquet else "json"
        yield FileRef(path, kind, listed.first, listed.last, listed.base, listed.end)


def cut_snapshot(found: Snapshot, as_of: int) -> Snapshot:
    """What the first `as_of` batches of a snapshot hold. Raises `Unfit` as `snapshot`."""
    if not found.start <= as_of <= found.version:
        raise Unfit(
            f"there is no version {as_of} of it: they go from {found.start} to {found.version}"
        )
    files = [ref for ref in found.files if ref.base < as_of]
    for ref in files:
        if ref.kind == "json" and ref.end > as_of:
            text = f"version {as_of} divides the run of slots {ref.base} to {ref.end - 1}"
            raise Unfit(f"{text}, which is JSON: ask for {ref.base} or {ref.end}")
    tail = found.tail.filter(pc.less(found.tail["slot"], as_of))
    return found._replace(version=as_of, files=files, tail=tail)


async def locations(store: Store) -> list[str]:
    """Where other programs find the files that hold the log in `store` now: paths or URLs.

    The newest records are in none of them. Raises `Unfit` for a store without files, and as `snapshot`.
    """
    files = files_of(store)
    if files is None:
        raise Unfit(f"{store.url} has no files")
    refs = (await outline(store)).files
    paths = [ref.path for ref in refs if ref.kind == "parquet"]
    return await in_thread(lambda: [*map(files.location, paths)])


# ---------------------------------------------------------------- reading files


async def table_in(store: Store, ref: FileRef, version: int | None = None) -> pa.Table:
    """All rows of a file, of slots below `version` if it is given. Raises `Gone` when it was deleted."""
    if ref.kind == "json":
        return table_of_run(await read_listed(store, ref.path, run_of))

    def read() -> pa.Table:
        reader = reader_of(store, ref)
        groups = [reader.read([place]) for place in range(reader.row_groups)]
        return pa.concat_tables([COLUMNS.empty_table(), *groups])

    table = await blocking(read)
    is_whole = version is None or ref.end <= version
    return table if is_whole else table.filter(pc.less(table["slot"], version))


def reader_of(store: Store, ref: FileRef) -> Reader:
    """A reader of a Parquet file; its calls block. Raises `Gone`, `OtherFormat`, `Broken`."""
    files = files_of(store)
    if files is None or ref.kind != "parquet":
        raise Unfit(f"{ref.path} is no Parquet file")
    return Reader(files, ref.path, size=ref.size)


async def runs_of(store: Store, ref: FileRef) -> AsyncIterator[Run]:
    """What a file has, in the order of slots, `RUN_ROWS` at a time; the file is in memory. Raises `Gone`."""
    table = await table_in(store, ref)
    order = pc.sort_indices(table, sort_keys=[("slot", "ascending"), ("offset", "ascending")])
    for at in range(0, len(order), RUN_ROWS):
        run = Run(ref.base, ref.end, {}, {}, {}, {})
        for row in rows_in(table.take(order[at : at + RUN_ROWS])):
            run.keys.setdefault(row.key, (row.offset, []))[1].append(row.message)
            if row.writer is not None and row.seq is not None:
                run.writers[row.writer] = row.seq, {}
            known = run.times.setdefault(row.key, [])
            time = None if row.appended_at is None else round(row.appended_at * 1e6) // 1000
            if time is not None and (not known or known[-1][1] != time):
                known.append((row.offset, time))
        yield run


def page_in(store: Store, listed: IndexEntry) -> dict[str, Json]:
    """What the file of a run that is in no page says of it (`leaderless.table.runs.directory_of`)."""
    files = files_of(store)
    assert files is not None, "a log of files has files"
    return directory_of(Reader(files, run_path(listed.first, listed.last)))


async def file_references(store: Store) -> AsyncIterator[Reference]:
    """Every reference to a large value in the log, and in files that have left it and still stand.

    A query that was planned before may read the latter. Raises `LogError`.
    """
    found = await snapshot(store)
    manifest, _ = await read_manifest(store)  # later: a file that left meanwhile is in this one
    left = [each.path for each in manifest.replaced if each.path.endswith(SUFFIX)]
    reads = [partial(_texts_in, store, ref.path, ref.size) for ref in found.files]
    reads += [partial(_texts_if_there, store, path) for path in left]
    texts = _texts(found.tail)
    for read in reads:
        texts += await in_thread(read)
    for reference in filter(None, map(reference_of, texts)):
        yield reference


def _texts(table: pa.Table) -> list[str]:
    """What stands in the column `message` of a table."""
    texts: list[str] = table["message"].drop_null().to_pylist()
    return texts


def _texts_in(store: Store, path: str, size: int | None = None) -> list[str]:
    """The same of a file; row groups without any are not read."""
    files = files_of(store)
    assert files is not None, "a log of files has files"
    reader = Reader(files, path, size=size)
    texts: list[str] = []
    for place in range(reader.row_groups):
        if reader.has(place, "message"):
            texts += _texts(reader.read([place], ["message"]))
    return texts


def _texts_if_there(store: Store, path: str) -> list[str]:
    try:
        return _texts_in(store, path)
    except Gone:
        return []
