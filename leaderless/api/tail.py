"""How a log is, and a tail of it: records of some keys from an offset on, and new ones as they come.

A tail is an iterator, not a generator: an error or a cancellation leaves it usable, and the next call goes on
where the last record was. When a retention has deleted the record at the next offset of a key,
`OffsetOutOfRange` names the first one that is left, and the next call goes on there. A start at "earliest" is
where the log begins.

A log answers with the keys in the order in which they are asked for, until the answer is full. The key at
which it was full comes first in the next one: the store has read what follows. Then come the keys whose last
record is the oldest. So keys that are behind go through the log side by side, and each byte is read about
once. But of `TURN` answers one begins with the key that has waited for longest, however far behind others are.

A key that is closed has no turn after its last record. Without keys the iterator ends.

The pause between two looks doubles while there is no news, up to `latency_s`.
"""

from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from math import ceil, isfinite
from typing import Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import anyio

from leaderless.core.messages import Pairs
from leaderless.errors import KeyClosed, OffsetOutOfRange, Unfit
from leaderless.hosting.reads import Pauses, Readable, Record

Start = Literal["latest", "earliest"] | int | Mapping[str, int]
At: TypeAlias = datetime | float  # a time: with a time zone, or seconds since 1970
TURN = 8
SEARCHED = 1000  # messages at most that a look for a time asks for
T_co = TypeVar("T_co", covariant=True)


class Several(Iterable[T_co], Protocol[T_co]):
    """A list, a tuple, a set or the like. No text or bytes, which would be taken for their letters."""

    def __contains__(self, item: object, /) -> bool:
        """As of `collections.abc.Collection`; that of a `str` takes none but texts."""


class InOrder(Several[T_co], Protocol[T_co]):
    """Several with places: a list, a tuple or the like."""

    def __getitem__(self, place: int, /) -> T_co:
        """As of `collections.abc.Sequence`."""


def list_of(name: str, given: Several[T_co], *wrong: type) -> list[T_co]:
    """What the argument `name` has. Raises `Unfit` for a text, for bytes, and for what is `wrong`, too."""
    if isinstance(given, (str, bytes, *wrong)):
        raise Unfit(f"{name} must be a list, such as [{given!r}], got {given!r}")
    return [*given]


class Status(NamedTuple):
    """What `Log.status` tells.

    `url`: of the store; `state`: "open" or "fenced"; `epoch`: of the fence; `batches`: in the log;
    `segments`: sealed so far, of which those below `compacted` are in runs; `keys`: the next offset of each;
    `by`: who committed last, and after `@` where it listens; `hand_overs`: of this process;
    `trouble`: why no more segments are in runs.
    """

    url: str
    state: str
    epoch: int
    batches: int
    segments: int
    compacted: int
    keys: dict[str, int]
    by: str
    hand_overs: Mapping[str, int]
    trouble: str | None = None


async def read_on(
    log: Readable,
    key: str,
    offset: int,
    limit: int,
    end: Callable[[str], int],
    *,
    anywhere: bool = False,
) -> list[Record]:
    """See `leaderless.api.log.Log.read`. `end`: gives the end of a key as of the last look.

    `anywhere`: it may begin with the first record that is left.
    """
    found, earliest, closed = await log.look({key: offset}, limit)
    if key in closed:
        raise KeyClosed(f"key {key!r} is closed, and ends at offset {end(key)}", end(key))
    if key in earliest and not anywhere:
        raise OffsetOutOfRange(key, offset, earliest[key])
    records = found.get(key, [])
    until = offset + limit  # a page that may end with the newest record looks for newer ones
    while records and (at := records[-1].offset + 1) < min(until, end(key)):
        found, earliest, _ = await log.look({key: at}, until - at)
        if key in earliest or key not in found:
            break
        records += found[key]
    return records


def millis(at: At) -> int:
    """The first millisecond since 1970 that is not before a time. Raises `Unfit`."""
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise Unfit(f"at must have a time zone, such as datetime.now(timezone.utc), got {at!r}")
        return ceil(at.timestamp() * 1000)
    if type(at) not in (int, float) or not isfinite(at):
        raise Unfit(f"at must be a datetime or seconds since 1970, got {at!r}")
    return ceil(at * 1000)


async def search(
    poll: Callable[[int], Awaitable[Mapping[str, Pairs]]], key: str, at: At, end: int
) -> int:
    """See `leaderless.api.log.Log.offset_at`. `poll`: gives some messages of the key, whose end is `end`.

    Records without a time are older than all others: none comes after one with a time.
    """
    wanted, low, high, middle = millis(at), 0, end, end - 1
    while low < high:
        pairs = (await poll(middle)).get(key)
        if not pairs:
            return end  # a retention has deleted all that was there
        times: list[int | None] = [rest[0] if rest else None for _, _, *rest in pairs]
        if middle == end - 1 and times[-1] is None:
            raise Unfit(
                f"key {key!r}: no record of it has a time; those have one that were appended after "
                "`leaderless upgrade`"
            )
        early = sum(time is None or time < wanted for time in times)
        if 0 < early < len(pairs):
            return int(pairs[early][0])
        if early:
            low = pairs[-1][0] + 1
        elif pairs[0][0] > middle:  # a retention has deleted what was before
            low = high = pairs[0][0]
        else:
            high = middle
        middle = (low + high) // 2
    return low


class Tail(AsyncIterator[Record]):
    """See the module, and `leaderless.api.log.Log.tail`. `limit`: of the records of a key in one answer.

    `start`: or what gives the first offset of a key.
    """

    def __init__(
        self,
        log: Readable,
        keys: Several[str],
        start: Start | Callable[[str], Awaitable[int]],
        latency_s: float,
        limit: int,
    ) -> None:
        self._log = log
        self._keys = [*dict.fromkeys(list_of("keys", keys))]
        self._start = start
        self._pauses = Pauses(latency_s)
        self._limit = limit
        # The next offset of each key, where the one that has waited for longest is the first.
        self._at: dict[str, int] | None = None
        self._times: defaultdict[str, int] = defaultdict(int)  # of the last records; -1: in a turn
        self._answers = 0
        self._anywhere: set[str] = set()  # keys that begin with the first record that is left
        self._read: deque[Record] = deque()

    async def __anext__(self) -> Record:
        """The next record; waits until there is one. Raises as `Log.read`."""
        if self._at is None:
            self._at = await self._first()
        while not self._read:
            if not self._at:
                raise StopAsyncIteration
            self._answers += 1
            looked = await self._log.look(self._turns(), self._limit)
            lost = looked.earliest.keys() - self._anywhere
            last = next(reversed(looked.records), None)
            for key, records in looked.records.items():
                if key not in lost:
                    self._read.extend(records)
                    del self._at[key]  # it comes last
                    self._at[key] = records[-1].offset + 1
                    self._times[key] = -1 if key == last else records[-1].time_ms or 0
            for key in looked.closed:
                del self._at[key]
            self._at |= {
                key: looked.earliest[key]
                for key in looked.earliest.keys() - lost - looked.records.keys()
            }
            self._anywhere -= looked.records.keys()
            for key in sorted(lost)[:1]:  # the others are behind at the next look, too
                offset, self._at[key] = self._at[key], looked.earliest[key]
                raise OffsetOutOfRange(key, offset, looked.earliest[key])
            await anyio.sleep(self._pauses.next_s(bool(looked.records)))
        return self._read.popleft()

    def _turns(self) -> Mapping[str, int]:
        """The next offset of each key, in the order in which they are asked for."""
        at = self._at or {}
        if self._answers % TURN == 0:
            return at
        return {key: at[key] for key in sorted(at, key=self._times.__getitem__)}

    async def _first(self) -> dict[str, int]:
        start = self._start
        if callable(start):
            return {key: await start(key) for key in self._keys}
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
