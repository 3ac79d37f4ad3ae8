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
from leaderless.store.port import OutcomeUnknown
from tests.around import READS, Fate, Fated, in_turn, value_at

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

PATIENCE_S = 2.0
CURSOR = "group/g/cursor/a"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Fated:
    store = Fated()
    monkeypatch.setattr("leaderless.hosting.place.open_store", lambda _url, _options: store)
    return store


@pytest.fixture
async def log(store: Fated) -> AsyncIterator[Log]:
    async with open_log("memory:", patience_s=PATIENCE_S) as log:
        yield log


def silent(place: str) -> Fate:
    """No read there is answered."""
    return Fate(READS, place, OutcomeUnknown("nobody is there"), applied=False)


def met(store: Fated, *fates: str) -> list[Fate]:
    """The fates of updates of cursors; "mute": the answer is lost, and no read is answered then."""
    rows = in_turn([fate.replace("mute", "answer lost") for fate in fates], CURSOR)

    async def mute() -> None:
        store.fates.append(silent(CURSOR))

    if "mute" in fates:
        rows[-1].after = mute
    return rows


async def died_with_a_record(store: Fated) -> None:
    """Leave behind the key of a member that died."""
    roster = Roster(1, {"dead": Member(3)}, {"a": Tenure(7, "dead")})
    await store.write("group/g/members", orjson.dumps(roster.value))


async def cursor(store: Fated) -> dict[str, Any]:
    fields: dict[str, Any] = orjson.loads(await value_at(store, CURSOR))
    return fields


async def within(seconds: float, consumer: Consumer) -> int:
    """The offset of the next record, which must come soon."""
    with anyio.fail_after(seconds):
        return (await anext(consumer)).offset


# ---------------------------------------------------------------- by hand


@pytest.mark.parametrize("fate", ["call lost", "answer lost"])
async def test_an_acknowledgement_by_hand_whose_answer_is_lost_was_the_one(
    store: Fated, fate: str
) -> None:
    cursors = Cursors(store)
    for offset in range(3):
        store.fates = met(store, fate, "ok")
        assert await by_hand.ack(cursors, "g", "a", offset) == ("advanced", offset + 1)
    assert await by_hand.ack(cursors, "g", "a", 1) == ("already_processed", 3)


async def test_the_same_acknowledgement_of_another_process_is_not_the_own_one(
    store: Fated,
) -> None:
    """(1) Ours is lost on its way. (2) Another process acknowledges the record. (3) We look again."""
    store.fates = met(store, "call lost", "ok")
    async with anyio.create_task_group() as tasks:

        async def other() -> None:
            await anyio.sleep(0.05)  # before the second attempt
            assert (await by_hand.ack(Cursors(store), "g", "a", 0)).status == "advanced"

        tasks.start_soon(other)
        assert (await by_hand.ack(Cursors(store), "g", "a", 0)).status == "already_processed"


def test_the_sync_iterator_goes_on_after_an_error(store: Fated) -> None:
    with open_log_sync("memory:", patience_s=0.3, store_timeout_s=0.1) as log:
        log.append("a", 1)
        records = iter(log.tail(["a"], "earliest", latency_s=0.01))
        store.fates = [silent("head")]
        for _ in range(2):
            with pytest.raises(LogError):
                next(records)
        store.fates.clear()
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
    store: Fated, log: Log, case: tuple[str, int, tuple[str, ...], int, int]
) -> None:
    """Where the outcome stays open, the program settles the record again."""
    how, failures_max, fates, offset, letters = case
    await log.append_many("a", [1, 2])
    async with log.consumer("g", ["a"], failures_max=failures_max) as consumer:
        record, store.fates = await anext(consumer), met(store, *fates)
        if fates[-1] != "ok":
            with pytest.raises(Indefinite):
                await getattr(consumer, how)(record)
            store.fates.clear()
        await getattr(consumer, how)(record)
        assert (await cursor(store))["failures"] == (offset == 0)
        assert await within(10, consumer) == offset
    assert len(await log.read("dead/g")) == letters


@pytest.mark.parametrize("fate", [*OPEN, "cancelled"])
async def test_a_record_that_was_kept_back_comes_with_the_next_call(
    store: Fated, log: Log, fate: str
) -> None:
    await died_with_a_record(store)
    await log.append("a", 1)
    async with log.consumer("g", ["a"]) as consumer:
        await anyio.sleep(20)
        store.fates = met(store, "hangs" if fate == "cancelled" else fate)
        stopped: Any = pytest.raises(Indefinite)
        with anyio.move_on_after(PATIENCE_S / 2) if fate == "cancelled" else stopped:
            await anext(consumer)
        store.fates.clear()
        assert await within(10, consumer) == 0
    assert (await cursor(store))["failures"] == 1  # the death counts once
