"""The library: a log on a store in memory (`leaderless.api.log`), and its iterator `Log.tail`."""

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from leaderless import Record, open_log
from leaderless.api.log import Log
from leaderless.api.record import Looked
from leaderless.api.tail import Tail
from leaderless.errors import (
    Broken,
    Fenced,
    Indefinite,
    LogError,
    Unfit,
)
from leaderless.store.memory import MemoryStore
from leaderless.store.port import OutcomeUnknown, Refused, Version
from tests.records import values

pytestmark = pytest.mark.anyio

LARGE = "x" * 50_000
Number = IntEnum("Number", "ONE")
Name = StrEnum("Name", "one")


# ---------------------------------------------------------------- values and offsets


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -1, 2**63, 1.5, "", "ü\0\n", [], {}, [1, [2, {"a": None}]], {"a": {"b": 1}},
        b"", b"\0\xff", {"$bytes": "AA=="}, {"$data": ["x", 1, "json"]}, {"$json": {"$json": 1}}, {"$": 1},
        LARGE, LARGE.encode(), [LARGE, 1],
    ],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
async def test_a_value_comes_back_as_it_was(log: Log, value: Any) -> None:
    assert await log.append("k", value) == 0
    [record] = await log.read("k")
    assert repr(record) == repr(Record("k", 0, value))


@pytest.mark.parametrize(
    "value",
    [
        2**64, float("nan"), float("inf"), (1, 2), {1, 2}, {1: 2}, object(), "\ud800", bytearray(b"x"),
        {"a": (1,)}, 1j, Number.ONE, [Name.one], {Name.one: 1},
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
async def test_a_value_that_would_not_come_back_is_refused(log: Log, value: Any) -> None:
    with pytest.raises(Unfit, match="bytes or JSON"):
        await log.append("k", value)
    assert await log.read("k") == []


async def test_a_value_may_be_as_deep_as_a_register_can_hold(log: Log) -> None:
    value: Any = 1
    for _ in range(230):
        value = [value]
    assert await log.append("k", value) == 0
    with pytest.raises(Unfit, match=r"(?i)recursion"):
        await log.append("k", [[[[[[[[[[value]]]]]]]]]])
    assert values(await log.read("k")) == [value]


async def test_offsets_of_a_key_are_dense(log: Log) -> None:
    assert [await log.append("a", each) for each in "xyz"] == [0, 1, 2]
    assert await log.append("b", 1) == 0
    assert await log.append_many("a", [1, 2, 3]) == [3, 4, 5]
    assert values(await log.read("a")) == ["x", "y", "z", 1, 2, 3]


async def test_a_read_begins_at_its_offset_and_has_its_limit(log: Log) -> None:
    await log.append_many("a", [*range(10)])
    assert [record.offset for record in await log.read("a", 3, 4)] == [3, 4, 5, 6]
    assert await log.read("a", 10) == []
    assert await log.read("none") == []


@pytest.mark.parametrize(("offset", "limit"), [(-1, 1), (0, 0), (0.5, 1), (True, 1)])
async def test_a_read_with_wrong_numbers_is_refused(log: Log, offset: Any, limit: int) -> None:
    with pytest.raises(Unfit, match=r"must be an int from 0|must be at least 1"):
        await log.read("a", offset, limit)


@pytest.mark.parametrize("key", ["", "a/b", "a%2Fb", "../x", "ü", "\0", "x" * 1024])
async def test_any_text_is_a_key(log: Log, key: str) -> None:
    await log.append("other", 0)
    await log.append(key, 1)
    assert await log.read(key) == [Record(key, 0, 1)]
    await log.commit(key[:100], {key[:100]: 0})
    assert await log.committed(key[:100], [key[:100], "other"]) == {key[:100]: 0}


@pytest.mark.parametrize("key", ["x" * 1025, "\ud800", 1, None, Name.one])
async def test_what_is_no_key_is_refused(log: Log, key: Any) -> None:
    with pytest.raises(Unfit, match="a key"):
        await log.append(key, 1)
    assert await log.append("k", 1) == 0  # the log goes on


async def test_many_tasks_share_commits(url: str, log: Log) -> None:
    offsets: list[int] = []

    async def producer(number: int) -> None:
        offsets.extend([await log.append("k", [number, each]) for each in range(5)])

    async with anyio.create_task_group() as tasks:
        for number in range(40):
            tasks.start_soon(producer, number)
    assert sorted(offsets) == list(range(200))
    found = values(await log.read("k", 0, 1000))
    for number in range(40):
        assert [each for writer, each in found if writer == number] == [0, 1, 2, 3, 4]
    assert (await log.status()).batches < 100


async def test_many_values_stay_together(log: Log) -> None:
    """Groups of two tasks never mix, and a group that finds no room in a batch waits whole for the next."""
    value = "x" * 3000

    async def producer(number: int) -> None:
        for _ in range(3):
            offsets = await log.append_many("k", [[number, value]] * 100)
            assert offsets == list(range(offsets[0], offsets[0] + 100))

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(producer, number)
    assert (await log.keys()) == {"k": 1800}


async def test_no_values_or_too_many_are_refused(log: Log) -> None:
    with pytest.raises(Unfit, match="at least one"):
        await log.append_many("k", [])
    with pytest.raises(Unfit, match="in several calls"):
        await log.append_many("k", ["x" * 10_000] * 200)
    assert await log.keys() == {}


async def test_waiting_appends_have_bounded_bytes(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log._room, "_total", 100)
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(log.append, "k", f"{number} {'x' * 50}")
    assert await log.keys() == {"k": 20}


# ---------------------------------------------------------------- fences


async def test_fence_and_unfence(log: Log) -> None:
    epochs = [await change() for change in (log.fence, log.fence, log.unfence, log.fence)]
    assert epochs == [1, 1, 2, 3]
    with pytest.raises(Fenced):
        await log.append("k", 1)
    assert await log.read("k") == []
    assert (await log.status()).state == "fenced"
    await log.unfence()
    assert await log.append("k", 1) == 0


async def test_a_fence_holds_for_everybody(url: str, log: Log) -> None:
    async with open_log(url) as other:
        await other.append("k", 0)
        await log.fence()
        with pytest.raises(Fenced):
            await other.append("k", 1)
        await other.unfence()
        assert await log.append("k", 1) == 1


# ---------------------------------------------------------------- cursors


async def test_a_committed_offset_never_goes_back(log: Log) -> None:
    for offset in (3, 1, 5, 5, 0):
        await log.commit("group", {"k": offset})
    await log.commit("group", {"k": 4, "l": 2})
    assert await log.committed("group", ["k", "l", "none"]) == {"k": 5, "l": 2}
    assert await log.committed("other", ["k"]) == {}


@pytest.mark.parametrize("offset", [-1, 2**63, 2**70, 1.5, True, Number.ONE])
async def test_a_commit_beyond_its_bounds_is_refused(log: Log, offset: Any) -> None:
    with pytest.raises(Unfit, match=r"from 0 to 2\^63 - 1, got"):
        await log.commit("group", {"k": offset})
    await log.commit("group", {"k": 2**63 - 1})


async def test_racing_commits_end_at_the_highest(url: str, log: Log) -> None:
    async with open_log(url) as other, anyio.create_task_group() as tasks:
        for offset in range(20):
            tasks.start_soon((log, other)[offset % 2].commit, "group", {"k": offset})
    assert await log.committed("group", ["k"]) == {"k": 19}


# ---------------------------------------------------------------- tail


async def test_a_tail_goes_on_with_what_comes(url: str, log: Log) -> None:
    await log.append_many("k", [0, 1])
    found: list[Any] = []
    async with open_log(url) as other, anyio.create_task_group() as tasks:
        async for record in log.tail(["k", "l"], "earliest", latency_s=0.001):
            found.append((record.key, record.value))
            if len(found) == 2:
                tasks.start_soon(other.append, "l", 2)
            if len(found) == 3:
                break
    assert found == [("k", 0), ("k", 1), ("l", 2)]


@pytest.mark.parametrize(
    ("start", "first"), [("latest", 3), ("earliest", 0), (1, 1), ({"k": 2}, 2), ({}, 0)]
)
async def test_a_tail_begins_where_it_is_told(log: Log, start: Any, first: int) -> None:
    await log.append_many("k", [0, 1, 2])
    async with anyio.create_task_group() as tasks:
        if start == "latest":
            tasks.start_soon(_append_later, log)
        async for record in log.tail(["k"], start, latency_s=0.001):
            assert record.offset == first
            break


async def _append_later(log: Log) -> None:
    for _ in range(50):  # until the tail has looked where the end is
        await anyio.lowlevel.checkpoint()
    await log.append("k", 3)


# ---------------------------------------------------------------- stores in trouble


class Troubled(MemoryStore):
    """A store in memory whose writes of the head meet what a test says: "lost" after they were applied."""

    fates: list[str]

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        fate = self.fates.pop(0) if key == "head" and self.fates else "ok"
        if fate == "refused":
            raise Refused("no room for the head")
        if fate == "call lost":
            raise OutcomeUnknown("reset before")
        new = await super().compare_and_set(key, value, version)
        if fate == "answer lost":
            raise OutcomeUnknown("reset after")
        return new


@pytest.fixture
def troubled(url: str, monkeypatch: pytest.MonkeyPatch) -> Troubled:
    store = Troubled()
    store.fates = []
    monkeypatch.setattr("leaderless.hosting.place.open_store", lambda _url, _options: store)
    return store


@pytest.mark.parametrize("fate", ["answer lost", "call lost", "refused"])
async def test_one_unclear_answer_neither_loses_nor_doubles(
    url: str, troubled: Troubled, fate: str
) -> None:
    async with open_log(url) as log:
        await log.append("k", 0)
        for number in range(1, 4):
            troubled.fates = [fate]
            assert await log.append("k", number) == number
        assert values(await log.read("k")) == [0, 1, 2, 3]


async def test_a_store_that_stays_silent_is_an_indefinite_error(
    url: str, troubled: Troubled
) -> None:
    async with open_log(url, patience_s=0.5, store_timeout_s=0.05) as log:
        await log.append("k", 0)
        troubled.fates = ["call lost"] * 10_000
        with pytest.raises(Indefinite, match="reset before"):
            await log.append("k", 1)
        troubled.fates = []
        await log.append("k", 2)
        assert values(await log.read("k")) in ([0, 2], [0, 1, 2])


async def test_a_store_that_repeats_itself_breaks_the_log(
    url: str, troubled: Troubled, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_log(url) as log:
        await log.append("k", 0)

        async def fails(_op: object) -> None:
            raise AssertionError("head holds a value for the second time")

        monkeypatch.setattr(log._registers, "carry_out", fails)
        for _ in range(2):
            with pytest.raises(Broken, match="second time"):
                await log.append("k", 1)


# ---------------------------------------------------------------- the iterator of a tail


class Slow:
    """A log of which each answer has one record of each key, of `room` keys at most; some raise, and wait."""

    def __init__(self, ends: dict[str, int], room: int = 1) -> None:
        self.ends = ends
        self.room = room
        self.errors: list[Exception] = []

    async def keys(self) -> dict[str, int]:
        return dict(self.ends)

    async def look(self, offsets: Mapping[str, int], limit: int) -> Looked:
        await anyio.sleep(1.0)
        if self.errors:
            raise self.errors.pop()
        ready = [(key, at) for key, at in offsets.items() if at < self.ends[key]]
        return Looked({key: [Record(key, at, None)] for key, at in ready[: self.room]}, {})


@pytest.mark.virtual_time
async def test_a_new_record_of_any_key_comes_in_the_next_round() -> None:
    log = Slow({"long": 1000, "b": 0, "c": 0})
    tail = Tail(log, ["long", "b", "c"], "earliest", 0.2, limit=100)
    for round_number in range(20):
        await anext(tail)
        for key in "bc":
            log.ends[key] += 1
        assert [(await anext(tail))[:2] for _ in "bc"] == [("b", round_number), ("c", round_number)]


@pytest.mark.virtual_time
async def test_a_long_backlog_delays_no_other_key(url: str, log: Log) -> None:
    for _ in range(60):
        await log.append_many("long", ["x" * 10_000] * 80)
    async with open_log(url) as other:
        tail = other.tail(["long", "late"], {"long": 0})
        await anext(tail)
        await log.append("late", "new")
        await anyio.sleep(0.001)  # or the clock says that the last look was now
        before = 1
        while (await anext(tail)).key == "long":
            before += 1
    assert before < 60 * 80 / 4


@pytest.mark.virtual_time
async def test_it_goes_on_after_an_error_and_a_cancellation() -> None:
    log = Slow({"a": 3})
    tail = Tail(log, ["a"], "earliest", 0.2, limit=100)
    came = []
    for _ in range(3):
        log.errors = [LogError("mishap"), LogError("mishap")]
        for _ in range(2):
            with pytest.raises(LogError):
                await anext(tail)
        with anyio.move_on_after(0.5) as scope:
            await anext(tail)
        assert scope.cancelled_caught
        came.append((await anext(tail)).offset)
    assert came == [0, 1, 2]
