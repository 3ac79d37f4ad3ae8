"""Several files of consecutive runs become one; memory holds a piece of each, whatever the size of the files.

Every file is in the order of key and offset, and of a key the earlier file has the lower offsets. So the
order of key and offset is total, and it is enough to take, again and again, what no row that is still unread
can precede.

A piece is a share of a row group (`PIECE_SHARE`), so at most `GROUP_BYTES` and usually a quarter of that. A
merge of the 16 files of a level has 8 MiB of rows at hand, and as much again while it sorts them.
"""

from bisect import bisect_right
from collections.abc import Sequence
from threading import Event

import pyarrow as pa

from leaderless.errors import Closed
from leaderless.table.parquet import FileWriter, Reader
from leaderless.table.schema import COLUMNS

Place = tuple[str, int]  # a key and an offset
ORDER = [("key", "ascending"), ("offset", "ascending")]
PIECE_SHARE = 4  # pieces of a row group: more of them take less memory and more CPU


def merge_rows(
    readers: Sequence[Reader], writer: FileWriter, cancelled: Event | None = None
) -> None:
    """Write the rows of all readers in the order of key and offset.

    Raises `Closed` soon after `cancelled` is set.
    """
    cursors = [_Cursor(reader) for reader in readers]
    while open_ones := [cursor for cursor in cursors if cursor.rows.num_rows]:
        if cancelled and cancelled.is_set():
            raise Closed("the log was closed before its files were merged")
        limit = min((cursor.last for cursor in open_ones if cursor.goes_on), default=None)
        parts = pa.concat_tables(cursor.take(limit) for cursor in open_ones)
        writer.write(parts.sort_by(ORDER))
        pa.default_memory_pool().release_unused()  # or it keeps as much again


class _Cursor:
    """Where a merge is in one file: `rows` are those of a piece that were not taken yet, up to `last`."""

    def __init__(self, reader: Reader) -> None:
        self._pieces = reader.pieces(PIECE_SHARE)
        self._unread = reader.rows
        self.rows: pa.Table = COLUMNS.empty_table()
        self.last: Place = "", -1
        self._fill()

    @property
    def goes_on(self) -> bool:
        """Whether further pieces follow."""
        return self._unread > 0

    def take(self, limit: Place | None) -> pa.Table:
        """The rows up to `limit`, or all; the next piece is read when none is left."""
        every = range(self.rows.num_rows)
        count = len(every) if limit is None else bisect_right(every, limit, key=self._place)
        taken, self.rows = self.rows.slice(0, count), self.rows.slice(count)
        if not self.rows.num_rows:
            self._fill()
        return taken

    def _place(self, row: int) -> Place:
        return self.rows["key"][row].as_py(), self.rows["offset"][row].as_py()

    def _fill(self) -> None:
        self.rows = next(self._pieces, COLUMNS.empty_table())
        self._unread -= self.rows.num_rows
        if self.rows.num_rows:
            self.last = self._place(self.rows.num_rows - 1)
