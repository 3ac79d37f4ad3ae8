"""A producer that stands still longer than the retention of `vacuum` leaves no record without its value.

The clock jumps, so hours take no time. Objects of large values count as two hours old at once.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import trio.testing

from leaderless.errors import Indefinite, LogError, Stalled
from leaderless.library.fsck import check
from leaderless.library.host import running
from leaderless.library.log import Log
from leaderless.library.place import bounds_of, initialise
from leaderless.store.port import Found, Version
from tests.unit.test_vacuum import Aged

pytestmark = pytest.mark.anyio
LARGE = "x" * 20_000
HOURS_S = 4 * 3600.0


@pytest.fixture
def anyio_backend() -> Any:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


class Reached(Aged):
    """What one process sees of `shared`; calls of the kinds in `cut` wait, and are made later."""

    def __init__(self, shared: Aged) -> None:
        super().__init__()
        self._objects, self._shared = shared._objects, shared
        self.cut: set[str] = set()
        self.whole = anyio.Event()

    async def _pass(self, kind: str) -> None:
        if kind in self.cut:
            await self.whole.wait()

    async def read(self, key: str) -> Found | None:
        await self._pass("read")
        return await self._shared.read(key)

    async def write(self, key: str, value: bytes) -> Version:
        version = await self._shared.write(key, value)
        await self._pass("answer")
        return version

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        await self._pass("head")
        return await self._shared.compare_and_set(key, value, version)


@pytest.fixture
async def shared() -> Aged:
    store = Aged()
    await initialise(store)
    return store


@asynccontextmanager
async def log_on(store: Aged) -> AsyncIterator[Log]:
    log = Log(store, bounds_of(store, 30.0, 5.0))
    async with running(*log.hosts):
        yield log


async def heals_after_a_vacuum(shared: Aged, reached: Reached) -> None:
    await anyio.sleep(HOURS_S / 2)
    async with log_on(shared) as other:
        assert (await other.vacuum(3600)).deleted == 1
    await anyio.sleep(HOURS_S / 2)
    reached.cut.clear()
    reached.whole.set()


async def require_whole(shared: Aged, records: int) -> None:
    assert (await check(shared)).findings == []
    async with log_on(shared) as log:
        assert len(await log.read("k")) == records


async def test_before_its_append_it_fails_for_certain(shared: Aged) -> None:
    """(1) The value's object is written. (2) The process stands still, a vacuum deletes it. (3) It goes on."""
    reached = Reached(shared)
    async with log_on(reached) as log, anyio.create_task_group() as tasks:
        await log.append("k", 0)
        reached.cut = {"answer"}
        tasks.start_soon(heals_after_a_vacuum, shared, reached)
        with pytest.raises(Stalled, match="nothing was appended"):
            await log.append("k", LARGE)
        await log.append("k", 1)
    await require_whole(shared, 2)


@pytest.mark.parametrize(
    "cut", [{"head"}, {"read"}, {"head", "read"}], ids=["head", "read", "head-and-read"]
)
async def test_in_its_append_nothing_is_appended_after_the_vacuum(
    shared: Aged, cut: set[str]
) -> None:
    """(1) The commit is on its way. (2) The network is gone for hours. (3) All that was sent arrives."""
    reached = Reached(shared)
    async with log_on(reached) as log:
        await log.append("k", 0)
        async with anyio.create_task_group() as tasks:
            reached.cut = cut | {"head"}
            tasks.start_soon(heals_after_a_vacuum, shared, reached)
            with pytest.raises(Indefinite):
                await log.append("k", LARGE)
        for _ in range(10):  # whatever the process still does by itself, it does now
            await anyio.sleep(60)
        try:
            await log.append("k", 1)
        except LogError:
            appended = 1
        else:
            appended = 2
    await require_whole(shared, appended)
