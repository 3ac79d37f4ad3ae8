"""Epochs of the Spark sink, without Spark: staged by tasks, committed once (`leaderless.spark.epochs`)."""

import random
from itertools import count

import pytest

from leaderless.errors import Broken, Definite
from leaderless.library.place import initialise
from leaderless.spark.epochs import abort, commit
from leaderless.spark.staging import Epoch, Plan, decide, groups, stage
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Version
from tests.epochs import ROWS, Dying, Killed, contents, left_over, opened, run

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store() -> MemoryStore:
    store = MemoryStore("x")
    await initialise(store)
    return store


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
        await second.append_encoded("q", 0, next(groups(ROWS, 100)))
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
