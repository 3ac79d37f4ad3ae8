"""Batches of records of a consumer; requests of groups are counted, on a clock that jumps."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from leaderless import open_log_sync
from leaderless.api.log import Log
from leaderless.errors import Unfit
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.counted import Counted
from leaderless.store.memory import MemoryStore
from tests.unit.test_consumer import dead_member

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


async def test_a_batch_has_records_of_one_key_in_a_row(log: Log) -> None:
    for key in "ab":
        await log.append_many(key, [*range(5)])
    async with log.consumer("g", "ab") as consumer:
        batches = [await consumer.batch(3), await consumer.batch()]
        assert sorted((batch[0].key, len(batch)) for batch in batches) in (
            [("a", 3), ("b", 5)],
            [("a", 5), ("b", 3)],
        )
        assert all([each.offset for each in batch] == [*range(len(batch))] for batch in batches)
        with anyio.move_on_after(60) as waiting:
            await consumer.batch()
        assert waiting.cancelled_caught  # the rest comes when what is under way is settled
        for batch in batches:
            await consumer.ack(batch[-1])
        short = min(batches, key=len)
        assert [each.offset for each in await consumer.batch()] == [3, 4]
        assert await log.committed("g", short[0].key) == {short[0].key: 2}
    with pytest.raises(Unfit, match="limit must be at least 1, got 0"):
        await consumer.batch(0)


async def test_an_acknowledgement_covers_what_came_before_it(log: Log) -> None:
    await log.append_many("a", [*range(6)])
    async with log.consumer("g", ["a"]) as consumer:
        batch = await consumer.batch(4)
        await consumer.ack(batch[1])
        assert await log.committed("g", ["a"]) == {"a": 1}
        for settled in batch[:2]:
            with pytest.raises(Unfit, match="settled"):
                await consumer.ack(settled)
        await consumer.ack(batch[3])
        batch = await consumer.batch()
        assert [each.offset for each in batch] == [4, 5]
        await consumer.fail(batch[1])  # the first one was processed
        assert await log.committed("g", ["a"]) == {"a": 4}
        assert (await anext(consumer)).offset == 5
    assert (await log.cursors.read("g", "a")).failures == 1


@pytest.mark.parametrize("how", ["fails", "dies"])
async def test_no_record_is_buried_for_a_failure_of_its_batch(log: Log, how: str) -> None:
    """Only the record at offset 2 is bad, and the program knows no more than that its batch failed."""
    await log.append_many("a", [*range(5)])
    processed: list[int] = []
    with anyio.fail_after(1000):
        while len(processed) < 4:
            if how == "dies" and len(processed) < 3:
                await dead_member(log, "a")
            async with log.consumer("g", ["a"], failures_max=3) as consumer:
                with anyio.move_on_after(30):
                    while batch := await consumer.batch():
                        offsets = [each.offset for each in batch]
                        if 2 not in offsets:
                            processed += offsets
                            await consumer.ack(batch[-1])
                        elif how == "fails":
                            await consumer.fail(batch[0])
                        else:
                            break  # the next member finds it dead
    assert processed == [0, 1, 3, 4]
    letters = [letter.value for letter in await log.read("dead/g")]
    assert letters == [{"key": "a", "offset": 2, "failures": 3}]


def test_the_sync_consumer_has_batches(url: str) -> None:
    with open_log_sync(url) as log:
        log.append_many("a", [1, 2, 3])
        with log.consumer("g", ["a"]) as consumer:
            batch = consumer.batch(2)
            consumer.ack(batch[-1])
            assert [each.value for each in (*batch, next(consumer))] == [1, 2, 3]


# ---------------------------------------------------------------- requests


@asynccontextmanager
async def counted() -> AsyncIterator[tuple[Counted, Log]]:
    store = Counted(MemoryStore())
    await initialise(store)
    log = Log(store, bounds_of(store, 30.0, 5.0))
    async with running(log.host):
        yield store, log


@pytest.mark.parametrize("keys", [1, 10, 100])
async def test_an_idle_member_beats_three_times_a_lease_whatever_its_keys(keys: int) -> None:
    names = [f"k{number}" for number in range(keys)]
    async with counted() as (store, log), log.consumer("g", names) as consumer:
        with anyio.move_on_after(61):
            await anext(consumer)
        assert sorted(consumer.keys) == sorted(names)
        store.clear()
        with anyio.move_on_after(60):
            await anext(consumer)
        assert store.requests["put"] <= 18
        assert store.requests["get"] <= 30
        assert store.bytes_written <= 18 * (200 + 50 * keys)


async def test_members_that_are_not_alone_read_before_they_write() -> None:
    async with counted() as (store, log), log.consumer("g", "ab"), log.consumer("g", "ab"):
        await anyio.sleep(61)
        store.clear()
        await anyio.sleep(60)
        assert store.requests["put"] <= 2 * 18
        assert store.requests["get"] <= 2 * 18


@pytest.mark.parametrize(("limit", "puts"), [(1, 100), (100, 1)])
async def test_an_acknowledgement_is_one_write(limit: int, puts: int) -> None:
    async with counted() as (store, log):
        await log.append_many("a", [*range(100)])
        async with log.consumer("g", ["a"], lease_s=1e6) as consumer:
            records: list[Any] = []
            while len(records) < 100:
                records += await consumer.batch(limit)
                if len(records) == limit:
                    store.clear()
                await consumer.ack(records[-1])
            assert store.requests["put"] == puts
            assert store.requests["get"] == 0


async def test_commits_of_one_process_are_one_write_each() -> None:
    async with counted() as (store, log):
        await log.commit("g", {"a": 0})
        store.clear()
        for offset in range(1, 10):
            await log.commit("g", {"a": offset})
        assert store.requests == {"put": 9}
