"""Files that are open, and what was read of them last, within a bound of memory."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from leaderless.store.files import Files
from leaderless.table.parquet import Group, Reader, rows_from
from leaderless.table.schema import COLUMNS

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
FOOTER_BYTES, GROUP_BYTES = 32 << 20, 32 << 20  # kept in memory, about
FOOTER_WEIGHT = 8  # bytes in memory for one of a footer in its file, about
READ = ("key", "offset", "value", "bytes", "message")


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

    def put(self, name: K, value: V, size: int) -> None:
        """Keep a value of `size` bytes; a name that has one already keeps it."""
        with self._lock:
            if name in self._values:
                return
            self._values[name] = value, size
            self.bytes += size
            while self.bytes > self._bytes_max and len(self._values) > 1:
                self.bytes -= self._values.popitem(last=False)[1][1]


class _Footer(NamedTuple):
    metadata: pq.FileMetaData
    groups: list[Group]


class Shelf:
    """Reads slices of Parquet files. Its calls block, and may come from several threads.

    `bytes_read`: from the store, so far.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._footers: Kept[str, _Footer] = Kept(FOOTER_BYTES)
        self._groups: Kept[tuple[str, int], pa.Table] = Kept(GROUP_BYTES)
        self.bytes_read: int = 0

    def read(self, path: str, key: str, offset: int, rows: int) -> pa.Table:
        """Up to `rows` rows of a key from the first one at or after `offset`, out of one row group.

        A table without rows: the file has none. Raises `Gone`, `OtherFormat`, `Broken`.
        """
        for group in self._footer(path).groups:
            if group.may_hold(key, offset):
                found = rows_from(self._group(path, group.place), key, offset, rows)
                if found.num_rows:
                    return found
        return COLUMNS.empty_table()

    def _footer(self, path: str) -> _Footer:
        kept = self._footers.get(path)
        if kept is None:
            reader = Reader(self._files, path)
            kept = _Footer(reader.metadata, reader.groups())
            self._footers.put(path, kept, FOOTER_WEIGHT * reader.metadata.serialized_size)
            self.bytes_read += reader.bytes_read
        return kept

    def _group(self, path: str, place: int) -> pa.Table:
        kept = self._groups.get((path, place))
        if kept is None:
            reader = Reader(self._files, path, metadata=self._footer(path).metadata)
            kept = reader.read([place], READ)
            self._groups.put((path, place), kept, kept.nbytes)
            self.bytes_read += reader.bytes_read
        return kept
