"""The core's registers on a store whose log keeps runs as Parquet files.

    run/A-B              a directory of the run, as a page of the index: from the file `run/A-B.parquet`
    run/A-B/OFFSET/KEY   a slice of the run: the block of a key from an offset on, from the file of the run, or
                         from the merged file that replaced it

Both are read in ranges of bytes, never a file whole.
All other registers are as in `leaderless.store.registers`. Every run is made of segments that the core has read
before. They are kept until then, within a bound; what is missing of them is read again.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar
from zlib import crc32

import anyio
import pyarrow as pa
import pyarrow.parquet as pq

from leaderless.core.coordination import Json, Misfit, is_deleted
from leaderless.core.headlog.records import Run, segment_name, segment_of
from leaderless.core.messages import Cas, Get, Missing, Ok, Outcome, StoreOp, Unknown
from leaderless.core.shape import Shape
from leaderless.errors import Broken
from leaderless.store.calls import Damaged, Held, blocking, read_once
from leaderless.store.files import Files, Gone
from leaderless.store.port import Refused, Store
from leaderless.store.registers import Registers
from leaderless.table.manifest import TABLE, Manifest, manifest_of
from leaderless.table.parquet import Group, Reader, rows_from
from leaderless.table.pieces import BatchColumns, Piece, release_memory
from leaderless.table.retention import read_starts
from leaderless.table.runs import (
    block_in,
    create_run,
    directory_of,
    encode_run,
    pieces_of,
    run_path,
)
from leaderless.table.schema import COLUMNS

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")
FOOTER_BYTES, GROUP_BYTES = 32 << 20, 32 << 20  # kept in memory, about
FOOTER_WEIGHT = 8  # bytes in memory for one of a footer in its file, about
SLICES_BYTES, MESSAGE_BYTES = 32 << 20, 64  # and of a message in memory beside its text, about
COLUMNS_READ = ("key", "offset", "value", "bytes", "message", "appended_at")
THREADS = 8  # that read or write files at once
FETCHES = 61  # locks of groups; more of them wait less for one another
SEGMENT_BYTES = 16 << 20  # of segments that are kept: those that are compacted at once
RELEASE_BYTES = 1 << 20  # of segments that are read: what that took is then given back
SLICE_ROWS = 4_096
MANIFEST_S = 30.0  # how long a list of files is used; so long a process may still read what retention deleted

_RUN = re.compile(r"run/(\d+)-(\d+)(?:/(\d+)/(.*))?", re.DOTALL)


class Kept(Generic[K, V]):
    """Values by name, the last used ones: about `bytes_max` of them, or a single larger one.

    Several threads may use it.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = Lock()
        self.bytes: int = 0

    def get(self, name: K) -> V | None:
        """The value of a name; None: there is none, or not any more."""
        with self._lock:
            if name not in self._values:
                return None
            self._values.move_to_end(name)
            return self._values[name][0]

    def take(self, name: K) -> V | None:
        """As `get`; the value is kept no longer."""
        with self._lock:
            value, size = self._values.pop(name, (None, 0))
            self.bytes -= size
            return value

    def put(self, name: K, value: V, size: int) -> None:
        """Keep a value of `size` bytes, in place of the one that a name has."""
        with self._lock:
            self.bytes += size - self._values.pop(name, (None, 0))[1]
            self._values[name] = value, size
            while self.bytes > self._bytes_max and len(self._values) > 1:
                self.bytes -= self._values.popitem(last=False)[1][1]


class _Footer(NamedTuple):
    size: int
    metadata: pq.FileMetaData
    groups: list[Group]


class Shelf:
    """Reads slices of Parquet files. Its calls block, and may come from several threads."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._footers: Kept[str, _Footer] = Kept(FOOTER_BYTES)
        self._groups: Kept[tuple[str, int], pa.Table] = Kept(GROUP_BYTES)

    def read(
        self, path: str, key: str, offset: int, rows: int, *, size: int | None = None
    ) -> pa.Table:
        """Up to `rows` rows of a key from the first one at or after `offset`, out of one row group.

        A table without rows: the file has none. `size`: of the file; None: it is asked for, once. Raises
        `Gone`, `OtherFormat`, `Broken`.
        """
        footer = self._footer(path, size)
        for group in footer.groups:
            if group.may_hold(key, offset):
                found = rows_from(self._group(path, footer, group.place), key, offset, rows)
                if found.num_rows:
                    return found
        return COLUMNS.empty_table()

    def place(self, path: str, key: str, offset: int) -> int:
        """The row group that a read begins with, as far as it is known; -1: it is not."""
        footer = self._footers.get(path)
        groups = footer.groups if footer else []
        return next((each.place for each in groups if each.may_hold(key, offset)), -1)

    def _footer(self, path: str, known: int | None) -> _Footer:
        kept = self._footers.get(path)
        if kept is None:
            size = self._files.size(path) if known is None else known
            reader = Reader(self._files, path, size=size)
            kept = _Footer(size, reader.metadata, reader.groups())
            self._footers.put(path, kept, FOOTER_WEIGHT * reader.metadata.serialized_size)
        return kept

    def _group(self, path: str, footer: _Footer, place: int) -> pa.Table:
        kept = self._groups.get((path, place))
        if kept is None:
            reader = Reader(self._files, path, size=footer.size, metadata=footer.metadata)
            headers = ("headers",) if reader.has(place, "headers") else ()
            kept = reader.read([place], COLUMNS_READ + headers)
            self._groups.put((path, place), kept, kept.nbytes)
        return kept


class TableRegisters(Registers):
    """Carries out the core's store operations on a store with files; `runs_written` counts runs."""

    def __init__(self, store: Store, files: Files, shape: Shape) -> None:
        super().__init__(store, shape)
        self._files = files
        self._threads = anyio.CapacityLimiter(THREADS)
        self._segments: Kept[str, Held[Json]] = Kept(SEGMENT_BYTES)
        self._slices: Kept[tuple[str, str, int], list[Any]] = Kept(SLICES_BYTES)
        # So that keys of one group fetch it once.
        self._fetching = [anyio.Lock() for _ in range(FETCHES)]
        self._manifest: Manifest | None = None
        self._manifest_at = 0.0
        self._starts: tuple[str | None, dict[str, int]] = None, {}  # and their path
        self._unreleased = 0
        self.shelf: Shelf = Shelf(files)
        self.runs_written: int = 0

    async def perform(self, op: StoreOp) -> Outcome:
        """See `Registers`."""
        named = _RUN.fullmatch(op.key)
        if named is None:
            if isinstance(op, Get) and op.key.startswith("segment/"):
                return await self._read_segment(op.key)
            return await super().perform(op)
        first, last = int(named[1]), int(named[2])
        try:
            match op:
                case Get() if named[3] is not None:
                    return await self._slice(first, last, named[4], int(named[3]))
                case Get():
                    return await self._read_run(first, last)
                case Cas(_, None, value, True):
                    return await self._write_run(first, last, value)
        except Broken as error:  # it was read again, and made no sense each time
            raise Refused(str(error)) from error
        raise Refused(f"{op.key} is a file, and files do not change")

    async def _read_run(self, first: int, last: int) -> Outcome:
        try:
            return Ok(
                await self._run(lambda: directory_of(Reader(self._files, run_path(first, last))))
            )
        except Gone:
            return Missing()

    async def _slice(self, first: int, last: int, key: str, offset: int) -> Outcome:
        for renew in (False, True):
            try:
                manifest = await self._manifest_now(renew=renew)
                has_left = first < manifest.start.segment
                if has_left or manifest.trimmed:
                    earliest = (await self._starts_of(manifest)).get(key, 0)
                    if has_left or offset < earliest:
                        return Ok({"earliest": earliest}) if offset < earliest else Missing()
                merged = manifest.file_of(first)
                path = merged.path if merged else run_path(first, last)
                place = self.shelf.place(path, key, offset)
                block = self._slices.get((path, key, place))
                if block and block[0] <= offset < block[0] + len(block[1]):
                    return Ok(block)
                read = partial(
                    self.shelf.read, path, key, offset, SLICE_ROWS, size=merged and merged.bytes
                )
                async with self._fetching[crc32(f"{place} {path}".encode()) % FETCHES]:
                    table = await self._run(read)
            except Gone:
                continue
            if block := block_in(table):
                size = table.nbytes + MESSAGE_BYTES * table.num_rows
                place = self.shelf.place(path, key, offset)
                self._slices.put((path, key, place), block, size)
            return Ok(block) if block else Missing()
        return Missing()

    async def _starts_of(self, manifest: Manifest) -> dict[str, int]:
        """The first offsets of keys: an object that never changes."""
        if self._starts[0] != manifest.start.path:
            starts = await self._run(partial(read_starts, self._files, manifest))
            self._starts = manifest.start.path, starts
        return self._starts[1]

    async def _manifest_now(self, *, renew: bool) -> Manifest:
        """The list of files, as it is now or was not long ago."""
        age_s = anyio.current_time() - self._manifest_at
        if self._manifest is None or renew or age_s > MANIFEST_S:
            self._manifest_at = anyio.current_time()
            found = await read_once(self._store, TABLE, manifest_of)
            self._manifest = found.value if found else Manifest()
        return self._manifest

    async def _write_run(self, first: int, last: int, value: Any) -> Outcome:
        run = Run(**value)
        batches: list[BatchColumns] = []
        pieces: list[Piece] = []
        for name in map(segment_name, range(first, last + 1)):
            if (held := self._segments.take(name)) is None:
                await self._read_segment(name)
                held = self._segments.take(name)
            if held is None:
                return Unknown()  # another worker is further on
            try:
                segment = segment_of(held.value)
            except Misfit as misfit:
                raise Damaged(f"{name!r} makes no sense: {misfit}") from misfit
            assert segment is not None, "no tombstone is kept"
            pieces += pieces_of(run, segment, held.modified, batches)
        content = encode_run(first, last, run, batches, pieces)
        await self._run(partial(create_run, self._files, run_path(first, last), content))
        self.runs_written += 1
        return Ok()

    async def _read_segment(self, name: str) -> Outcome:
        read = await self._parsed(name)
        if read is None:
            return Missing()
        found, segment = read
        if not is_deleted(segment):  # the core holds the same messages
            held = Held(segment, found.version, found.modified)
            self._segments.put(name, held, len(found.value))
            self._unreleased += len(found.value)
            if self._unreleased >= RELEASE_BYTES:
                self._unreleased = 0
                release_memory()
        return Ok(segment)

    async def _run(self, call: Callable[[], T]) -> T:
        return await blocking(call, abandons=True, limiter=self._threads)
