"""Consumers whose store fails: what ends without its result can be done again, and then counts once."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import orjson
import pytest

from leaderless import open_log, open_log_sync
from leaderless.api import groups
from leaderless.api.consumer import Consumer
from leaderless.api.log import Log
from leaderless.errors import Fenced, Indefinite, LogError, Unfit
from leaderless.hosting.cursors import Cursor, Cursors
from leaderless.hosting.members import Member, Roster, Tenure
from leaderless.store.port import OutcomeUnknown
from tests.around import UPDATES, Around, Call, Kind

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

PATIENCE_S = 2.0
CURSOR = "group/g/cursor/a"


class Troubled(Around):
    """A store in memory; `fates`: of the next writes of cursors, the last one of all that follow.

    "call lost" changes nothing, "answer lost" does. "hangs" does, too, and never answers; "mute" as well, and
    no read of a cursor is answered then. `silent`: the reads that are not answered, by a part of their keys.
    """

    fates: tuple[str, ...] = ()
    silent = "no key"

    async def around(self, kind: Kind, key: str, call: Call) -> Any:
        if kind == "read" and self.silent in key:
            raise OutcomeUnknown("nobody is there")
        if kind not in UPDATES or "/cursor/" not in key or not self.fates:
            return await call()
        fate, *rest = self.fates
        self.fates = (*rest,) or self.fates
        if fate == "call lost":
            raise OutcomeUnknown("reset before")
        version = await call()
        if fate == "mute":
            self.silent = "/cursor/"
        if fate in ("answer lost", "mute"):
            raise OutcomeUnknown("reset after")
        if fate == "hangs":
            await anyio.sleep_forever()
        return version

    def heal(self) -> None:
        """From now on all is well."""
        self.fates, self.silent = (), "no key"


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


@pytest.mark.parametrize("fate", ["call lost", "mute", "hangs"])
async def test_a_record_that_an_error_kept_back_comes_with_the_next_call(
    store: Troubled, log: Log, fate: str
) -> None:
    await died_with_a_record(store)
    await log.append("a", 1)
    async with log.consumer("g", ["a"]) as consumer:
        await anyio.sleep(20)
        store.fates = (fate,)
        with pytest.raises(Indefinite):
            await anext(consumer)
        store.heal()
        assert await within(10, consumer) == 0
    assert (await cursor(store))["failures"] == 1  # the death counts once


async def test_a_record_that_a_cancellation_kept_back_comes_with_the_next_call(
    store: Troubled, log: Log
) -> None:
    await died_with_a_record(store)
    await log.append("a", 1)
    async with log.consumer("g", ["a"]) as consumer:
        await anyio.sleep(20)
        store.fates = ("hangs",)
        with anyio.move_on_after(PATIENCE_S / 2) as scope:
            await anext(consumer)
        assert scope.cancelled_caught
        store.heal()
        assert await within(10, consumer) == 0
    assert (await cursor(store))["failures"] == 1


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


@pytest.mark.parametrize("fate", ["call lost", "answer lost"])
async def test_a_failure_counts_once_whatever_gets_lost(
    store: Troubled, log: Log, fate: str
) -> None:
    await log.append("a", 1)
    async with log.consumer("g", ["a"], failures_max=2) as consumer:
        record = await anext(consumer)
        store.fates = (fate, "ok")
        await consumer.fail(record)
        assert (await cursor(store))["failures"] == 1
        assert await log.read("dead/g") == []
        assert await within(10, consumer) == 0


@pytest.mark.parametrize("fate", ["call lost", "mute", "hangs"])
async def test_a_failure_that_is_repeated_counts_once(store: Troubled, log: Log, fate: str) -> None:
    await log.append("a", 1)
    async with log.consumer("g", ["a"], failures_max=2) as consumer:
        record = await anext(consumer)
        store.fates = (fate,)
        with pytest.raises(Indefinite):
            await consumer.fail(record)
        store.heal()
        await consumer.fail(record)
        assert (await cursor(store))["failures"] == 1
        assert await log.read("dead/g") == []
        assert await within(10, consumer) == 0


@pytest.mark.parametrize("fate", ["call lost", "mute", "hangs"])
async def test_an_acknowledgement_is_repeated_until_it_is_known(
    store: Troubled, log: Log, fate: str
) -> None:
    await log.append_many("a", [1, 2])
    async with log.consumer("g", ["a"]) as consumer:
        record = await anext(consumer)
        store.fates = (fate,)
        with pytest.raises(Indefinite):
            await consumer.ack(record)
        store.heal()
        await consumer.ack(record)
        assert await within(10, consumer) == 1


@pytest.mark.parametrize("fate", ["call lost", "mute", "hangs"])
@pytest.mark.parametrize("write", ["failure", "move"])
async def test_a_burial_that_is_repeated_leaves_one_letter(
    store: Troubled, log: Log, fate: str, write: str
) -> None:
    await log.append_many("a", ["bad", "good"])
    async with log.consumer("g", ["a"], failures_max=1) as consumer:
        record = await anext(consumer)
        store.fates = (fate,) if write == "failure" else ("ok", fate)
        with pytest.raises(Indefinite):
            await consumer.fail(record)
        store.heal()
        await consumer.fail(record)
        assert await within(10, consumer) == 1
    assert len(await log.read("dead/g")) == 1


# ---------------------------------------------------------------- by hand


@pytest.mark.parametrize("fate", ["call lost", "answer lost"])
async def test_an_acknowledgement_by_hand_whose_answer_is_lost_was_the_one(
    store: Troubled, fate: str
) -> None:
    cursors = Cursors(store)
    for offset in range(3):
        store.fates = (fate, "ok")
        assert await groups.ack(cursors, "g", "a", offset) == ("advanced", offset + 1)
    assert await groups.ack(cursors, "g", "a", 1) == ("already_processed", 3)


async def test_the_same_acknowledgement_of_another_process_is_not_the_own_one(
    store: Troubled,
) -> None:
    """(1) Ours is lost on its way. (2) Another process acknowledges the record. (3) We look again."""
    store.fates = ("call lost", "ok")
    async with anyio.create_task_group() as tasks:

        async def other() -> None:
            await anyio.sleep(0.05)  # before the second attempt
            assert (await groups.ack(Cursors(store), "g", "a", 0)).status == "advanced"

        tasks.start_soon(other)
        assert (await groups.ack(Cursors(store), "g", "a", 0)).status == "already_processed"


async def test_fields_of_a_cursor_that_are_unknown_are_passed_over(store: Troubled) -> None:
    await Cursors(store).commit("g", {"a": 4})
    await store.write(CURSOR, orjson.dumps(await cursor(store) | {"more": [1]}))
    assert (await Cursors(store).read("g", "a"))[:3] == Cursor(4)[:3]


async def test_what_a_process_remembers_of_a_cursor_answers_nothing(store: Troubled) -> None:
    """Another process has acknowledged what comes after our last acknowledgement."""
    ours, theirs = Cursors(store), Cursors(store)
    for offset, cursors in enumerate((ours, theirs, theirs)):
        assert (await groups.ack(cursors, "g", "a", offset)).status == "advanced"
    assert await groups.ack(ours, "g", "a", 2) == ("already_processed", 3)
    assert await groups.ack(ours, "g", "a", 3) == ("advanced", 4)
    assert await groups.ack(theirs, "g", "a", 9) == ("offset_mismatch", 4)
    assert await groups.ack(theirs, "g", "a", 9, through=True) == ("advanced", 10)
    assert await groups.ack(ours, "g", "a", 7, through=True) == ("already_processed", 10)


async def test_what_only_looked_may_not_have_happened(store: Troubled) -> None:
    store.silent = ""
    with pytest.raises(LogError) as raised:
        await groups.ack(Cursors(store, patience_s=1), "g", "a", 0)
    assert not isinstance(raised.value, Indefinite)


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
