"""A process that only reads compacts what those that appended have left, on a clock that jumps."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from leaderless.core.headlog.compaction import Compactor
from leaderless.core.process import Process
from leaderless.core.shape import Shape
from leaderless.library.fsck import check
from leaderless.library.host import beside, running
from leaderless.library.log import Log
from leaderless.library.maintenance import COMPACT_LOOK_S
from leaderless.library.place import bounds_of, initialise, new_shape
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


class Counted(MemoryStore):
    """A store that counts reads."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.read_takes_s = 0.0
        self.read_keys: Counter[str] = Counter()

    async def read(self, key: str) -> Found | None:
        self.reads += 1
        self.read_keys[key] += 1
        await anyio.sleep(self.read_takes_s)
        return await super().read(key)


def small(store: MemoryStore, run_bytes: int = 1 << 19) -> Shape:
    """Segments of two entries, four of them in a run."""
    return replace(new_shape(store), seal_entries=2, segments_per_run=4, run_bytes=run_bytes)


@asynccontextmanager
async def log_on(store: MemoryStore, run_bytes: int = 1 << 19) -> AsyncIterator[Log]:
    bounds = bounds_of(store, 5.0, 1.0)
    log = Log(store, bounds._replace(shape=small(store, run_bytes)))
    async with running(log.host), beside(*log.chores):
        yield log


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """A log with segments that nobody has compacted: the process that appended died too early."""

    def dies(_self: Compactor) -> Process[None]:
        yield from ()

    store = Counted()
    await initialise(store, shape=small(store))
    with monkeypatch.context() as patch:
        patch.setattr(Compactor, "consider", dies)
        async with log_on(store) as log:
            for number in range(40):
                await log.append("k", number)
    return store


async def test_a_reader_compacts_what_waits(store: Counted) -> None:
    async with log_on(store) as reader:
        before = await reader.status()
        assert (before.compacted, before.segments) == (0, 19)
        await anyio.sleep(3 * COMPACT_LOOK_S)
        assert (await reader.status()).compacted == 16
        assert len(await reader.read("k", 0, 100)) > 0
    assert (await check(store)).findings == []


async def test_many_readers_compact_it_once(store: Counted) -> None:
    async with log_on(store) as one, log_on(store) as other:
        for log in (one, other):
            await log.keys()
        await anyio.sleep(10 * COMPACT_LOOK_S)
        assert (await one.status()).compacted == (await other.status()).compacted == 16
    assert (await check(store)).findings == []


async def test_who_asks_for_compaction_waits_for_the_process_that_is_at_it(store: Counted) -> None:
    """(1) Two ask at once. (2) One has the claim. (3) The other returns when all is compacted, too."""
    found: list[int] = []
    store.read_takes_s = 0.01

    async def compacts(log: Log) -> None:
        found.append(await log.compact())

    async with log_on(store) as one, log_on(store) as other, anyio.create_task_group() as tasks:
        tasks.start_soon(compacts, one)
        tasks.start_soon(compacts, other)
    assert found == [16, 16]


async def test_a_large_segment_is_a_run_and_no_other_is_read_for_it(store: Counted) -> None:
    async with log_on(store, run_bytes=1) as log:
        store.read_keys.clear()
        assert await log.compact() == 16
    read = [times for key, times in store.read_keys.items() if key.startswith("segment/")]
    assert max(read) <= 2  # by the replica that looks what is sealed, and for the run


async def test_a_process_without_news_makes_no_request(store: Counted) -> None:
    async with log_on(store) as reader:
        await reader.keys()
        await anyio.sleep(10 * COMPACT_LOOK_S)
        reads = store.reads
        await anyio.sleep(100 * COMPACT_LOOK_S)
        assert store.reads == reads
