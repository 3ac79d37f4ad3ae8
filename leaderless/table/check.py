"""What the files of a log say of themselves, for `leaderless.upkeep.fsck`.

A file is read a row group at a time, and of its rows only what is asked for is kept.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from leaderless.core.coordination import Json
from leaderless.core.headlog.index import decode_part
from leaderless.errors import Broken, LogError
from leaderless.store.calls import in_thread
from leaderless.store.files import files_of
from leaderless.store.names import span_of_run
from leaderless.store.port import Store
from leaderless.store.values import Reference, value_of
from leaderless.table.manifest import Start, read_manifest
from leaderless.table.parquet import Reader, sensible
from leaderless.table.retention import read_starts
from leaderless.table.runs import FOLDER as RUNS
from leaderless.table.runs import directory_of, run_path
from leaderless.table.schema import Row, rows_in
from leaderless.table.snapshot import FileRef, file_refs, reader_of

# A key, the first offset, and the messages, or as many times None.
Block = tuple[str, int, list[Json]]


class FileContent(NamedTuple):
    """What a file has: blocks in their order, the writer and the number of each batch, and large values."""

    blocks: list[Block]
    batches: list[tuple[str, int]]
    references: list[Reference]


async def log_start(store: Store) -> tuple[Start, dict[str, int]]:
    """Where a log of files starts, and the first offsets of keys that have lost records. Raises `LogError`."""
    manifest, _ = await read_manifest(store)
    files = files_of(store)
    assert files is not None, "a log of files has files"
    return manifest.start, await in_thread(partial(read_starts, files, manifest))


async def contents(
    store: Store, needed: Callable[[FileRef], bool]
) -> AsyncIterator[tuple[FileRef, FileContent | LogError]]:
    """Each file of the log with what it has, or with what is wrong with it.

    Files of runs that no index names come last, as of no slots: a worker that was cut off left them, or an
    earlier log. `needed`: whether the messages of a file are; of another one only their number is told.
    Raises `LogError` when the list of files cannot be read.
    """
    listed = await file_refs(store)
    for ref in [*listed, *await in_thread(partial(_unlisted, store, listed))]:
        try:
            yield ref, await in_thread(partial(_content, store, ref, needed(ref)))
        except LogError as error:
            yield ref, error


def _unlisted(store: Store, listed: Sequence[FileRef]) -> list[FileRef]:
    files, sealed = files_of(store), listed[-1].last + 1 if listed else 0
    assert files is not None, "a log of files has files"
    runs = filter(None, (span_of_run(each.key) for each in files.list_files(RUNS)))
    return [FileRef(run_path(*span), "parquet", *span, 0, 0) for span in runs if span[0] >= sealed]


def _content(store: Store, ref: FileRef, with_messages: bool) -> FileContent:
    """What is in a file, which must be what the list of files says of it. Raises `Broken`."""
    reader = reader_of(store, ref)
    slots = (ref.base, ref.end) if ref.end else reader.spans[2:]
    if reader.spans != (ref.first, ref.last, *slots):
        raise Broken(f"it is of segments and slots {reader.spans}")
    if ref.path == run_path(ref.first, ref.last):
        sensible(ref.path, lambda: decode_part(directory_of(reader)))
    if ref.rows is not None and ref.rows != reader.rows:
        raise Broken(f"it has {reader.rows} rows, not {ref.rows}")
    blocks: list[Block] = []
    batches: dict[int, tuple[str, int]] = {}
    references: list[Reference] = []
    last = "", -1
    for key, offset, message, writer, seq, slot, _ in _rows_of(reader):
        if writer is None or seq is None or slot is None:
            raise Broken(f"offset {offset} of key {key!r} has no batch")
        if not blocks or (key, offset - 1) != last:
            blocks.append((key, offset, []))
        last = key, offset
        blocks[-1][2].append(message if with_messages else None)
        if isinstance(found := value_of(message), Reference):
            references.append(found)
        batches[slot] = writer, seq
    return FileContent(blocks, [batches[slot] for slot in sorted(batches)], references)


def _rows_of(reader: Reader) -> Iterator[Row]:
    """The rows of a file. Raises `Broken` for rows that are not in order, or against the footer."""
    slots, last = range(*reader.spans[2:]), ("", -1)
    for group in reader.groups():
        for row in rows_in(reader.read([group.place])):
            if row.slot not in slots or not group.has(row.key, row.offset, row.slot):
                text = f"offset {row.offset} of key {row.key!r} has slot {row.slot}"
                raise Broken(f"{text}, against what the footer says")
            if (row.key, row.offset) < last:
                raise Broken("its rows are not in the order of key and offset")
            last = row.key, row.offset
            yield row
