"""Consumers whose store fails: what ends without its result can be done again, and then counts once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import orjson
import pytest

from leaderless import open_log, open_log_sync
from leaderless.api import consumer as by_hand
from leaderless.api.consumer import Consumer
from leaderless.api.log import Log
from leaderless.errors import Fenced, Indefinite, LogError, Unfit
from leaderless.hosting.cursors import Cursor, Cursors
from leaderless.hosting.host import running
from leaderless.hosting.members import Member, Roster, Tenure, roster_of
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found
from tests.around import Around, Call, Kind, Troubled

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

PATIENCE_S = 2.0
CURSOR = "group/g/cursor/a"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Troubled:
    store = Troubled()
    monkeypatch.setattr("leaderless.hosting.place.open_store", lambda _url, _options: store)
    return store


@pytest.fixture
async def log(store: Troubled) -> AsyncIterator[Log]:
    async with open_log("memory:", patience_s=PATIENCE_S) as log:
        yield log


async def died_with_a_record(store: Troubled) -> None:
    """Leave behind the key of a member that died."""
    roster = Roster(1, {"dead": Member(3)}, {"a": Tenure(7, "dead")})
    await store.write("group/g/members", orjson.dumps(roster.value))


async def cursor(store: Troubled) -> dict[str, Any]:
    found = await store.read(CURSOR)
    assert found is not None
    fields: dict[str, Any] = orjson.loads(found.value)
    return fields


async def within(seconds: float, consumer: Consumer) -> int:
    """The offset of the next record, which must come soon."""
    with anyio.fail_after(seconds):
        return (await anext(consumer)).offset


# ---------------------------------------------------------------- the iterator


async def test_a_record_that_cannot_be_buried_keeps_no_other_key_back(log: Log) -> None:
    """(1) A record of "a" failed too often, but the log is fenced. (2) The fence is lifted."""
    for key in "ab":
        await log.append_many(key, [1, 2])
    async with log.consumer("g", "ab", failures_max=1) as consumer:
        records = {record.key: record for record in [await anext(consumer), await anext(consumer)]}
        await log.fence()
        for _ in range(2):
            with pytest.raises(Fenced):
                await consumer.fail(records["a"])
        await consumer.ack(records["b"])
        assert (await anext(consumer)).key == "b"
        await log.unfence()
        await consumer.fail(records["a"])
        assert await within(10, consumer) == 1
    assert [letter.value for letter in await log.read("dead/g")] == [
        {"key": "a", "offset": 0, "failures": 1}
    ]


async def test_an_iterator_goes_on_while_one_of_its_keys_raises(store: Troubled, log: Log) -> None:
    await died_with_a_record(store)
    await log.append("a", 1)
    await log.append_many("b", [1, 2, 3])
    async with log.consumer("g", "ab", failures_max=1) as consumer:
        await anyio.sleep(20)
        await log.fence()  # "a" cannot be buried
        came = []
        for _ in range(8):
            try:
                with anyio.fail_after(5):
                    record = await anext(consumer)
            except (Fenced, TimeoutError):
                continue
            came.append((record.key, record.offset))
            await consumer.ack(record)
        assert came == [("b", 0), ("b", 1), ("b", 2)]


async def test_a_claim_whose_cursor_cannot_be_written_is_given_back(
    store: Troubled, log: Log
) -> None:
    await log.append("a", 1)
    async with log.consumer("g", ["a"]) as consumer:
        store.fates = ("call lost",)
        await anyio.sleep(30)
        store.heal()
        assert await within(5, consumer) == 0  # no lease of its own has to run out
    assert (await cursor(store))["failures"] == 0  # and nobody died


# ---------------------------------------------------------------- acknowledgements


# ---------------------------------------------------------------- by hand


@pytest.mark.parametrize("fate", ["call lost", "answer lost"])
async def test_an_acknowledgement_by_hand_whose_answer_is_lost_was_the_one(
    store: Troubled, fate: str
) -> None:
    cursors = Cursors(store)
    for offset in range(3):
        store.fates = (fate, "ok")
        assert await by_hand.ack(cursors, "g", "a", offset) == ("advanced", offset + 1)
    assert await by_hand.ack(cursors, "g", "a", 1) == ("already_processed", 3)


async def test_the_same_acknowledgement_of_another_process_is_not_the_own_one(
    store: Troubled,
) -> None:
    """(1) Ours is lost on its way. (2) Another process acknowledges the record. (3) We look again."""
    store.fates = ("call lost", "ok")
    async with anyio.create_task_group() as tasks:

        async def other() -> None:
            await anyio.sleep(0.05)  # before the second attempt
            assert (await by_hand.ack(Cursors(store), "g", "a", 0)).status == "advanced"

        tasks.start_soon(other)
        assert (await by_hand.ack(Cursors(store), "g", "a", 0)).status == "already_processed"


async def test_fields_of_a_cursor_that_are_unknown_are_passed_over(store: Troubled) -> None:
    await Cursors(store).commit("g", {"a": 4})
    await store.write(CURSOR, orjson.dumps(await cursor(store) | {"more": [1]}))
    assert (await Cursors(store).read("g", "a"))[:3] == Cursor(4)[:3]


async def test_what_a_process_remembers_of_a_cursor_answers_nothing(store: Troubled) -> None:
    """Another process has acknowledged what comes after our last acknowledgement."""
    ours, theirs = Cursors(store), Cursors(store)
    for offset, cursors in enumerate((ours, theirs, theirs)):
        assert (await by_hand.ack(cursors, "g", "a", offset)).status == "advanced"
    assert await by_hand.ack(ours, "g", "a", 2) == ("already_processed", 3)
    assert await by_hand.ack(ours, "g", "a", 3) == ("advanced", 4)
    assert await by_hand.ack(theirs, "g", "a", 9) == ("offset_mismatch", 4)
    assert await by_hand.ack(theirs, "g", "a", 9, through=True) == ("advanced", 10)
    assert await by_hand.ack(ours, "g", "a", 7, through=True) == ("already_processed", 10)


# ---------------------------------------------------------------- dead letters


async def test_a_group_cannot_consume_its_own_dead_letters(log: Log) -> None:
    with pytest.raises(Unfit, match="another group"):
        async with log.consumer("g", ["a", "dead/g"]):
            pass
    async with log.consumer("h", ["dead/g"]):
        pass


def test_the_sync_iterator_goes_on_after_an_error(store: Troubled) -> None:
    with open_log_sync("memory:", patience_s=0.3, store_timeout_s=0.1) as log:
        log.append("a", 1)
        records = iter(log.tail(["a"], "earliest", latency_s=0.01))
        store.silent = "head"
        for _ in range(2):
            with pytest.raises(LogError):
                next(records)
        store.heal()
        assert next(records).value == 1


# --------------------------------------------------- how soon keys of a dead member are owned again

LEASE_S = 10.0
KEYS = "abcdefgh"


class Mortal(Around):
    """A store as one process sees it; nothing comes of a call when it is `dead`. A call takes `request_s`.

    `damage`: what reads of the members bring in place of what is there.
    """

    dead = False
    damage: bytes | None = None
    request_s = 0.01

    async def around(self, kind: Kind, key: str, call: Call) -> Any:
        await anyio.sleep(self.request_s)
        if self.dead:
            await anyio.sleep_forever()
        if kind == "read" and self.damage and key.endswith("/members"):
            return Found(self.damage, "1")
        return await call()


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
    shared, others = MemoryStore(), list[Consumer]()
    await initialise(shared)
    async with member(shared) as (dying, _), anyio.create_task_group() as tasks:
        for _ in range(survivors):
            tasks.start_soon(lives, shared, others)
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
    shared, joined = MemoryStore(), list[Consumer]()
    await initialise(shared)
    async with member(shared) as (dying, consumer), anyio.create_task_group() as tasks:
        assert await until_owned([consumer]) < 2
        dying.dead = True
        for _ in range(members):
            tasks.start_soon(lives, shared, joined)
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


OPEN = ("call lost", "mute", "hangs")


SETTLED: list[tuple[str, int, tuple[str, ...], int, int]] = [
    *(("fail", 2, (fate, "ok"), 0, 0) for fate in ("call lost", "answer lost")),
    *(("fail", 2, (fate,), 0, 0) for fate in OPEN),
    *(("ack", 2, (fate,), 1, 0) for fate in OPEN),
    *(("fail", 1, fates, 1, 1) for fate in OPEN for fates in ((fate,), ("ok", fate))),
]


@pytest.mark.parametrize("case", SETTLED, ids=str)
async def test_what_is_settled_counts_once_whatever_gets_lost(
    store: Troubled, log: Log, case: tuple[str, int, tuple[str, ...], int, int]
) -> None:
    """Where the outcome stays open, the program settles the record again."""
    how, failures_max, fates, offset, letters = case
    await log.append_many("a", [1, 2])
    async with log.consumer("g", ["a"], failures_max=failures_max) as consumer:
        record, store.fates = await anext(consumer), fates
        if fates[-1] != "ok":
            with pytest.raises(Indefinite):
                await getattr(consumer, how)(record)
            store.heal()
        await getattr(consumer, how)(record)
        assert (await cursor(store))["failures"] == (offset == 0)
        assert await within(10, consumer) == offset
    assert len(await log.read("dead/g")) == letters


@pytest.mark.parametrize("fate", [*OPEN, "cancelled"])
async def test_a_record_that_was_kept_back_comes_with_the_next_call(
    store: Troubled, log: Log, fate: str
) -> None:
    await died_with_a_record(store)
    await log.append("a", 1)
    async with log.consumer("g", ["a"]) as consumer:
        await anyio.sleep(20)
        store.fates = ("hangs" if fate == "cancelled" else fate,)
        stopped: Any = pytest.raises(Indefinite)
        with anyio.move_on_after(PATIENCE_S / 2) if fate == "cancelled" else stopped:
            await anext(consumer)
        store.heal()
        assert await within(10, consumer) == 0
    assert (await cursor(store))["failures"] == 1  # the death counts once


async def lives(shared: MemoryStore, consumers: list[Consumer]) -> None:
    """A member, which adds itself to these."""
    async with member(shared) as (_, consumer):
        consumers.append(consumer)
        await anyio.sleep_forever()
