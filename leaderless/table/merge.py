"""Several files of consecutive runs become one, in memory of a row group for each.

Every file is in the order of key and offset, and of a key the earlier file has the lower offsets. So the
order of key and offset is total, and it is enough to take, again and again, what no row that is still unread
can precede.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from leaderless.table.parquet import Reader, Writer

Place = tuple[str, int]  # a key and an offset
ORDER = [("key", "ascending"), ("offset", "ascending")]


def merge(readers: Sequence[Reader], writer: Writer) -> None:
    """Write the rows of all readers in the order of key and offset."""
    cursors = [_Cursor(reader) for reader in readers]
    while open_ones := [cursor for cursor in cursors if cursor.rows.num_rows]:
        limits = [cursor.last for cursor in open_ones if cursor.goes_on]
        limit = min(limits) if limits else None
        parts = pa.concat_tables(cursor.take(limit) for cursor in open_ones)
        writer.write(parts.sort_by(ORDER))


class _Cursor:
    """Where a merge is in one file: `rows` are those of a row group that were not taken yet."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._next = 0
        self.rows: pa.Table = reader.read([])
        self._fill()

    @property
    def goes_on(self) -> bool:
        """Whether further row groups follow."""
        return self._next < self._reader.row_groups

    @property
    def last(self) -> Place:
        """The key and the offset of the last row at hand."""
        return self.rows["key"][-1].as_py(), self.rows["offset"][-1].as_py()

    def take(self, limit: Place | None) -> pa.Table:
        """The rows up to `limit`, or all; the next row group is read when none is left."""
        count = self.rows.num_rows if limit is None else self._count(limit)
        taken, self.rows = self.rows.slice(0, count), self.rows.slice(count)
        if not self.rows.num_rows:
            self._fill()
        return taken

    def _count(self, limit: Place) -> int:
        key, offset = limit
        keys, offsets = self.rows["key"], self.rows["offset"]
        same = pc.and_(pc.equal(keys, key), pc.less_equal(offsets, offset))
        return int(pc.sum(pc.or_(pc.less(keys, key), same)).as_py() or 0)

    def _fill(self) -> None:
        while not self.rows.num_rows and self.goes_on:
            self.rows = self._reader.read([self._next])
            self._next += 1
