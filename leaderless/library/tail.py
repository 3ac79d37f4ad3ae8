"""Records of some keys from an offset on, and new ones as they come, without end.

An iterator, not a generator: an error or a cancellation leaves it usable, and the next call goes on where the
last record was. When a retention has deleted the record at the next offset of a key, `OffsetOutOfRange` names
the first one that is left, and the next call goes on there. A start at "earliest" is where the log begins.

The keys take turns. A log answers with the keys in the order in which they are asked for, until the answer is
full. So a key that got records is asked for last in the next round: a new record of another key comes in that
round, however far behind the first key is.
"""

from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Literal, Protocol

import anyio

from leaderless.errors import OffsetOutOfRange
from leaderless.library.record import Looked, Record

Start = Literal["latest", "earliest"] | int | Mapping[str, int]


class Readable(Protocol):
    """What a tail needs of a log (`leaderless.library.log.Log`)."""

    async def keys(self) -> dict[str, int]:
        """See `Log.keys`."""

    async def look(self, offsets: Mapping[str, int], limit: int) -> Looked:
        """See `Log.look`."""


class Tail(AsyncIterator[Record]):
    """See the module, and `leaderless.library.log.Log.tail`. `limit`: of the records of a key in one answer."""

    def __init__(
        self, log: Readable, keys: Iterable[str], start: Start, poll_s: float, limit: int
    ) -> None:
        self._log = log
        self._keys = [*dict.fromkeys(keys)]
        self._start = start
        self._poll_s = poll_s
        self._limit = limit
        # The next offset of each key, in the order of their turns.
        self._at: dict[str, int] | None = None
        self._anywhere: set[str] = set()  # keys that begin with the first record that is left
        self._read: deque[Record] = deque()

    async def __anext__(self) -> Record:
        """The next record; waits until there is one. Raises as `Log.read`."""
        if self._at is None:
            self._at = await self._first()
        while not self._read:
            looked = await self._log.look(self._at, self._limit)
            lost = looked.earliest.keys() - self._anywhere
            for key, records in looked.records.items():
                if key not in lost:
                    self._read.extend(records)
                    del self._at[key]
                    self._at[key] = records[-1].offset + 1
            self._anywhere -= looked.records.keys()
            for key in sorted(lost)[:1]:  # the others are behind at the next look, too
                offset, self._at[key] = self._at[key], looked.earliest[key]
                raise OffsetOutOfRange(key, offset, looked.earliest[key])
            if not looked.records:
                await anyio.sleep(self._poll_s)
        return self._read.popleft()

    async def _first(self) -> dict[str, int]:
        start = self._start
        if isinstance(start, Mapping):
            self._anywhere = {key for key in self._keys if key not in start}
            return {key: start.get(key, 0) for key in self._keys}
        if start == "latest":
            ends = await self._log.keys()
            return {key: ends.get(key, 0) for key in self._keys}
        if start == "earliest":
            self._anywhere = {*self._keys}
            return dict.fromkeys(self._keys, 0)
        return dict.fromkeys(self._keys, start)
