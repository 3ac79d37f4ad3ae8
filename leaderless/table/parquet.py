"""Writes and reads one Parquet file of the log; its columns are in `leaderless.table.schema`.

A reader needs a row group or two of a file, never the whole: rows are in order, and the statistics of each
group say which keys and offsets it has. Groups are about as large as the answer to a poll.

What is cut off or makes no sense is no answer, and is asked for again; `leaderless.store.calls` does the same
for objects. Nothing is decompressed before its size is known (`leaderless.table.pages`). A table that was read
has the columns of a log, in valid UTF-8. These calls block.
"""

import io
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self, TypeVar

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from leaderless.core.coordination import Misfit, count_of
from leaderless.core.decoding import exactly
from leaderless.core.shape import FORMATS, LOG_FORMAT
from leaderless.errors import Broken, OtherFormat
from leaderless.store.calls import DAMAGED_MAX
from leaderless.store.files import Files
from leaderless.store.port import OutcomeUnknown, Refused
from leaderless.table.pages import (
    DESCRIBED_BYTES,
    FOOTER_BYTES,
    GROUP_BYTES_MAX,
    READ_BYTES_MAX,
    ROWS_MAX,
    described,
    unpacked_bytes,
)
from leaderless.table.schema import COLUMNS, FORMAT_NAME, OLD_NAMES, RUN_NAME

T = TypeVar("T")
Kinds = tuple[type[Exception], ...]
# OSError is pyarrow's for a damaged footer, OverflowError that of a time that no calendar has.
SENSELESS: Kinds = (
    ValueError, LookupError, TypeError, OSError, OverflowError, RecursionError, zlib.error, pa.ArrowException,
    Misfit,
)  # fmt: skip
GROUP_BYTES = 2 << 20  # of a row group in memory
GROUP_ROWS = 32_768
PAGE_BYTES = 1 << 17  # about: a merge decodes a page of each file at once
PAGE_ROWS = 32  # a page has a multiple of them, however large they are
HEADER_NAMES = "headers.key_value.key"  # as a file calls that column
NUMBERS = ("offset", "seq", "slot", "appended_at")
COUNTS = NUMBERS[:3]
SPANS = ("first", "last", "base", "end")
TAIL_BYTES = 1 << 16  # of a file, read at once: with the footer of most
GAP_BYTES, RANGE_BYTES = 1 << 13, 1 << 25  # ranges so near are read in one, of so many bytes


class Written(NamedTuple):
    """What was written: rows, and the first and last key; None for a file without rows."""

    rows: int
    keys: tuple[str, str] | None


class FileWriter:
    """Writes tables, already in order among themselves, into one file; memory holds one row group.

    `run`: what the metadata say beside the rows. `content` grows with what is written.
    """

    def __init__(self, target: Path | BinaryIO | pa.NativeFile, run: Mapping[str, object]) -> None:
        text = orjson.dumps(run)
        if len(text) > DESCRIBED_BYTES:
            raise Refused(
                f"the commits and writers of a run have {len(text)} bytes, of {DESCRIBED_BYTES}"
            )
        packed = b64encode(zlib.compress(text))  # any reader of Parquet passes over it
        names = {FORMAT_NAME: str(LOG_FORMAT).encode(), RUN_NAME: packed}
        self._file = pq.ParquetWriter(
            target,
            COLUMNS.with_metadata(names),
            compression="zstd",
            write_page_index=True,
            write_statistics=[*({*COLUMNS.names} - {"value", "bytes", "headers"}), HEADER_NAMES],
            data_page_size=PAGE_BYTES,
            write_batch_size=PAGE_ROWS,
            use_dictionary=["key", "writer"],
            column_encoding=dict.fromkeys(NUMBERS, "DELTA_BINARY_PACKED"),
            sorting_columns=[pq.SortingColumn(0), pq.SortingColumn(1)],
        )
        self._waiting: list[pa.Table] = []
        self._bytes = self._rows = 0
        self.content: Written = Written(0, None)

    def __enter__(self) -> Self:
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
                self._end_group(table["key"][0])
                continue
            part, table = table.slice(0, rows), table.slice(rows)
            self._wait(part)

    def _wait(self, part: pa.Table) -> None:
        self._waiting.append(part)
        self._bytes += part.nbytes
        self._rows += part.num_rows

    def _end_group(self, key: pa.Scalar) -> None:
        """End a row group for which the next row, of `key`, is too large; with another key, if it can.

        So most keys have groups of their own or share whole ones: no order of keys reads a group twice.
        """
        group = pa.concat_tables(self._waiting)
        first = pc.index(group["key"], key).as_py()
        if first > 0:
            self._waiting, self._rows = [group.slice(0, first)], first
        self.flush()
        if first > 0:
            self._wait(group.slice(first))

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

    def has(self, *row: str | int | None) -> bool:
        """Whether the key, the offset and the slot of a row are within the bounds."""
        bounds: Any = self[2:]
        return all(low <= each <= high for each, (low, high) in zip(row, bounds, strict=True))


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


class _Ranges(io.RawIOBase):
    """Some ranges of a file of `size` bytes as Python's file, from where they begin; no other byte is read."""

    def __init__(self, size: int, ranges: Mapping[int, bytes]) -> None:
        super().__init__()
        self._size = size
        self._ranges = ranges
        self._at = 0

    def readable(self) -> bool:
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

    def read(self, size: int | None = -1) -> Any:
        """`size` bytes, which must be in one range. Raises `ValueError`."""
        first, self._at = self._at, self._at + (size or 0)
        for start, content in self._ranges.items():
            if start <= first <= self._at <= start + len(content):
                return memoryview(content)[first - start : self._at - start]
        raise ValueError(f"bytes from {self._at} on are of no column that was looked at")


class Reader:
    """An open file. Raises `Gone` when it was deleted, `OtherFormat` when it is none of ours.

    Raises `Broken` when its footer makes no sense however often it is read, and `OutcomeUnknown`.
    `metadata`: of an earlier reader of the same file, which saves the requests for its footer. `run`: what
    the file says beside its rows, where the footer was read.
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
        self._files = files
        self.size: int = files.size(path) if size is None else size
        self.run: dict[str, Any] = {}
        self.metadata: pq.FileMetaData = metadata or sensible(path, self._opened)
        self._leaves: dict[str, list[int]] = _leaves_of(self.metadata)

    def _opened(self) -> pq.FileMetaData:
        tail = self._fetched(max(0, self.size - TAIL_BYTES), self.size)
        length = int.from_bytes(tail[-8:-4], "little") + 8
        if tail[-4:] != b"PAR1":
            raise ValueError(f"it does not end as a Parquet file of {self.size} bytes")
        if length > min(self.size, FOOTER_BYTES):
            raise ValueError(f"its footer has {length} bytes, and may have {FOOTER_BYTES}")
        if length > len(tail):
            tail = self._fetched(self.size - length, self.size)
        metadata = pq.ParquetFile(pa.BufferReader(tail[-length:])).metadata
        names = metadata.metadata or {}
        _require_format(self.path, names)
        self.run = exactly(dict, described(names[RUN_NAME]))
        _require_columns(metadata)
        return metadata

    def _fetched(self, start: int, end: int) -> bytes:
        return again(partial(self._files.read_range, self.path, start, end - start))

    @property
    def spans(self) -> tuple[int, ...]:
        """Its first and last segment, and its slots, from the first to before the last. Raises `Broken`."""
        return sensible(self.path, lambda: tuple(count_of(self.run[name]) for name in SPANS))

    @property
    def row_groups(self) -> int:
        """How many row groups there are."""
        return int(self.metadata.num_row_groups)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.metadata.num_rows)

    def groups(self) -> list[Group]:
        """The row groups in their order. Raises `Broken`."""
        return sensible(self.path, lambda: [self._group(place) for place in range(self.row_groups)])

    def newest(self) -> float:
        """When the newest record was appended; infinite where the file does not say it. Raises `Broken`."""
        return sensible(
            self.path,
            lambda: max((self._newest_of(place) for place in range(self.row_groups)), default=inf),
        )

    def has(self, place: int, column: str) -> bool:
        """Whether a row group has a value in a column, by its statistics. Raises `Broken`."""
        if column not in self._leaves:
            return False
        rows = int(self.metadata.row_group(place).num_rows)
        statistics = partial(self._statistics, place, column)
        return sensible(self.path, lambda: exactly(int, statistics().null_count) < rows)

    def _statistics(self, place: int, name: str) -> pq.Statistics:
        """Those of a column. Raises `ValueError`."""
        found = self.metadata.row_group(place).column(self._leaves[name][0]).statistics
        if found is None:
            raise ValueError(f"column {name} has no statistics")
        return found

    def _group(self, place: int) -> Group:
        key, offset, slot = (self._statistics(place, name) for name in ("key", "offset", "slot"))
        return Group(
            place,
            self.metadata.row_group(place).num_rows,
            (exactly(str, key.min), exactly(str, key.max)),
            (count_of(offset.min), count_of(offset.max)),
            (count_of(slot.min), count_of(slot.max)),
        )

    def _newest_of(self, place: int) -> float:
        statistics = self._statistics(place, "appended_at")
        return float(statistics.max.timestamp()) if statistics.has_min_max else inf

    def read(
        self, places: Sequence[int] | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The rows of some row groups, or of all, in the columns of a log. Raises `Broken`."""
        wanted = [*range(self.row_groups)] if places is None else [*places]
        names = COLUMNS.names if columns is None else [*columns]
        there = [name for name in names if name in self._leaves]

        def read() -> pa.Table:
            file = self._looked_at(wanted, there)
            return _as_columns(
                file.read_row_groups(wanted, columns=there, use_threads=False), names
            )

        return sensible(self.path, read)

    def pieces(self, share: int) -> Iterator[pa.Table]:
        """All rows in their order, a part of a row group at a time: `share` of them have all its rows.

        Raises `Broken` for a damaged answer, without asking again.
        """
        try:
            for place in range(self.row_groups):
                rows = max(1, -(-self.metadata.row_group(place).num_rows // share))
                file = self._looked_at([place], [*self._leaves])
                for batch in file.iter_batches(rows, row_groups=[place], use_threads=False):
                    yield _as_columns(pa.Table.from_batches([batch]), COLUMNS.names)
        except SENSELESS as error:
            raise Broken(f"{self.path} makes no sense: {error}") from error

    def _looked_at(self, places: Sequence[int], names: Sequence[str]) -> pq.ParquetFile:
        """The file with these columns of these row groups in memory, whose sizes are known and bounded."""
        spans = {
            (place, name, leaf): _span(self.metadata, place, name, leaf, self.size)
            for place in places
            for name in names
            for leaf in self._leaves[name]
        }
        joined = _joined((start, end) for start, end, _ in spans.values())
        ranges = {start: self._fetched(start, end) for start, end in joined}
        content, total, by_dictionary = _Ranges(self.size, ranges), 0, set()
        for place in places:
            before = total
            for name in names:
                for leaf in self._leaves[name]:
                    start, end, values = spans[place, name, leaf]
                    content.seek(start)
                    size, has_dictionary = unpacked_bytes(content.read(end - start), values)
                    total += size
                    if has_dictionary and name == "headers":
                        raise ValueError("headers have a dictionary: nothing bounds its size")
                    if has_dictionary and name not in NUMBERS:
                        by_dictionary.add(name)
            if total - before > GROUP_BYTES_MAX or total > READ_BYTES_MAX:
                raise ValueError(f"row group {place} has more than {GROUP_BYTES_MAX} bytes")
        source = pa.PythonFile(content, "r")
        return pq.ParquetFile(source, metadata=self.metadata, read_dictionary=[*by_dictionary])


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans, those that are near in one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        first, last = joined[-1] if joined else (start, start)
        if joined and start - last <= GAP_BYTES and end - first <= RANGE_BYTES:
            joined[-1] = first, max(end, last)
        else:
            joined.append((start, end))
    return joined


def _leaves_of(metadata: pq.FileMetaData) -> dict[str, list[int]]:
    """Of each column the places of what a file keeps of it: a map is two columns there."""
    leaves: dict[str, list[int]] = {}
    for place in range(metadata.num_columns):
        leaves.setdefault(metadata.schema.column(place).path.partition(".")[0], []).append(place)
    return leaves


def _span(
    metadata: pq.FileMetaData, place: int, name: str, leaf: int, size: int
) -> tuple[int, int, int]:
    """Where a column of a row group begins and ends, and how many values it has; a map has some for each row.

    Raises `ValueError` for what is not in the file.
    """
    group = metadata.row_group(place)
    chunk = group.column(leaf)
    first = chunk.data_page_offset
    start = (
        min(first, chunk.dictionary_page_offset or first) if chunk.has_dictionary_page else first
    )
    length = chunk.total_compressed_size
    if not (0 <= start <= start + length <= size and length <= GROUP_BYTES_MAX):
        raise ValueError(f"column {name} has {length} bytes from {start} on, in a file of {size}")
    if chunk.num_values < group.num_rows or (
        chunk.num_values != group.num_rows and name != "headers"
    ):
        raise ValueError(f"column {name} has {chunk.num_values} values in {group.num_rows} rows")
    return start, start + length, chunk.num_values


def _as_columns(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """A table of a file with these columns of a log. Raises `ValueError` for what is none."""
    if not names:
        return table  # without columns pyarrow would lose how many rows there are
    for chunk in (chunk for column in table.columns for chunk in column.chunks):
        if isinstance(chunk, pa.DictionaryArray):
            lengths = pc.binary_length(chunk.dictionary).take(chunk.indices)
            if (pc.sum(lengths).as_py() or 0) > GROUP_BYTES_MAX:
                raise ValueError(f"a dictionary grows to more than {GROUP_BYTES_MAX} bytes")
    for name in {*names} - {*table.column_names}:  # a file of an earlier format lacks it
        table = table.append_column(name, pa.nulls(table.num_rows, COLUMNS.field(name).type))
    plain = table.select(names).cast(pa.schema(map(COLUMNS.field, names)))
    plain.validate(full=True)
    for name in COUNTS:
        if name in names and (pc.min(plain[name]).as_py() or 0) < 0:
            raise ValueError(f"{name} is below 0")
    return plain


def _require_format(path: str, names: dict[bytes, bytes]) -> None:
    if FORMAT_NAME not in names or RUN_NAME not in names:
        raise OtherFormat(f"{path} is a Parquet file of another program")
    if names[FORMAT_NAME] not in [str(form).encode() for form in FORMATS]:
        number = names[FORMAT_NAME].decode(errors="replace")
        raise OtherFormat(f"{path} has format {number}, and this version knows {LOG_FORMAT}")


def _require_columns(metadata: pq.FileMetaData) -> None:
    """Raise `ValueError` unless the columns are those of a log, and the row groups have all rows."""
    schema = metadata.schema.to_arrow_schema()
    is_new = metadata.metadata[FORMAT_NAME] == str(LOG_FORMAT).encode()
    expected = [COLUMNS.field(name) for name in (COLUMNS.names if is_new else OLD_NAMES)]
    if [*zip(schema.names, schema.types, strict=True)] != [
        (each.name, each.type) for each in expected
    ]:
        raise ValueError(f"its columns are none of a log: {', '.join(schema.names)[:200]}")
    rows = [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)]
    if sum(rows) != metadata.num_rows or not all(0 <= each <= ROWS_MAX for each in rows):
        most = max(rows, default=0)
        raise ValueError(
            f"it has {metadata.num_rows} rows, and its row groups {sum(rows)}, up to {most} of {ROWS_MAX}"
        )


def rows_from(table: pa.Table, key: str, offset: int, rows: int) -> pa.Table:
    """Up to `rows` rows of a key in a table from the first one at or after `offset`."""
    wanted = pc.and_(pc.equal(table["key"], key), pc.greater_equal(table["offset"], offset))
    return table.filter(wanted).slice(0, rows)
