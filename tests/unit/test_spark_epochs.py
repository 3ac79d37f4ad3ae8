"""Epochs of the Spark sink, without Spark: staged by tasks, committed once (`leaderless.spark.epochs`)."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TypeVar

import orjson
import pytest

from leaderless.library.errors import Broken, Definite
from leaderless.library.host import running
from leaderless.library.log import Log
from leaderless.library.place import bounds_of, initialise
from leaderless.spark.encoding import Row
from leaderless.spark.epochs import abort, commit
from leaderless.spark.staging import Epoch, Plan, decide, groups, stage
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found, Listed, Store, Version, all_of

pytestmark = pytest.mark.anyio
T = TypeVar("T")
ROWS = [Row(f"k{number % 3}", orjson.dumps(number), True) for number in range(16)]


class Killed(BaseException):
    """The process is gone."""


class Dying:
    """A store whose process is killed at its call number `last`: before it is carried out, or after that."""

    def __init__(self, store: Store, last: int, *, after: bool) -> None:
        self.url, self.value_bytes_max = store.url, store.value_bytes_max
        self._store, self._left, self._after = store, last, after

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        self._left -= 1
        if self._left < 0 or (self._left == 0 and not self._after):
            raise Killed
        answer = await call()
        if self._left == 0:
            raise Killed
        return answer

    async def read(self, key: str) -> Found | None:
        return await self._call(partial(self._store.read, key))

    async def write(self, key: str, value: bytes) -> Version:
        return await self._call(partial(self._store.write, key, value))

    async def create(self, key: str, value: bytes) -> Version:
        return await self._call(partial(self._store.create, key, value))

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        return await self._call(partial(self._store.compare_and_set, key, value, version))

    async def delete(self, keys: Sequence[str]) -> None:
        return await self._call(partial(self._store.delete, keys))

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = 1000
    ) -> list[Listed]:
        return await self._call(partial(self._store.list_objects, folder, after, limit))

    async def aclose(self) -> None:
        await self._store.aclose()


@pytest.fixture
async def store() -> MemoryStore:
    store = MemoryStore("x")
    await initialise(store)
    return store


@asynccontextmanager
async def opened(store: Store, batch_bytes: int) -> AsyncIterator[Log]:
    bounds = bounds_of(store, 5.0, 1.0)
    limits = replace(bounds.limits, batch_bytes=batch_bytes, seal_entries=2, segments_per_run=2)
    log = Log(store, bounds._replace(limits=limits))
    async with running(*log.hosts):
        yield log


async def run(store: Store, epoch: Epoch, rows: list[Row], batch_bytes: int = 100) -> None:
    """What Spark does with an epoch: tasks stage, in any order and split; then the driver commits."""
    rows = random.Random(repr(rows)).sample(rows, len(rows))
    parts: list[str] = []
    for task in range(3):
        parts += await stage(store, f"{epoch.folder}/{task}-{next(ATTEMPTS)}", rows[task::3])
    async with opened(store, batch_bytes) as log:
        await commit(log, store, epoch, parts)


ATTEMPTS = count()


async def contents(store: Store) -> list[int]:
    async with opened(store, 100) as log:
        found: list[int] = []
        for key, end in (await log.keys()).items():
            offset = 0
            while offset < end:
                records = await log.read(key, offset)
                found += [record.value for record in records]  # type: ignore[misc]
                offset = records[-1].offset + 1
        return found


async def left_over(store: Store) -> list[str]:
    return [listed.key async for listed in all_of(store, "sink")]


@pytest.mark.parametrize("batch_bytes", [100, 10_000], ids=["many batches", "one batch"])
@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after it"])
async def test_a_driver_killed_at_any_call_appends_each_row_once(
    *, batch_bytes: int, after: bool
) -> None:
    """The driver of epoch 1 dies at its n-th call of the store, for every n; another repeats the epoch."""
    for last in count(1):
        store = MemoryStore("x")
        await initialise(store)
        await run(store, Epoch("q", 0), ROWS[:4], batch_bytes)
        dead = False
        try:
            await run(Dying(store, last, after=after), Epoch("q", 1), ROWS[4:], batch_bytes)
        except* Killed:
            dead = True
        rows = random.Random(last).sample(ROWS[4:], 12)  # in another order, so over other tasks
        await run(store, Epoch("q", 1), rows, batch_bytes)
        await run(
            store, Epoch("q", 1), rows, batch_bytes
        )  # also if Spark lost its note of the commit
        assert sorted(await contents(store)) == list(range(16)), last
        assert await left_over(store) == []
        if not dead:
            assert last > 10
            return


async def test_two_drivers_follow_one_plan(store: MemoryStore) -> None:
    """One driver has planned and appended half; the other, with rows in another order, goes on with that."""
    epoch = Epoch("q", 0)
    mine = await stage(store, f"{epoch.folder}/0-mine", ROWS)
    other = await stage(store, f"{epoch.folder}/0-other", ROWS[::-1])
    async with opened(store, 100) as log, opened(store, 100) as second:
        await decide(store, epoch, Plan(tuple(mine), 100))
        await second.append_named("q", 0, [(row.key, row.value) for row in next(groups(ROWS, 100))])
        await commit(log, store, epoch, other)
        await commit(second, store, epoch, mine)
    assert sorted(await contents(store)) == list(range(16))


async def test_a_driver_that_slept_through_its_epoch_appends_nothing() -> None:
    class Sleeping(MemoryStore):
        """While the driver sleeps, before it makes its plan, another one finishes the epoch and the next."""

        async def create(self, key: str, value: bytes) -> Version:
            if key.endswith("/plan") and not self.woken:
                self.woken = True
                await run(self, Epoch("q", 0), ROWS[:8])
                await run(self, Epoch("q", 1), ROWS[8:])
            return await super().create(key, value)

        woken = False

    slow = Sleeping("x")
    await initialise(slow)
    await run(slow, Epoch("q", 0), ROWS[:8])
    assert slow.woken
    assert sorted(await contents(slow)) == list(range(16))


async def test_an_aborted_epoch_leaves_nothing_unless_it_was_planned(store: MemoryStore) -> None:
    epoch = Epoch("q", 0)
    parts = await stage(store, f"{epoch.folder}/0-0", ROWS)
    await abort(store, epoch, parts)
    assert await left_over(store) == []
    parts = await stage(store, f"{epoch.folder}/0-1", ROWS)
    await decide(store, epoch, Plan(tuple(parts), 100))
    await abort(store, epoch, parts)
    await run(store, epoch, ROWS[:5])
    assert sorted(await contents(store)) == list(range(16))  # as planned


async def test_writers_do_not_meet(store: MemoryStore) -> None:
    for writer in ("a", "a/0", "a=2F0", ".."):
        await run(store, Epoch(writer, 0), ROWS[:1])
    assert await contents(store) == [0, 0, 0, 0]


async def test_an_epoch_deletes_what_killed_tasks_have_left_before_it(store: MemoryStore) -> None:
    for number in (0, 1, 3):
        await stage(store, f"{Epoch('q', number).folder}/0-killed", ROWS)
    await run(store, Epoch("q", 2), ROWS)
    assert await left_over(store) == [f"{Epoch('q', 3).folder}/0-killed/000000"]


async def test_a_plan_of_another_version_is_refused(store: MemoryStore) -> None:
    await store.create(f"{Epoch('q', 0).folder}/plan", b'{"format": 2}')
    with pytest.raises(Definite, match="update it"):
        await run(store, Epoch("q", 0), ROWS)
    assert await contents(store) == []


async def test_staged_rows_that_are_gone_are_an_error(store: MemoryStore) -> None:
    epoch = Epoch("q", 0)
    async with opened(store, 100) as log:
        with pytest.raises(Broken, match="not there"):
            await commit(log, store, epoch, ["sink/q/nothing"])
