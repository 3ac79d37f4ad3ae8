"""What readers of a log ask of its store: requests and bytes, counted on a clock that jumps."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from math import inf
from typing import Any

import anyio
import pytest

from leaderless.api import consumer as by_hand
from leaderless.api.log import Log
from leaderless.core.headlog.compaction import Compactor
from leaderless.core.process import Process
from leaderless.core.shape import Shape
from leaderless.errors import Unfit
from leaderless.hosting.fsck import check
from leaderless.hosting.host import beside, running
from leaderless.hosting.maintenance import COMPACT_LOOK_S
from leaderless.hosting.place import bounds_of, initialise, new_shape
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found, Store
from leaderless.store.wrapped import Counted
from tests.around import UPDATES, Around, Call, Kind

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

LATENCY_S = 0.02
RECORDS = 300
READ = {"get": 1}


class Far(Counted):
    """A store that counts what is read, and takes its time for it."""

    async def read(self, key: str) -> Found | None:
        await anyio.sleep(LATENCY_S)
        return await super().read(key)

    async def read_again(self, key: str, known: Found) -> Found | None:
        await anyio.sleep(LATENCY_S)
        return await super().read_again(key, known)


@asynccontextmanager
async def log_on(store: Store, memory_bytes: int = 3 << 25) -> AsyncIterator[Log]:
    """A log of two segments in a run, which hold ten records."""
    shape = replace(
        new_shape(store),
        seal_entries=1,
        segments_per_run=2,
        page_children=4,
        run_bytes=1 << 14,
    )
    await initialise(store, shape=shape)
    bounds = bounds_of(store, 5.0, 1.0, shape)
    limits = replace(bounds.limits, memory_bytes=memory_bytes)
    log = Log(store, bounds._replace(limits=limits))
    async with running(log.host):
        yield log


def values(first: int, end: int) -> list[str]:
    return [f"{number:01000}" for number in range(first, end)]


async def loaded(*keys: str) -> MemoryStore:
    store = MemoryStore()
    async with log_on(store) as log:
        for key in keys:
            for first in range(0, RECORDS, 5):
                await log.append_many(key, values(first, first + 5))
        await log.compact()
    return store


async def test_a_look_at_an_unchanged_head_has_no_bytes() -> None:
    store = Far(MemoryStore())
    async with log_on(store) as log, log_on(store) as other:
        await log.append("k", 0)
        for reader in (log, other):
            await reader.read("k")
            await anyio.sleep(1)
            store.clear()
            assert await reader.read("k", 1) == []
            assert (store.requests, store.bytes_read) == (READ, 0)
        await other.append("k", 1)
        [record] = await log.read("k", 1)  # a read that could be newer is
        assert record.value == 1


async def test_a_read_below_what_the_reader_has_asks_for_nothing() -> None:
    store = Far(MemoryStore())
    async with log_on(store) as log, log_on(store) as other:
        await log.append_many("k", [*range(10)])
        await other.read("k")
        store.clear()
        assert [record.value for record in await other.read("k", 2, 5)] == [2, 3, 4, 5, 6]
        assert len(await other.read_many({"k": 0}, 10)) == 1
        assert not store.requests
        assert len(await other.read("k", 2, 9)) == 8  # there could be a ninth
        assert (store.requests, store.bytes_read) == (READ, 0)


@pytest.mark.parametrize("latency_s", [2.0, 0.5])
async def test_an_idle_tail_looks_as_rarely_as_it_may(latency_s: float) -> None:
    store = Far(MemoryStore())
    async with log_on(store) as log, anyio.create_task_group() as tasks:
        await log.append_many("k", ["x" * 1000] * 10)
        tail = log.tail(["k"], "earliest", latency_s)
        for _ in range(10):
            await anext(tail)
        found: list[float] = []

        async def next_one() -> None:
            await anext(tail)
            found.append(anyio.current_time())

        tasks.start_soon(next_one)
        await anyio.sleep(60)
        store.clear()
        await anyio.sleep(600)
        assert store.requests.total() <= 600 / latency_s
        assert store.bytes_read == 0
        async with log_on(store) as other:
            since = anyio.current_time()
            await other.append("k", 0)
            await anyio.sleep(2 * latency_s)
        assert found
        assert found[0] - since <= latency_s + 0.01


async def test_a_latency_of_nothing_is_refused() -> None:
    async with log_on(MemoryStore()) as log:
        with pytest.raises(Unfit, match="latency_s must be above 0 seconds, got 0"):
            log.tail(["k"], latency_s=0)


async def test_a_reader_in_order_fetches_each_byte_once_and_ahead() -> None:
    store = await loaded("k")
    far = Far(store)
    async with log_on(far) as log:
        await log.keys()
        far.clear()
        since = anyio.current_time()
        at = 0
        while records := await log.read("k", at, 5):
            assert [record.value for record in records] == values(at, at + len(records))
            at += len(records)
        seconds = anyio.current_time() - since
    assert at == RECORDS
    assert far.bytes_read <= 1.1 * RECORDS * 1002
    assert seconds < LATENCY_S * far.requests.total() / 2


async def test_readers_of_several_keys_push_out_nothing_that_the_others_need() -> None:
    keys = "abcd"
    far = Far(await loaded(*keys))
    async with log_on(far, memory_bytes=1 << 18) as log:
        await log.keys()
        far.clear()
        for at in range(0, RECORDS, 5):
            for key in keys:
                records = await log.read(key, at, 5)
                assert [record.value for record in records] == values(at, at + 5)
    assert (
        far.bytes_read <= 3 * len(keys) * RECORDS * 1002
    )  # of 7 when each reads ahead as if it was alone


@pytest.mark.parametrize("offset", [-1, 1 << 63, 1 << 64, True])
async def test_what_is_no_offset_is_refused_and_the_log_goes_on(offset: int) -> None:
    async with log_on(MemoryStore()) as log:
        await log.append("k", 0)
        for refused in (
            log.read("k", offset),
            by_hand.ack(log.cursors, "g", "k", offset, through=True),
        ):
            with pytest.raises(Unfit, match="an offset must be an int from 0 to 2"):
                await refused
        assert len(await log.read("k")) == 1


# ---------------------------------------------------------------- compaction as they append

CLOSES_S = 1.0
LARGE = 16 * ["x" * 10_000]  # more than a segment


class Slow(Around):
    """Requests take `takes_s`, and `stuck_s` to create what begins with `stuck`; they are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = self.bytes_read = 0
        self.takes_s, self.stuck, self.stuck_s = 0.0, "none", inf
        self.read_keys: Counter[str] = Counter()

    async def around(self, kind: Kind, key: str, call: Call) -> Any:
        stuck = kind == "create" and key.startswith(self.stuck)
        self.writes += kind in ("write", *UPDATES)
        await anyio.sleep(self.stuck_s if stuck else self.takes_s)
        answer = await call()
        if kind == "read":
            self.read_keys[key] += 1
            self.bytes_read += len(answer.value) if answer else 0
        return answer


def small(store: Store, run_bytes: int = 1 << 19) -> Shape:
    """Segments of two entries, four of them in a run."""
    return replace(new_shape(store), seal_entries=2, segments_per_run=4, run_bytes=run_bytes)


@asynccontextmanager
async def idle_log_on(store: Store, run_bytes: int = 1 << 19) -> AsyncIterator[Log]:
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
        async with idle_log_on(store) as log:
            for number in range(40):
                await log.append("k", number)
    return store


async def test_who_only_reads_writes_nothing(store: Slow) -> None:
    async with idle_log_on(store) as reader:
        assert len(await reader.read("k", 0, 100)) == 40
        writes = store.writes
        await anyio.sleep(10 * COMPACT_LOOK_S)
        assert ((await reader.status()).compacted, store.writes) == (0, writes)
    assert (await check(store)).findings == []


async def test_those_that_append_next_compact_it_once(store: Slow) -> None:
    async with idle_log_on(store) as one, idle_log_on(store) as other:
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

    async with (
        idle_log_on(store) as one,
        idle_log_on(store) as other,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(compacts, one)
        tasks.start_soon(compacts, other)
    assert found == [16, 16]


async def test_a_large_segment_is_a_run_and_no_other_is_read_for_it(store: Slow) -> None:
    async with idle_log_on(store, run_bytes=1) as log:
        store.read_keys.clear()
        assert await log.compact() == 16
    read = [times for key, times in store.read_keys.items() if key.startswith("segment/")]
    assert max(read) <= 2  # by the replica that looks what is sealed, and for the run


async def test_a_process_without_news_makes_no_request(store: Slow) -> None:
    async with idle_log_on(store) as reader:
        await reader.keys()
        await anyio.sleep(10 * COMPACT_LOOK_S)
        reads = store.read_keys.total()
        await anyio.sleep(100 * COMPACT_LOOK_S)
        assert store.read_keys.total() == reads


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
        async with idle_log_on(store) as log:
            await log.append("k", number)
    async with idle_log_on(store) as log:
        assert (await log.status()).compacted >= 12


async def test_closing_is_bounded_and_says_what_is_left(
    store: Slow, caplog: pytest.LogCaptureFixture
) -> None:
    async with idle_log_on(store) as log:
        await log.append("k", 1)
        store.stuck = "run/"
        with anyio.move_on_after(0.1):
            await log.compact()
        since = anyio.current_time()
    assert anyio.current_time() - since == pytest.approx(CLOSES_S)
    assert "20 segments to be compacted: the next process that appends" in caplog.text
