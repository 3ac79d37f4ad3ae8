"""Writes and reads one Parquet file of the log; its columns are in `leaderless.table.schema`.

A reader needs a row group or two of a file, never the whole: rows are in order, and the statistics of each
group say which keys and offsets it has. Groups are about as large as the answer to a poll.

What is cut off or makes no sense is no answer, and is asked for again; `leaderless.store.calls` does the same
for objects. These calls block.
"""

import io
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, TypeVar

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from leaderless.core.coordination import Misfit
from leaderless.core.shape import LOG_FORMAT
from leaderless.errors import Broken, OtherFormat
from leaderless.store.calls import DAMAGED_MAX
from leaderless.store.files import Files
from leaderless.store.port import OutcomeUnknown
from leaderless.table.schema import COLUMNS, FORMAT_NAME, RUN_NAME

T = TypeVar("T")
Kinds = tuple[type[Exception], ...]
# OSError is pyarrow's for a damaged footer.
SENSELESS: Kinds = (ValueError, KeyError, TypeError, OSError, Misfit)
GROUP_BYTES = 2 << 20  # of a row group in memory
GROUP_ROWS = 32_768
PAGE_BYTES = 1 << 17  # about: a merge decodes a page of each file at once
PAGE_ROWS = 32  # a page has a multiple of them, however large they are
NUMBERS = ("offset", "seq", "slot", "appended_at")


class Written(NamedTuple):
    """What was written: rows, and the first and last key; None for a file without rows."""

    rows: int
    keys: tuple[str, str] | None


class FileWriter:
    """Writes tables, already in order among themselves, into one file; memory holds one row group.

    `run`: what the metadata say beside the rows. `content` grows with what is written.
    """

    def __init__(self, target: Path | BinaryIO | pa.NativeFile, run: Mapping[str, object]) -> None:
        packed = b64encode(zlib.compress(orjson.dumps(run)))  # any reader of Parquet passes over it
        names = {FORMAT_NAME: str(LOG_FORMAT).encode(), RUN_NAME: packed}
        self._file = pq.ParquetWriter(
            target,
            COLUMNS.with_metadata(names),
            compression="zstd",
            write_page_index=True,
            data_page_size=PAGE_BYTES,
            write_batch_size=PAGE_ROWS,
            use_dictionary=["key", "writer"],
            column_encoding=dict.fromkeys(NUMBERS, "DELTA_BINARY_PACKED"),
            sorting_columns=[pq.SortingColumn(0), pq.SortingColumn(1)],
        )
        self._waiting: list[pa.Table] = []
        self._bytes = self._rows = 0
        self.content: Written = Written(0, None)

    def __enter__(self) -> "FileWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.flush()
        self._file.close()

    def write(self, table: pa.Table) -> None:
        """Add the next rows."""
        while table.num_rows:
            rows = self._fitting(table)
            if not rows:
                self.flush()
                continue
            part, table = table.slice(0, rows), table.slice(rows)
            self._waiting.append(part)
            self._bytes += part.nbytes
            self._rows += rows

    def _fitting(self, table: pa.Table) -> int:
        """How many of the next rows go into this row group; an empty one takes a row of any size."""
        room = GROUP_BYTES - self._bytes
        rows: int = min(GROUP_ROWS - self._rows, table.num_rows * room // max(1, table.nbytes))
        rows = min(rows, table.num_rows)
        while rows > 0 and table.slice(0, rows).nbytes > room:
            rows //= 2
        return max(rows, 0 if self._rows else 1)

    def flush(self) -> None:
        """Write what waits as a row group."""
        if not self._rows:
            return
        group = pa.concat_tables(self._waiting)
        self._file.write_table(group, row_group_size=self._rows)
        keys = group.column("key")
        first = self.content.keys[0] if self.content.keys else keys[0].as_py()
        rows = self.content.rows + self._rows
        self.content = Written(rows, (first, keys[-1].as_py()))
        self._waiting, self._bytes, self._rows = [], 0, 0


def write_file(table: pa.Table, run: Mapping[str, object]) -> bytes:
    """A file of a table in order, in memory; `run` goes into the metadata."""
    target = pa.BufferOutputStream()
    with FileWriter(target, run) as writer:
        writer.write(table)
    return bytes(target.getvalue())


class Group(NamedTuple):
    """What the statistics say of one row group: its place, rows, and bounds, all of them inclusive."""

    place: int
    rows: int
    keys: tuple[str, str]
    offsets: tuple[int, int]
    slots: tuple[int, int]

    def may_hold(self, key: str, offset: int) -> bool:
        """Whether it may have a row of the key at or after an offset."""
        return self.keys[0] <= key <= self.keys[1] and offset <= self.offsets[1]


def sensible(path: str, read: Callable[[], T]) -> T:
    """What `read` makes of a file. Raises `Broken` when it can make nothing of it however often it is read."""
    try:
        return again(read, SENSELESS)
    except SENSELESS as error:
        raise Broken(f"{path} makes no sense: {error}") from error


def again(read: Callable[[], T], no_answer: Kinds = (OutcomeUnknown,)) -> T:
    """What `read` reads of a file. `no_answer`: the errors after which it reads again, such as a cut answer.

    Raises what the last attempt raises.
    """
    for _ in range(DAMAGED_MAX - 1):
        with suppress(*no_answer):
            return read()
    return read()


class RangeReader(io.RawIOBase):
    """A file of a store as Python's file; `bytes_read` counts what came.

    A range without a clear answer is asked for again.
    """

    def __init__(self, files: Files, path: str, size: int | None = None) -> None:
        super().__init__()
        self._files = files
        self._path = path
        self._size = files.size(path) if size is None else size
        self._at = 0
        self.bytes_read: int = 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; returns where the next read begins."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Up to `size` bytes, from the store in one range. Raises as `Files.read_range`."""
        left = max(0, self._size - self._at)
        length = left if size is None or size < 0 else min(size, left)
        if not length:
            return b""
        content = again(partial(self._files.read_range, self._path, self._at, length))
        self._at += len(content)
        self.bytes_read += len(content)
        return content


class Reader:
    """An open file. Raises `Gone` when it was deleted, `OtherFormat` when it is none of ours.

    Raises `Broken` when its footer makes no sense however often it is read, and `OutcomeUnknown`.
    `metadata`: of an earlier reader of the same file, which saves the requests for its footer.
    """

    def __init__(
        self,
        files: Files,
        path: str,
        *,
        size: int | None = None,
        metadata: pq.FileMetaData | None = None,
    ) -> None:
        self.path = path
        self._source = RangeReader(files, path, size)
        self._file = sensible(path, partial(self._opened, metadata))
        self.metadata: pq.FileMetaData = self._file.metadata
        _require_format(path, self.metadata.metadata or {})

    def _opened(self, metadata: pq.FileMetaData | None) -> pq.ParquetFile:
        source = pa.PythonFile(self._source, "r")
        return pq.ParquetFile(source, metadata=metadata, pre_buffer=True)

    @property
    def bytes_read(self) -> int:
        """How many bytes were read from the store."""
        return self._source.bytes_read

    @property
    def run(self) -> dict[str, Any]:
        """What the file says beside its rows."""
        packed = self.metadata.metadata[RUN_NAME]
        found: dict[str, Any] = orjson.loads(zlib.decompress(b64decode(packed)))
        return found

    @property
    def row_groups(self) -> int:
        """How many row groups there are."""
        return int(self.metadata.num_row_groups)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.metadata.num_rows)

    def groups(self) -> list[Group]:
        """The row groups in their order."""
        return [_group(self.metadata, place) for place in range(self.row_groups)]

    def has(self, place: int, column: str) -> bool:
        """Whether a row group has a value in a column, by its statistics."""
        group = self.metadata.row_group(place)
        chunk = group.column(COLUMNS.get_field_index(column))
        return bool(chunk.statistics.null_count < group.num_rows)

    def read(
        self, places: Sequence[int] | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The rows of some row groups, or of all."""
        wanted = range(self.row_groups) if places is None else places
        names = columns and [*columns]
        table = sensible(self.path, lambda: self._file.read_row_groups([*wanted], columns=names))
        # Without columns pyarrow would lose how many rows there are.
        return table.replace_schema_metadata(None) if table.num_columns else table

    def pieces(self, share: int) -> Iterator[pa.Table]:
        """All rows in their order, a part of a row group at a time: `share` of them have all its rows.

        Raises `Broken` for a damaged answer, without asking again.
        """
        try:
            for place in range(self.row_groups):
                rows = -(-self.metadata.row_group(place).num_rows // share)
                for batch in self._file.iter_batches(rows, row_groups=[place]):
                    yield pa.Table.from_batches([batch]).replace_schema_metadata(None)
        except SENSELESS as error:
            raise Broken(f"{self.path} makes no sense: {error}") from error


def _require_format(path: str, names: dict[bytes, bytes]) -> None:
    if FORMAT_NAME not in names or RUN_NAME not in names:
        raise OtherFormat(f"{path} is a Parquet file of another program")
    if names[FORMAT_NAME] != str(LOG_FORMAT).encode():
        number = names[FORMAT_NAME].decode(errors="replace")
        raise OtherFormat(f"{path} has format {number}, and this version knows {LOG_FORMAT}")


def _group(metadata: pq.FileMetaData, place: int) -> Group:
    group = metadata.row_group(place)
    bounds = {}
    for name in ("key", "offset", "slot"):
        statistics = group.column(COLUMNS.get_field_index(name)).statistics
        bounds[name] = statistics.min, statistics.max
    return Group(place, group.num_rows, bounds["key"], bounds["offset"], bounds["slot"])


def groups_for(
    groups: Iterable[Group],
    keys: Collection[str] | None = None,
    offsets: tuple[int, int] | None = None,
    slots: tuple[int, int] | None = None,
) -> list[int]:
    """The places of the row groups that may have rows of some keys, offsets and slots; bounds are
    inclusive."""

    def may(group: Group) -> bool:
        first, last = group.keys
        return (
            (keys is None or any(first <= key <= last for key in keys))
            and _meet(offsets, group.offsets)
            and _meet(slots, group.slots)
        )

    return [group.place for group in groups if may(group)]


def _meet(wanted: tuple[int, int] | None, found: tuple[int, int]) -> bool:
    return wanted is None or (wanted[0] <= found[1] and found[0] <= wanted[1])


def rows_from(table: pa.Table, key: str, offset: int, rows: int) -> pa.Table:
    """Up to `rows` rows of a key in a table from the first one at or after `offset`."""
    wanted = pc.and_(pc.equal(table["key"], key), pc.greater_equal(table["offset"], offset))
    return table.filter(wanted).slice(0, rows)
