"""Records of some keys from an offset on, and new ones as they come, without end.

An iterator, not a generator: an error or a cancellation leaves it usable, and the next call goes on where the
last record was. When a retention has deleted the record at the next offset of a key, `OffsetOutOfRange` names
the first one that is left, and the next call goes on there. A start at "earliest" is where the log begins.

The keys take turns. A log answers with the keys in the order in which they are asked for, until the answer is
full. So a key that got records is asked for last in the next round: a new record of another key comes in that
round, however far behind the first key is.

The pause between two looks doubles while there is no news, up to `latency_s`.
"""

from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Literal, Protocol

import anyio

from leaderless.api.record import Looked, Record
from leaderless.errors import OffsetOutOfRange, Unfit

Start = Literal["latest", "earliest"] | int | Mapping[str, int]
PAUSE_S = 0.05  # the first one


class Pauses:
    """The pauses between looks at a log: they double while there is no news, up to `latency_s` seconds.

    Raises `Unfit`.
    """

    def __init__(self, latency_s: float) -> None:
        if not latency_s > 0:
            raise Unfit(f"latency_s must be above 0 seconds, got {latency_s:g}")
        self._latency_s = latency_s
        self._next_s = PAUSE_S

    def next_s(self, news: bool) -> float:
        """The pause after a look, in seconds; `news`: what it showed."""
        pause_s = 0.0 if news else min(self._next_s, self._latency_s)
        self._next_s = PAUSE_S if news else 2 * pause_s
        return pause_s


class Readable(Protocol):
    """What a tail needs of a log (`leaderless.api.log.Log`)."""

    async def keys(self) -> dict[str, int]:
        """See `Log.keys`."""

    async def look(self, offsets: Mapping[str, int], limit: int) -> Looked:
        """See `Log.look`."""


class Tail(AsyncIterator[Record]):
    """See the module, and `leaderless.api.log.Log.tail`. `limit`: of the records of a key in one answer."""

    def __init__(
        self, log: Readable, keys: Iterable[str], start: Start, latency_s: float, limit: int
    ) -> None:
        self._log = log
        self._keys = [*dict.fromkeys(keys)]
        self._start = start
        self._pauses = Pauses(latency_s)
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
            await anyio.sleep(self._pauses.next_s(bool(looked.records)))
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
