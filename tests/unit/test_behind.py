"""Consumers that a retention has overtaken, and what a group has still to read."""

import anyio
import pytest

from leaderless.api import groups
from leaderless.api.log import Log
from leaderless.api.tail import Start
from leaderless.errors import OffsetOutOfRange
from leaderless.store.memory import MemoryStore
from leaderless.table.retention import Policy
from tests.tables import Model, append, compact, small_log
from tests.unit.test_retention import filled, starts_of

pytestmark = pytest.mark.anyio


async def test_what_a_member_has_not_taken_is_not_processed() -> None:
    """(1) A group wants "a", "b" and "c"; its member owns one. (2) Another group has processed all."""
    store = MemoryStore()
    model = await filled(store)
    ends = {key: len(values) - 1 for key, values in model.items()}
    async with small_log(store) as log:
        await log.commit("done", ends)
        async with log.consumer("late", "abc", keys_max=1) as consumer:
            record = await anext(consumer)
            for _ in range(ends[record.key] + 1):
                await consumer.ack(record)
                if record.offset < ends[record.key]:
                    record = await anext(consumer)
        assert (await log.retain(Policy(processed=True))).files == 0
        waiting = {key: cursor.next for key, cursor in (await log.cursors.groups())["late"].items()}
        assert waiting == dict.fromkeys("abc", 0) | {record.key: len(model[record.key])}
        await log.commit("late", ends)
        assert (await log.retain(Policy(processed=True))).files > 0


async def test_a_group_begins_where_the_log_began_when_it_came() -> None:
    """(1) A retention. (2) A group comes, and its member owns one of two keys. (3) Another retention."""
    store = MemoryStore()
    model = await filled(store, 20)
    async with small_log(store, fan=3) as log:
        await log.retain(Policy(bytes=0))
        starts = await starts_of(store)
        async with log.consumer("g", "ab", keys_max=1) as consumer:
            first = await anext(consumer)
            assert first.offset == starts[first.key] > 0
        waiting = {key: cursor.next for key, cursor in (await log.cursors.groups())["g"].items()}
        assert waiting == {key: starts[key] for key in "ab"}
        for number in range(40):
            await append(log, model, "ab"[number % 2], number)
        await compact(log)
        await log.retain(Policy(bytes=0))
    async with small_log(store) as log, log.consumer("g", "ab") as consumer:
        for _ in range(4):  # both keys, whichever comes first
            with pytest.raises(OffsetOutOfRange) as raised:
                await anext(consumer)
            assert raised.value.offset == starts[raised.value.key]


async def gone(log: Log, model: Model, store: MemoryStore) -> dict[str, int]:
    """Let a retention delete what it can; the first offsets that are left."""
    await log.retain(Policy(bytes=0))
    return {key: len(model[key]) for key in model} | await starts_of(store)


async def test_a_group_that_is_behind_what_is_left_is_told_until_it_commits() -> None:
    store = MemoryStore()
    model = await filled(store)
    async with small_log(store) as log:
        await log.commit("g", {"a": 1})
        starts = await gone(log, model, store)
        await append(log, model, "other", 1)
    keys = ["a", "other"]
    async with small_log(store) as log, log.consumer("g", keys) as consumer:
        came: list[str] = []
        for _ in range(6):
            try:
                with anyio.fail_after(10):
                    record = await anext(consumer)
                came.append(record.key)
                await consumer.ack(record)
            except OffsetOutOfRange as lost:
                came.append(str(lost))
        text = f"key 'a' begins at offset {starts['a']}; 2 was deleted: commit offset {starts['a'] - 1} "
        assert sorted(came) == [*[f"{text}for group 'g', and it goes on behind that"] * 5, "other"]
        with pytest.raises(OffsetOutOfRange, match=f"ack a {starts['a'] - 1} --through --group g`"):
            await groups.consume(log, "g", "a")
        acked = await groups.ack(log.cursors, "g", "a", starts["a"] - 1, through=True)
        assert acked == ("advanced", starts["a"])
        assert (await anext(consumer)).offset == starts["a"]


async def test_a_key_that_has_nothing_left_is_told_too() -> None:
    store = MemoryStore()
    model: Model = {}
    async with small_log(store, fan=3) as log:
        await append(log, model, "lost", 1, 2)
        await log.commit("g", {"lost": 0})
        for number in range(40):
            await append(log, model, "abc"[number % 3], number)
        await compact(log)
        assert (await gone(log, model, store))["lost"] == 2
    async with small_log(store) as log:
        async with log.consumer("g", ["lost"]) as consumer:
            with pytest.raises(OffsetOutOfRange, match="begins at offset 2; 1 was deleted"):
                await anext(consumer)
        tail = log.tail(["lost", "a"], {"lost": 0, "a": len(model["a"]) - 1})
        found: list[object] = []
        for _ in range(2):
            try:
                found.append((await anext(tail)).key)
            except OffsetOutOfRange as lost:
                found.append((lost.key, lost.offset, lost.earliest))
        assert found in (["a", ("lost", 0, 2)], [("lost", 0, 2), "a"])


@pytest.mark.parametrize("start", [0, {"a": 0}])
async def test_a_tail_that_is_behind_is_told_once_and_goes_on(start: int | dict[str, int]) -> None:
    store = MemoryStore()
    model = await filled(store)
    async with small_log(store) as log:
        starts = await gone(log, model, store)
    async with small_log(store) as log:
        tail = log.tail(["a"], start)
        with pytest.raises(OffsetOutOfRange) as raised:
            await anext(tail)
        assert (raised.value.offset, raised.value.earliest) == (0, starts["a"])
        assert (await anext(tail)).offset == starts["a"]
        everywhere: list[Start] = ["earliest", {}]
        for begin in everywhere:
            assert (await anext(log.tail(["a"], begin))).offset == starts["a"]
