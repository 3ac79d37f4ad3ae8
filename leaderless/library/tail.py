"""Records of some keys from an offset on, and new ones as they come, without end.

An iterator, not a generator: an error or a cancellation leaves it usable, and the next call goes on where the
last record was.

The keys take turns. A log answers with the keys in the order in which they are asked for, until the answer is
full. So a key that got records is asked for last in the next round: a new record of another key comes in that
round, however far behind the first key is.
"""

from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Literal, Protocol

import anyio

from leaderless.library.record import Record

Start = Literal["latest", "earliest"] | int | Mapping[str, int]


class Readable(Protocol):
    """What a tail needs of a log (`leaderless.library.log.Log`)."""

    async def keys(self) -> dict[str, int]:
        """See `Log.keys`."""

    async def read_many(self, offsets: Mapping[str, int], limit: int) -> dict[str, list[Record]]:
        """See `Log.read_many`."""


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
        self._read: deque[Record] = deque()

    async def __anext__(self) -> Record:
        """The next record; waits until there is one. Raises as `Log.read_many`."""
        if self._at is None:
            self._at = await self._first()
        while not self._read:
            found = await self._log.read_many(self._at, self._limit)
            for key, records in found.items():
                self._read.extend(records)
                del self._at[key]
                self._at[key] = records[-1].offset + 1
            if not found:
                await anyio.sleep(self._poll_s)
        return self._read.popleft()

    async def _first(self) -> dict[str, int]:
        start = self._start
        if isinstance(start, Mapping):
            return {key: start.get(key, 0) for key in self._keys}
        if start == "latest":
            ends = await self._log.keys()
            return {key: ends.get(key, 0) for key in self._keys}
        return dict.fromkeys(self._keys, 0 if start == "earliest" else start)
