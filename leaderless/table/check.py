"""What the files of a log say of themselves, for `leaderless.library.fsck`."""

from collections.abc import AsyncIterator
from functools import partial
from typing import NamedTuple

from leaderless.errors import Broken, LogError
from leaderless.store.calls import in_thread
from leaderless.store.files import files_of
from leaderless.store.port import Store
from leaderless.table.manifest import Start, read_manifest
from leaderless.table.retention import read_starts
from leaderless.table.schema import Row, rows_in
from leaderless.table.snapshot import FileRef, file_refs, reader_of


class Origin(NamedTuple):
    """Where the log starts, and the first offsets of keys that have lost records."""

    start: Start
    offsets: dict[str, int]


async def origin_of(store: Store) -> Origin:
    """Where a log of files starts. Raises `LogError`."""
    manifest, _ = await read_manifest(store)
    files = files_of(store)
    assert files is not None, "a log of files has files"
    return Origin(manifest.start, await in_thread(partial(read_starts, files, manifest)))


async def rows_of_files(store: Store) -> AsyncIterator[tuple[FileRef, list[Row] | LogError]]:
    """Each file of the log with its rows, or with what is wrong with it.

    Raises `LogError` when the list of files cannot be read.
    """
    for ref in await file_refs(store):
        try:
            yield ref, await in_thread(partial(_rows, store, ref))
        except LogError as error:
            yield ref, error


def _rows(store: Store, ref: FileRef) -> list[Row]:
    """The rows of a file, which must be what the list of files says of it. Raises `Broken`."""
    reader = reader_of(store, ref)
    rows = [*rows_in(reader.read())]
    spans = reader.run["first"], reader.run["last"], reader.run["base"], reader.run["end"]
    if spans != (ref.first, ref.last, ref.base, ref.end):
        raise Broken(f"it is of segments and slots {spans}")
    if ref.rows is not None and ref.rows != len(rows):
        raise Broken(f"it has {len(rows)} rows, not {ref.rows}")
    places = [(row.key, row.offset) for row in rows]
    if places != sorted(places):
        raise Broken("its rows are not in the order of key and offset")
    return rows
