"""A vacuum of what sinks have staged: it deletes what nobody will append, and no row is lost or doubled."""

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import Any
from unittest.mock import ANY

import pytest

from leaderless.errors import Definite
from leaderless.hosting import fsck
from leaderless.hosting.maintenance import Vacuumed
from leaderless.hosting.place import initialise
from leaderless.hosting.staged import Plan, _condemn, attempt_name, condemned_in, staged_at
from leaderless.spark.epochs import commit
from leaderless.spark.staging import Epoch, decide
from leaderless.store.calls import Held, read_value
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Listed, Store
from tests.around import Around, Call, CutOff, Kind
from tests.epochs import ROWS, Dying, Killed, contents, left_over, opened, run, stage

pytestmark = pytest.mark.anyio
EPOCH = Epoch("spark/q", 0)
HOURS_S = 7200.0
ALL = list(range(16))


@pytest.fixture
async def store() -> MemoryStore:
    return await new_store()


async def new_store() -> MemoryStore:
    store = MemoryStore("x")
    await initialise(store)
    return store


async def staged(store: Store, name: str = "0-a") -> list[str]:
    return await stage(store, f"{EPOCH.folder}/{name}", ROWS)


async def vacuum(store: Store) -> Vacuumed:
    async with opened(store, 100) as log:
        return await log.vacuum(3600)


async def commit_parts(store: Store, parts: list[str]) -> None:
    async with opened(store, 100) as log:
        await commit(log, store, EPOCH, parts)


async def test_what_no_driver_has_planned_goes_after_the_retention(store: MemoryStore) -> None:
    [part] = await staged(store)
    assert (await vacuum(store)).staged == 0
    store.ahead_s = HOURS_S
    found = await store.list_objects("sink")
    assert (await vacuum(store))[-2:] == (1, found[0].size)
    assert await left_over(store) == [f"{EPOCH.folder}/plan"]
    assert part not in await left_over(store)
    assert (await vacuum(store)).staged == 0
    await run(store, EPOCH, ROWS)
    assert await left_over(store) == []


async def test_an_epoch_that_still_grows_stays(store: MemoryStore) -> None:
    await staged(store)
    store.ahead_s = HOURS_S
    await staged(store, "1-b")
    assert (await vacuum(store)).staged == 0


async def test_the_commit_of_a_writer_that_stood_still_fails_definitely(store: MemoryStore) -> None:
    """(1) Tasks stage. (2) The driver stands still for longer than the retention. (3) It commits: too late."""
    parts = await staged(store)  # (1)
    store.ahead_s = HOURS_S  # (2)
    assert (await vacuum(store)).staged == 1
    with pytest.raises(Definite, match="Nothing of this epoch was appended"):  # (3)
        await commit_parts(store, parts)
    assert await contents(store) == []
    await run(store, EPOCH, ROWS)  # what Spark does then
    await commit_parts(store, parts)  # and even if the old driver comes back: the epoch is done
    assert sorted(await contents(store)) == ALL


async def test_a_planned_epoch_stays_however_old(store: MemoryStore) -> None:
    parts = await staged(store)
    await decide(store, EPOCH, Plan(tuple(parts), 100))
    store.ahead_s = HOURS_S
    assert (await vacuum(store)).staged == 0
    await run(store, EPOCH, ROWS[:3])
    assert sorted(await contents(store)) == ALL  # as planned


async def test_what_is_left_of_a_finished_epoch_goes_with_its_plan(store: MemoryStore) -> None:
    await run(store, EPOCH, ROWS)
    parts = await staged(store)
    await decide(store, EPOCH, Plan(tuple(parts), 100))  # by a driver that slept
    store.ahead_s = HOURS_S
    assert (await vacuum(store)).staged == 2
    assert await left_over(store) == []
    assert sorted(await contents(store)) == ALL


async def test_a_vacuum_that_is_killed_anywhere_takes_no_row(store: MemoryStore) -> None:
    for last in count(1):
        store = await new_store()
        parts = await staged(store)
        store.ahead_s = HOURS_S
        dead = False
        try:
            await vacuum(Dying(store, last, after=bool(last % 2)))
        except* Killed:
            dead = True
        await _commit_or_start_again(store, parts)
        assert sorted(await contents(store)) == ALL, last
        if not dead:
            return


async def _commit_or_start_again(store: Store, parts: list[str]) -> None:
    try:
        await commit_parts(store, parts)
    except Definite:
        assert await contents(store) == []
        await run(store, EPOCH, ROWS)


class Interrupted(Around):
    """A store that lets `other` happen before its call number `last`."""

    def __init__(self, store: Store, last: int, other: Callable[[], Awaitable[object]]) -> None:
        super().__init__(store)
        self._calls_left, self._other = last, other

    async def around(self, kind: Kind, key: str, call: Call) -> Any:
        self._calls_left -= 1
        if self._calls_left == 0:
            await self._other()
        return await call()

    @property
    def happened(self) -> bool:
        return self._calls_left <= 0


@pytest.mark.parametrize("slow", ["driver", "vacuum"])
async def test_a_commit_and_a_vacuum_meet_at_any_call(slow: str) -> None:
    """One of them stands still before its n-th call of the store, for every n, while the other runs."""
    outcomes = set()
    for last in count(1):
        store = await new_store()
        parts = await staged(store)
        store.ahead_s = HOURS_S

        async def driver(through: Store, parts: list[str] = parts) -> None:
            try:
                await commit_parts(through, parts)
            except Definite:
                outcomes.add("refused")
            else:
                outcomes.add("appended")

        if slow == "driver":
            through = Interrupted(store, last, partial(vacuum, store))
            await driver(through)
        else:
            through = Interrupted(store, last, partial(driver, store))
            await vacuum(through)
        assert sorted(await contents(store)) in ([], ALL), last
        await _commit_or_start_again(store, parts)
        assert sorted(await contents(store)) == ALL, last
        if not through.happened:
            break
    assert outcomes == {"refused", "appended"}


async def test_a_condemnation_that_comes_damaged_is_read_again(store: MemoryStore) -> None:
    plan = EPOCH.plan
    a, b = (f"{EPOCH.folder}/{name}/000000" for name in ("0-a", "1-b"))
    assert await _condemn(store, plan, [a])
    assert await _condemn(CutOff(store, times=1), plan, [b])
    assert await read_value(store, plan, condemned_in) == Held(frozenset((a, b)), ANY, ANY)


async def test_fsck_knows_what_is_staged(store: MemoryStore) -> None:
    await staged(store)
    await decide(store, Epoch("q", 1), Plan((f"{EPOCH.folder}/0-a/000000",), 100))
    report = await fsck.check(store)
    assert (report.findings, report.staged) == ([], 2)
    store.ahead_s = HOURS_S
    await vacuum(store)
    assert (await fsck.check(store)).findings == []
    no_plan = b'{"format": 1, "what": 1}', b'{"parts": [], "batch_bytes": 1}', b'{"format": 2}'
    for number, text in enumerate(no_plan, 2):
        await store.write(Epoch("q", number).plan, text)
    found = {(each.invariant, each.object) for each in (await fsck.check(store)).findings}
    plans = {("RegistersReadable", Epoch("q", number).plan) for number in (2, 3, 4)}
    assert found == plans


def test_a_store_without_times_has_them_in_the_names() -> None:
    name, other = (f"{EPOCH.folder}/{attempt_name(3, 7)}/000000" for _ in range(2))
    assert name != other
    assert 0 < staged_at(Listed(name, None, None), 1e12) < 1e12
    assert staged_at(Listed(f"{EPOCH.folder}/000003-7/000000", None, None), 5.0) == 5.0
    assert staged_at(Listed(f"{EPOCH.folder}/plan", None, None), 5.0) == 0.0
