"""Where a case of the matrix plays: a store, and logs on it, each in a process of its own."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any

import anyio

from leaderless.api.log import Log
from leaderless.api.tail import Record
from leaderless.hosting import fsck
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.calls import side_by_side
from leaderless.store.port import OutcomeUnknown, Store, all_of
from leaderless.store.registers import canonical
from tests.around import UPDATES, Around, Call, Kind

KEY, GROUP = "k", "g"
LARGE = "x" * 200
TOMBSTONE = canonical({"deleted": True})


class Faulty(Around):
    """A store of one process. `before(kind, key)` is called first of all, and may raise.

    `lose_answers`: writes are carried out, and their answers lost. `dead`: nothing is done any more.
    `writes_left`: it dies before the write after so many.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.lose_answers = self.dead = False
        self.writes_left: int | None = None
        self.before: Callable[[str, str], Awaitable[None]] | None = None
        self.writes: list[str] = []

    async def around(self, kind: Kind, key: str, call: Call) -> Any:
        if self.dead:
            raise OutcomeUnknown("the process is dead")
        if self.before:
            await self.before(kind, key)
        if kind not in ("write", *UPDATES):
            return await call()
        if self.writes_left == 0:
            self.dead = True
            raise OutcomeUnknown("the process died before this write")
        if self.writes_left is not None:
            self.writes_left -= 1
        self.writes.append(key)
        version = await call()
        if self.lose_answers:
            raise OutcomeUnknown("the answer was lost")
        return version

    async def aclose(self) -> None:
        """The store is closed by the stage."""


class Stage:
    """A store, and logs on it, each in a process of its own.

    `ages`: whether its clock can be waited for.
    """

    def __init__(self, store: Store, *, ages: bool) -> None:
        self.store = store
        self.ages = ages

    @asynccontextmanager
    async def log(self, store: Store | None = None, *, made: bool = True) -> AsyncIterator[Log]:
        """A log with two entries a segment and two segments a run; large values begin at 64 bytes."""
        store = store or Faulty(self.store)
        bounds = bounds_of(store, 5.0, 0.2)
        shape = replace(bounds.shape, seal_entries=2, segments_per_run=2)
        if made:
            await initialise(store, "json", shape)
        limits = replace(bounds.limits, batch_bytes=1 << 15)
        log = Log(store, bounds._replace(shape=shape, limits=limits, inline_bytes=64))
        async with running(log.host):
            yield log

    async def fill(self, log: Log, count: int = 10, value: Any = None) -> None:
        """Append messages 0 to `count` - 1, one after the other."""
        for number in range(count):
            assert await log.append(KEY, [number, value]) == number

    async def read_afresh(self) -> list[Any]:
        """What a new process reads, and nothing is broken."""
        async with self.log() as log:
            records = await read_all(log)
        assert [record.offset for record in records] == [*range(len(records))]
        report = await fsck.check(self.store)
        assert report.findings == []
        return [record.value for record in records]

    async def is_whole(self, count: int = 10) -> bool:
        """Whether a new process reads what `fill` appended."""
        return [value[0] for value in await self.read_afresh()] == [*range(count)]

    async def deleted_segments(self) -> list[str]:
        """The segments of which a tombstone is left."""
        found = [(each.key, await self.store.read(each.key)) async for each in all_of(self.store)]
        return [
            key
            for key, value in found
            if key.startswith("segment/") and value and value.value == TOMBSTONE
        ]

    async def runs(self) -> list[str]:
        """The compacted runs."""
        return [each.key async for each in all_of(self.store, "run")]


async def read_all(log: Log, offset: int = 0) -> list[Record]:
    """Every record of the key from an offset on: one read may give fewer than there are."""
    records: list[Record] = []
    while found := await log.read(KEY, offset, 100):
        records += found
        offset = found[-1].offset + 1
    return records


async def at_once(count: int, make: Callable[[int], Awaitable[Any]]) -> list[Any]:
    """What `count` calls return that run at once."""
    return await side_by_side([partial(make, number) for number in range(count)])


async def compacted_to(log: Log, cursor: int) -> None:
    """Compact, again after the lease of another compactor is over, until so many segments are in runs."""
    for _ in range(30):
        if await log.compact() >= cursor:
            return
        await anyio.sleep(1.0)
    raise AssertionError("nobody compacts any more")


CASES: dict[str, Callable[[Stage], Awaitable[None]]] = {}
AGED: set[str] = set()  # those that wait for a lease or a retention


def case(name: str, *, aged: bool = False) -> Callable[[Any], Any]:
    """Take a case into the table, a coroutine that has a `stage`, or an open `log` on it, or both."""

    def add(function: Any) -> Any:
        assert name not in CASES
        wanted = signature(function).parameters

        async def play(stage: Stage) -> None:
            async with stage.log() if "log" in wanted else nullcontext() as log:
                has = {"stage": stage, "log": log}
                await function(**{each: has[each] for each in wanted})

        CASES[name] = play
        AGED.update([name] if aged else [])
        return function

    return add
