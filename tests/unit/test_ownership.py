"""How soon keys of a dead member are owned again (`leaderless.api.ownership`), on a clock that jumps."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import orjson
import pytest

from leaderless.api.consumer import Consumer
from leaderless.api.log import Log
from leaderless.hosting.host import running
from leaderless.hosting.members import Member, Roster, Tenure, roster_of
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found
from leaderless.store.wrapped import Wrapped

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

LEASE_S = 10.0
KEYS = "abcdefgh"


class Mortal(Wrapped):
    """A store as one process sees it; nothing comes of a call when it is `dead`. A call takes `request_s`.

    `damage`: what reads of the members bring in place of what is there.
    """

    dead = False
    damage: bytes | None = None
    request_s = 0.01

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in ("read", "create", "compare_and_set", "write"):
            return found

        async def call(*arguments: Any) -> Any:
            await anyio.sleep(self.request_s)
            if self.dead:
                await anyio.sleep_forever()
            if name == "read" and self.damage and arguments[0].endswith("/members"):
                return Found(self.damage, "1")
            return await found(*arguments)

        return call


@asynccontextmanager
async def member(
    shared: MemoryStore, keys: str = KEYS, **options: Any
) -> AsyncIterator[tuple[Mortal, Consumer]]:
    store = Mortal(shared)
    log = Log(store, bounds_of(store, 30.0, 5.0))
    async with (
        running(log.host),
        log.consumer("g", keys, lease_s=LEASE_S, **options) as consumer,
    ):
        try:
            yield store, consumer
        finally:
            store.dead = False  # or it could not leave


async def until_owned(members: list[Consumer], keys: str = KEYS) -> float:
    """How many seconds it takes until these own all keys."""
    began = anyio.current_time()
    while sorted(key for each in members for key in each.keys) != [*keys]:
        assert anyio.current_time() < began + 10 * LEASE_S, [each.keys for each in members]
        await anyio.sleep(0.1)
    return anyio.current_time() - began


@pytest.mark.parametrize("survivors", [1, 2, 3])
@pytest.mark.parametrize("alive_s", [60.0, 61.3, 62.4])
async def test_the_keys_of_a_dead_member_are_taken_soon_after_its_lease(
    survivors: int, alive_s: float
) -> None:
    shared = MemoryStore()
    await initialise(shared)
    async with member(shared) as (dying, _), anyio.create_task_group() as tasks:
        others: list[Consumer] = []

        async def lives() -> None:
            async with member(shared) as (_, consumer):
                others.append(consumer)
                await anyio.sleep_forever()

        for _ in range(survivors):
            tasks.start_soon(lives)
            await anyio.sleep(0.7)
        await anyio.sleep(alive_s)
        dying.dead = True
        assert await until_owned(others) <= 1.5 * LEASE_S
        await anyio.sleep(3 * LEASE_S)
        assert sorted(key for each in others for key in each.keys) == [*KEYS]
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("members", [1, 2, 3])
async def test_members_that_join_after_a_death_take_the_keys_soon_after_a_lease(
    members: int,
) -> None:
    """(1) A member owns all keys, and dies. (2) Others join, to whom it looks alive."""
    shared = MemoryStore()
    await initialise(shared)
    async with member(shared) as (dying, consumer), anyio.create_task_group() as tasks:
        assert await until_owned([consumer]) < 2
        dying.dead = True
        joined: list[Consumer] = []

        async def joins() -> None:
            async with member(shared) as (_, consumer):
                joined.append(consumer)
                await anyio.sleep_forever()

        for _ in range(members):
            tasks.start_soon(joins)
        await anyio.sleep(0.9 * LEASE_S)
        assert [key for each in joined for key in each.keys] == []
        assert await until_owned(joined) <= 0.6 * LEASE_S
        tasks.cancel_scope.cancel()


async def test_no_key_of_a_living_member_is_taken() -> None:
    shared = MemoryStore()
    await initialise(shared)
    async with member(shared) as (_, one), member(shared, keys_max=8) as (_, other):
        await anyio.sleep(3 * LEASE_S)
        kept = {*one.keys}
        for _ in range(200):
            await anyio.sleep(1.0)
            assert {*one.keys} == kept
            assert {*other.keys} == {*KEYS} - kept


async def test_who_was_overtaken_before_its_epoch_stood_in_the_cursor_owns_nothing() -> None:
    """(1) A member takes a claim. (2) Another one takes it, and writes its epoch. (3) The first goes on."""

    class Overtaken(MemoryStore):
        async def read(self, key: str) -> Found | None:
            if key == "group/g/cursor/a" and key not in self._objects:
                found = await super().read("group/g/members")
                assert found is not None
                old = roster_of(orjson.loads(found.value))
                keys = {"a": Tenure(2, "another")}
                overtaken = Roster(old.version + 1, {"another": Member(0)}, keys)
                await self.write("group/g/members", orjson.dumps(overtaken.value))
                await self.write(key, b'{"committed":null,"epoch":2,"failures":0,"by":"x"}')
            return await super().read(key)

    shared = Overtaken()
    await initialise(shared)
    async with member(shared, "a") as (_, consumer):
        log = consumer._log
        await log.append_named("w", 1, [("a", 1)])
        with anyio.move_on_after(LEASE_S / 2) as waiting:
            record = await anext(consumer)
            pytest.fail(f"{record} was delivered to a member that does not own its key")
        assert waiting.cancelled_caught
        with anyio.fail_after(2 * LEASE_S):  # the other one never beats: it is dead
            await consumer.ack(await anext(consumer))


@pytest.mark.parametrize("damaged", [b"[1]", b'{"epoch": "x"}', b"7", b"{"])
async def test_members_that_make_no_sense_end_no_member(damaged: bytes) -> None:
    """(1) The answers to a look at the members are damaged. (2) They are right again."""
    shared = MemoryStore()
    await initialise(shared)
    async with member(shared, "ab") as (store, consumer):
        store.damage = damaged
        await anyio.sleep(2 * LEASE_S)
        assert consumer.keys == []
        store.damage = None
        assert await until_owned([consumer], "ab") <= LEASE_S
