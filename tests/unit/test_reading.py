"""What readers of a log ask of its store, and compaction as they append; see `tests/datadriven/logs`, too."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import anyio
import pytest

from leaderless.api.log import Log
from leaderless.core.headlog.compaction import Compactor
from leaderless.core.process import Process
from leaderless.core.shape import Shape
from leaderless.hosting.host import beside, running
from leaderless.hosting.place import bounds_of, initialise, new_shape
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Store
from leaderless.store.wrapped import Counted
from leaderless.upkeep.fsck import check
from tests.around import READS, Fate, Fated

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

LATENCY_S = 0.02
RECORDS = 300


def far(store: Store) -> Counted:
    """A store that counts what is read, and takes its time for it."""
    return Counted(Fated(store, Fate(READS, before=partial(anyio.sleep, LATENCY_S))))


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


async def test_a_reader_in_order_fetches_each_byte_once_and_ahead() -> None:
    store = far(await loaded("k"))
    async with log_on(store) as log:
        await log.keys()
        store.clear()
        since = anyio.current_time()
        at = 0
        while records := await log.read("k", at, 5):
            assert [record.value for record in records] == values(at, at + len(records))
            at += len(records)
        seconds = anyio.current_time() - since
    assert at == RECORDS
    assert store.bytes_read <= 1.1 * RECORDS * 1002
    assert seconds < LATENCY_S * store.requests.total() / 2


async def test_readers_of_several_keys_push_out_nothing_that_the_others_need() -> None:
    keys = "abcd"
    store = far(await loaded(*keys))
    async with log_on(store, memory_bytes=1 << 18) as log:
        await log.keys()
        store.clear()
        for at in range(0, RECORDS, 5):
            for key in keys:
                records = await log.read(key, at, 5)
                assert [record.value for record in records] == values(at, at + 5)
    assert (
        store.bytes_read <= 3 * len(keys) * RECORDS * 1002
    )  # of 7 when each reads ahead as if it was alone


# ---------------------------------------------------------------- compaction as they append

CLOSES_S = 1.0
LARGE = 16 * ["x" * 10_000]  # more than a segment


def small(store: Store, run_bytes: int = 1 << 19) -> Shape:
    """Segments of two entries, four of them in a run."""
    return replace(new_shape(store), seal_entries=2, segments_per_run=4, run_bytes=run_bytes)


@asynccontextmanager
async def idle_log_on(store: Store, run_bytes: int = 1 << 19) -> AsyncIterator[Log]:
    log = Log(store, bounds_of(store, 5.0, 1.0)._replace(shape=small(store, run_bytes)))
    async with running(log.host), beside(*log.chores):
        yield log
        await log.ends(CLOSES_S)


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch) -> Fated:
    """A log with segments that nobody has compacted: the process that appended died too early."""

    def dies(*_: object) -> Process[None]:
        yield from ()

    store = Fated()
    await initialise(store, shape=small(store))
    with monkeypatch.context() as patch:
        patch.setattr(Compactor, "consider", dies)
        async with idle_log_on(store) as log:
            for number in range(40):
                await log.append("k", number)
    return store


async def test_a_read_of_many_pages_ends_with_what_was_acknowledged_before_it() -> None:
    """Also where the first page is known already, and full."""
    store = MemoryStore()
    page = [f"{number:015000}" for number in range(60)]
    async with log_on(store) as log, log_on(store) as other:
        for _ in range(3):  # this process knows more than an answer holds
            await log.append_many("a", page)
        await anyio.sleep(LATENCY_S)
        await other.append_many("a", page)
        assert len(await log.read("a", limit=1000)) == 4 * len(page)


async def test_a_large_segment_is_a_run_and_no_other_is_read_for_it(store: Fated) -> None:
    async with idle_log_on(store, run_bytes=1) as log:
        store.fates = [read := Fate(READS, "segment/", each=True)]
        assert await log.compact() == 16
    assert max(read.met.values()) <= 2  # by the replica that looks what is sealed, and for the run


async def test_a_producer_compacts_as_it_goes() -> None:
    """However fast it is: then who opens the log next has little to read."""
    slow = Fate(["create"], "run/", before=partial(anyio.sleep, 1.0))
    store = Counted(Fated(None, Fate(before=partial(anyio.sleep, 0.02)), slow))
    made = await initialise(store)
    limits = replace(bounds_of(store, 5.0, 1.0).limits, compaction_bytes=1 << 20)

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
        store.clear()
        async with running(other.host):
            status = await other.status()
    assert status.keys == {"k": 8 * 25 * len(LARGE)}
    assert store.bytes_read < 4 * (made.shape.run_bytes + limits.commit_bytes)  # of 32 MB
    assert (await check(store)).findings == []


async def test_closing_is_bounded_and_says_what_is_left(
    store: Fated, caplog: pytest.LogCaptureFixture
) -> None:
    async with idle_log_on(store) as log:
        await log.append("k", 1)
        store.fates = [Fate(["create"], "run/", before=anyio.sleep_forever)]
        with anyio.move_on_after(0.1):
            await log.compact()
        since = anyio.current_time()
    assert anyio.current_time() - since == pytest.approx(CLOSES_S)
    assert "20 segments to be compacted: the next process that appends" in caplog.text
