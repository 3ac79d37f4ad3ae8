"""Where a case of the matrix plays: a store, and logs on it, each in a process of its own."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from leaderless.api.log import Log
from leaderless.api.record import Record
from leaderless.hosting import fsck
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.calls import side_by_side
from leaderless.store.port import Store, all_of
from leaderless.store.registers import canonical
from tests.contract.matrix.faulty import Faulty

KEY, GROUP = "k", "g"
LARGE = "x" * 200
TOMBSTONE = canonical({"deleted": True})


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
