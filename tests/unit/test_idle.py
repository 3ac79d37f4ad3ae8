"""Those that append compact as they go, and who only reads writes nothing; on a clock that jumps."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from math import inf

import anyio
import pytest

from leaderless.api.log import Log
from leaderless.core.headlog.compaction import Compactor
from leaderless.core.process import Process
from leaderless.core.shape import Shape
from leaderless.hosting.fsck import check
from leaderless.hosting.host import beside, running
from leaderless.hosting.maintenance import COMPACT_LOOK_S
from leaderless.hosting.place import bounds_of, initialise, new_shape
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found, Version

CLOSES_S = 1.0
LARGE = 16 * ["x" * 10_000]  # more than a segment
pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


class Slow(MemoryStore):
    """A store whose requests take `takes_s`, and `stuck_s` where `stuck` begins a name; it counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = self.writes = self.bytes_read = 0
        self.takes_s = 0.0
        self.stuck, self.stuck_s = "none", inf
        self.read_keys: Counter[str] = Counter()

    async def read(self, key: str) -> Found | None:
        self.reads += 1
        self.read_keys[key] += 1
        await anyio.sleep(self.takes_s)
        found = await super().read(key)
        self.bytes_read += len(found.value) if found else 0
        return found

    async def write(self, key: str, value: bytes) -> Version:
        self.writes += 1
        return await super().write(key, value)

    async def create(self, key: str, value: bytes) -> Version:
        await anyio.sleep(self.stuck_s if key.startswith(self.stuck) else self.takes_s)
        return await super().create(key, value)

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        await anyio.sleep(self.takes_s)
        return await super().compare_and_set(key, value, version)


def small(store: MemoryStore, run_bytes: int = 1 << 19) -> Shape:
    """Segments of two entries, four of them in a run."""
    return replace(new_shape(store), seal_entries=2, segments_per_run=4, run_bytes=run_bytes)


@asynccontextmanager
async def log_on(store: MemoryStore, run_bytes: int = 1 << 19) -> AsyncIterator[Log]:
    bounds = bounds_of(store, 5.0, 1.0)
    log = Log(store, bounds._replace(shape=small(store, run_bytes)))
    async with running(log.host), beside(*log.chores):
        yield log
        await log.ends(CLOSES_S)


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch) -> Slow:
    """A log with segments that nobody has compacted: the process that appended died too early."""

    def dies(*_: object) -> Process[None]:
        yield from ()

    store = Slow()
    await initialise(store, shape=small(store))
    with monkeypatch.context() as patch:
        patch.setattr(Compactor, "consider", dies)
        async with log_on(store) as log:
            for number in range(40):
                await log.append("k", number)
    return store


async def test_who_only_reads_writes_nothing(store: Slow) -> None:
    async with log_on(store) as reader:
        assert len(await reader.read("k", 0, 100)) == 40
        writes = store.writes
        await anyio.sleep(10 * COMPACT_LOOK_S)
        assert ((await reader.status()).compacted, store.writes) == (0, writes)
    assert (await check(store)).findings == []


async def test_those_that_append_next_compact_it_once(store: Slow) -> None:
    async with log_on(store) as one, log_on(store) as other:
        for log in (one, other):
            await log.append("k", "more")
        await anyio.sleep(10 * COMPACT_LOOK_S)
        assert (await one.status()).compacted == (await other.status()).compacted == 20
    assert (await check(store)).findings == []


async def test_who_asks_for_compaction_waits_for_the_process_that_is_at_it(store: Slow) -> None:
    """(1) Two ask at once. (2) One has the claim. (3) The other returns when all is compacted, too."""
    found: list[int] = []
    store.takes_s = 0.01

    async def compacts(log: Log) -> None:
        found.append(await log.compact())

    async with log_on(store) as one, log_on(store) as other, anyio.create_task_group() as tasks:
        tasks.start_soon(compacts, one)
        tasks.start_soon(compacts, other)
    assert found == [16, 16]


async def test_a_large_segment_is_a_run_and_no_other_is_read_for_it(store: Slow) -> None:
    async with log_on(store, run_bytes=1) as log:
        store.read_keys.clear()
        assert await log.compact() == 16
    read = [times for key, times in store.read_keys.items() if key.startswith("segment/")]
    assert max(read) <= 2  # by the replica that looks what is sealed, and for the run


async def test_a_process_without_news_makes_no_request(store: Slow) -> None:
    async with log_on(store) as reader:
        await reader.keys()
        await anyio.sleep(10 * COMPACT_LOOK_S)
        reads = store.reads
        await anyio.sleep(100 * COMPACT_LOOK_S)
        assert store.reads == reads


async def test_a_producer_compacts_as_it_goes() -> None:
    """However fast it is: then who opens the log next has little to read."""
    store = Slow()
    made = await initialise(store)
    limits = replace(bounds_of(store, 5.0, 1.0).limits, compaction_bytes=1 << 20)
    store.takes_s, store.stuck, store.stuck_s = 0.02, "run/", 1.0

    async def appends(log: Log) -> None:
        for _ in range(25):
            await log.append_many("k", LARGE)

    bounds = bounds_of(store, 30.0, 5.0, made.shape)._replace(limits=limits)
    log = Log(store, bounds)
    async with running(log.host):
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(appends, log)
        other = Log(store, bounds)
        store.bytes_read = 0
        async with running(other.host):
            status = await other.status()
    assert status.keys == {"k": 8 * 25 * len(LARGE)}
    assert store.bytes_read < 4 * (made.shape.run_bytes + limits.commit_bytes)  # of 32 MB
    assert (await check(store)).findings == []


async def test_a_program_that_is_opened_appends_little_and_is_closed_again_compacts() -> None:
    store = Slow()
    await initialise(store, shape=small(store))
    store.takes_s = 0.02
    for number in range(40):
        async with log_on(store) as log:
            await log.append("k", number)
    async with log_on(store) as log:
        assert (await log.status()).compacted >= 12


async def test_closing_is_bounded_and_says_what_is_left(
    store: Slow, caplog: pytest.LogCaptureFixture
) -> None:
    async with log_on(store) as log:
        await log.append("k", 1)
        store.stuck = "run/"
        with anyio.move_on_after(0.1):
            await log.compact()
        since = anyio.current_time()
    assert anyio.current_time() - since == pytest.approx(CLOSES_S)
    assert "20 segments to be compacted: the next process that appends" in caplog.text
