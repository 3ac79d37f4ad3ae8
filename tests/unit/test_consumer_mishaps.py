"""Consumers whose store fails: what ends without its result can be done again, and then counts once."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import orjson
import pytest

from leaderless import open_log, open_log_sync
from leaderless.api.log import Log
from leaderless.errors import Indefinite, LogError
from leaderless.groups import consumer as by_hand
from leaderless.groups.consumer import Consumer
from leaderless.groups.cursors import Cursors
from leaderless.groups.members import Member, Roster, Tenure
from tests.around import Troubled, value_at

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
    fields: dict[str, Any] = orjson.loads(await value_at(store, CURSOR))
    return fields


async def within(seconds: float, consumer: Consumer) -> int:
    """The offset of the next record, which must come soon."""
    with anyio.fail_after(seconds):
        return (await anext(consumer)).offset


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


# ---------------------------------------------------------------- what is settled


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
