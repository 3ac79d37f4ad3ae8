"""Groups of consumers (`leaderless.api.consumer`), on a clock that jumps: no test waits for a lease."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import orjson
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from leaderless import Record, open_log, open_log_sync
from leaderless.api.consumer import Consumer
from leaderless.api.log import Log
from leaderless.core.coordination import Misfit
from leaderless.errors import NotOwner, Unfit
from leaderless.hosting.host import running
from leaderless.hosting.members import (
    Member,
    Members,
    Membership,
    Roster,
    Tenure,
    roster_of,
    shares,
)
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.memory import MemoryStore
from leaderless.store.port import replaced
from leaderless.store.wrapped import Counted

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


async def take(consumer: Consumer, count: int) -> list[Record]:
    """So many records, each acknowledged."""
    records = []
    for _ in range(count):
        records.append(record := await anext(consumer))
        await consumer.ack(record)
    return records


async def test_a_long_backlog_keeps_back_no_other_key(log: Log) -> None:
    await log.append_many("a", [*range(100)])
    async with log.consumer("g", "ab", latency_s=1.0) as consumer:
        for _ in range(3):
            record = await anext(consumer)
            await anyio.sleep(1)
            await consumer.ack(record)
        await log.append("b", "new")
        assert "b" in [record.key for record in await take(consumer, 2)]


async def test_a_member_that_joins_later_gets_its_share(url: str, log: Log) -> None:
    async with AsyncExitStack() as stack:
        members: list[Consumer] = []
        for counts in ([7], [4, 3], [3, 2, 2]):
            opened = await stack.enter_async_context(open_log(url))
            members.append(await stack.enter_async_context(opened.consumer("g", "abcdefg")))
            await anyio.sleep(60)
            assert sorted((len(member.keys) for member in members), reverse=True) == counts
            assert sorted(key for member in members for key in member.keys) == [*"abcdefg"]
    async with log.consumer("g", "abcdefg") as alone:
        await anyio.sleep(5)  # those that leave say so: nobody waits for a lease
        assert len(alone.keys) == 7


async def test_a_key_changes_hands_between_two_records(url: str, log: Log) -> None:
    """(1) A member has a record of each key. (2) Another joins. (3) The first settles; a key moves."""
    for key in "ab":
        await log.append_many(key, [1, 2])
    async with open_log(url) as other, log.consumer("g", "ab") as first:
        records = [await anext(first), await anext(first)]
        async with other.consumer("g", "ab") as second:
            await anyio.sleep(60)
            assert sorted(first.keys) == ["a", "b"]  # their records are still under way
            assert second.keys == []
            for record in records:
                await first.ack(record)
            await anyio.sleep(30)
            assert len(first.keys) == len(second.keys) == 1
            assert (await take(second, 1))[0].offset == 1
            assert (await take(first, 1))[0].offset == 1


async def test_members_of_other_keys_take_no_share(url: str, log: Log) -> None:
    async with (
        open_log(url) as other,
        log.consumer("g", "ab") as one,
        other.consumer("g", "cd") as another,
    ):
        await anyio.sleep(60)
        assert (sorted(one.keys), sorted(another.keys)) == (["a", "b"], ["c", "d"])


@given(
    st.integers(0, 50),
    st.dictionaries(st.text("abc", max_size=3), st.none() | st.integers(1, 20), min_size=1),
)
def test_shares_are_equal_as_far_as_bounds_allow(keys: int, most: dict[str, int | None]) -> None:
    found = shares(keys, most)
    bounds = {name: keys if bound is None else bound for name, bound in most.items()}
    assert all(found[name] <= bounds[name] for name in most)
    assert sum(found.values()) == min(keys, sum(bounds.values()))
    below = [found[name] for name in most if found[name] < bounds[name]]
    assert not below or max(found.values()) <= min(below) + 1


async def dead_member(log: Log, key: str) -> None:
    """Leave behind what a member that took the key, and died, had in the store."""
    register = "group/g/members"
    while True:
        found = await log._store.read(register)
        old = roster_of(orjson.loads(found.value)) if found else Roster()
        epoch = old.keys.get(key, Tenure()).epoch + 1
        members = {"dead": Member(3, None, "other")}
        keys = {**old.keys, key: Tenure(epoch, "dead")}
        value = orjson.dumps(Roster(old.version + 1, members, keys).value)
        if await replaced(log._store, register, value, found and found.version):
            break
    await log.cursors.change("g", key, lambda cursor: cursor._replace(epoch=epoch))


async def test_a_record_under_way_of_a_member_that_leaves_has_not_failed(log: Log) -> None:
    await log.append("a", 1)
    for _ in range(3):
        async with log.consumer("g", ["a"], failures_max=1) as consumer:
            with anyio.fail_after(1):
                assert (await anext(consumer)).offset == 0
    assert (await log.cursors.read("g", "a")).failures == 0


async def test_a_member_that_nobody_asks_keeps_only_what_is_under_way(url: str, log: Log) -> None:
    for key in "abc":
        await log.append_many(key, [1, 2])
    async with open_log(url) as other, log.consumer("g", "abc", idle_s=60) as first:
        record = await anext(first)
        await anyio.sleep(100)
        assert sorted(first.keys) == ["a", "b", "c"]  # it is alone
        async with other.consumer("g", "abc") as second:
            await anyio.sleep(20)
            assert first.keys == [record.key]
            assert sorted([*first.keys, *second.keys]) == ["a", "b", "c"]
            assert {each.offset for each in await take(second, 4)} == {0, 1}
            await first.ack(record)
            await anyio.sleep(20)
            assert sorted(second.keys) == ["a", "b", "c"]
            with anyio.move_on_after(20):
                await anext(first)  # it is asked again
            assert len(first.keys) in (1, 2)


async def test_a_program_that_blocks_its_loop_for_longer_than_a_lease_is_told(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    await log.append_many("a", [1, 2])
    async with log.consumer("g", ["a"], lease_s=10) as consumer:
        for seconds in (9, 15):
            record = await anext(consumer)
            clock = trio.lowlevel.current_clock()
            assert isinstance(clock, trio.testing.MockClock)
            clock.jump(seconds)  # as `time.sleep` does
            await consumer.ack(record)  # nobody else wants the key
            await anyio.sleep(5)
            told = [each.getMessage() for each in caplog.records]
            assert len(told) == (seconds > 10)
    assert "stood still for" in told[0]
    assert "lease_s=10" in told[0]


async def test_the_acknowledgement_of_a_stale_member_is_refused(url: str, log: Log) -> None:
    """(1) A member stands still with a record. (2) Its lease is taken. (3) It goes on, and acknowledges."""
    await log.append_many("a", [1, 2])
    async with log.consumer("g", ["a"], lease_s=1e6) as slow:  # it does not notice by a beat
        record = await anext(slow)
        await dead_member(log, "a")  # another member has taken the key since
        with pytest.raises(NotOwner, match=r"another member .* event loop stands still"):
            await slow.ack(record)
        assert slow.keys == []
        with pytest.raises(NotOwner, match="lost"):
            await slow.ack(record)
        assert await log.committed("g", ["a"]) == {}


async def test_a_member_notices_by_its_beat_that_it_lost_a_key(log: Log) -> None:
    await log.append("a", 1)
    async with log.consumer("g", ["a"], lease_s=8) as consumer:
        await anext(consumer)
        await dead_member(log, "a")
        await anyio.sleep(4)
        assert consumer.keys == []
        await anyio.sleep(20)
        assert consumer.keys == ["a"]  # that one died, too


async def test_a_success_forgets_failures(log: Log) -> None:
    await log.append_many("a", [1, 2])
    async with log.consumer("g", ["a"], failures_max=2) as consumer:
        for _ in range(2):
            await consumer.fail(await anext(consumer))
            await consumer.ack(await anext(consumer))
    assert await log.read("dead/g") == []


async def test_only_what_was_delivered_is_settled(log: Log) -> None:
    await log.append_many("a", [1, 2])
    async with log.consumer("g", ["a"]) as consumer:
        record = await anext(consumer)
        for settle in (consumer.ack, consumer.fail):
            with pytest.raises(Unfit, match="not delivered"):
                await settle(record._replace(offset=1))
        await consumer.ack(record)
        with pytest.raises(Unfit, match="settled"):
            await consumer.ack(record)


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        ([], {}), (["a"], {"lease_s": 0}), (["a"], {"failures_max": 0}), (["a"], {"keys_max": 0}),
        (["a"], {"keys_max": -1}),
        (["x" * 500], {}),
    ],
)  # fmt: skip
async def test_a_membership_that_cannot_be(log: Log, keys: list[str], options: Any) -> None:
    with pytest.raises(Unfit):
        async with log.consumer("g", keys, **options):
            pass


async def test_groups_are_apart(log: Log) -> None:
    await log.append("a", 1)
    for group in ("g", "h", "a/b", "a%2Fb"):
        async with log.consumer(group, ["a"]) as consumer:
            await take(consumer, 1)
    assert {*await log.cursors.groups()} == {"g", "h", "a/b", "a%2Fb"}


def test_the_sync_consumer_is_the_same(url: str) -> None:
    with open_log_sync(url) as log:
        log.append_many("a", [1, 2])
        with log.consumer("h", ["a"]) as consumer:
            consumer.ack(consumer.batch(1)[-1])
            assert next(consumer).value == 2
        with log.consumer("g", ["a"]) as consumer:
            for record in consumer:
                if record.offset == 1:
                    consumer.fail(record)
                    break
                consumer.ack(record)
        assert log.committed("g", ["a"]) == {"a": 0}
        assert {*log.read_many({"a": 0}, 1)} == {"a"}


# ---------------------------------------------------------------- members


ROSTER: dict[str, Any] = {
    "version": 3,
    "members": {"a": [7, None, "x"], "b": [0, 2, "y"]},
    "keys": {"k": [2, "a", 0], "l": [0, None, 5]},
}


def test_a_roster_comes_back_as_it_was() -> None:
    members = {"a": Member(7, None, "x"), "b": Member(0, 2, "y")}
    assert roster_of(ROSTER) == Roster(3, members, {"k": Tenure(2, "a"), "l": Tenure(first=5)})
    assert roster_of(ROSTER).value == ROSTER


MEMBERS: list[Any] = [
    [], {"a": [1, None]}, {"a": [1, None, "x", 2]}, {"a": ["1", 2, "x"]}, {"a": [1, "2", "x"]},
    {"a": [1, -2, "x"]}, {"a": [1, None, None]}, {"a": 1},
]  # fmt: skip
OWNERS: list[Any] = [
    [], {"k": [1, None]}, {"k": [0, "a", 0]}, {"k": [1, "a", -1]}, {"k": [1, 2, 0]}, {"k": 1},
]  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        *(None, [], {}, {"version": 3, "members": {}}),
        *(ROSTER | {"version": version} for version in ("3", -1)),
        *(ROSTER | {"members": members} for members in MEMBERS),
        *(ROSTER | {"keys": keys} for keys in OWNERS),
    ],
)
def test_what_no_member_writes_is_a_misfit(wrong: Any) -> None:
    with pytest.raises(Misfit):
        roster_of(wrong)


@pytest.mark.lawless
async def test_a_beat_keeps_the_others_and_leaves_out_what_it_does_not_know() -> None:
    """A field of another release beside the members is not written again."""
    store = MemoryStore()
    me = Members(store, Membership("g", ("k",)), "me", nothing)
    await me.beat(None, [])
    await store.write("group/g/members", orjson.dumps(ROSTER | {"more": 1}))
    await me.beat(None, [])
    found = await store.read("group/g/members")
    assert found is not None
    value = orjson.loads(found.value)
    assert value.keys() == ROSTER.keys()
    assert value["keys"] == ROSTER["keys"]
    assert value["members"].items() >= ROSTER["members"].items()


async def nothing() -> dict[str, int]:
    return {}


# ---------------------------------------------------------------- batches, and requests of groups


async def test_a_batch_has_records_of_one_key_in_a_row(log: Log) -> None:
    for key in "ab":
        await log.append_many(key, [*range(5)])
    async with log.consumer("g", "ab") as consumer:
        batches = [await consumer.batch(3), await consumer.batch()]
        assert sorted((batch[0].key, len(batch)) for batch in batches) in (
            [("a", 3), ("b", 5)],
            [("a", 5), ("b", 3)],
        )
        assert all([each.offset for each in batch] == [*range(len(batch))] for batch in batches)
        with anyio.move_on_after(60) as waiting:
            await consumer.batch()
        assert waiting.cancelled_caught  # the rest comes when what is under way is settled
        for batch in batches:
            await consumer.ack(batch[-1])
        short = min(batches, key=len)
        assert [each.offset for each in await consumer.batch()] == [3, 4]
        assert await log.committed("g", short[0].key) == {short[0].key: 2}
    with pytest.raises(Unfit, match="limit must be at least 1, got 0"):
        await consumer.batch(0)


async def test_an_acknowledgement_covers_what_came_before_it(log: Log) -> None:
    await log.append_many("a", [*range(6)])
    async with log.consumer("g", ["a"]) as consumer:
        batch = await consumer.batch(4)
        await consumer.ack(batch[1])
        assert await log.committed("g", ["a"]) == {"a": 1}
        for settled in batch[:2]:
            with pytest.raises(Unfit, match="settled"):
                await consumer.ack(settled)
        await consumer.ack(batch[3])
        batch = await consumer.batch()
        assert [each.offset for each in batch] == [4, 5]
        await consumer.fail(batch[1])  # the first one was processed
        assert await log.committed("g", ["a"]) == {"a": 4}
        assert (await anext(consumer)).offset == 5
    assert (await log.cursors.read("g", "a")).failures == 1


@pytest.mark.parametrize("how", ["fails", "dies"])
async def test_no_record_is_buried_for_a_failure_of_its_batch(log: Log, how: str) -> None:
    """Only the record at offset 2 is bad, and the program knows no more than that its batch failed."""
    await log.append_many("a", [*range(5)])
    processed: list[int] = []
    with anyio.fail_after(1000):
        while len(processed) < 4:
            if how == "dies" and len(processed) < 3:
                await dead_member(log, "a")
            async with log.consumer("g", ["a"], failures_max=3) as consumer:
                with anyio.move_on_after(30):
                    while batch := await consumer.batch():
                        offsets = [each.offset for each in batch]
                        if 2 not in offsets:
                            processed += offsets
                            await consumer.ack(batch[-1])
                        elif how == "fails":
                            await consumer.fail(batch[0])
                        else:
                            break  # the next member finds it dead
    assert processed == [0, 1, 3, 4]
    letters = [letter.value for letter in await log.read("dead/g")]
    assert letters == [{"key": "a", "offset": 2, "failures": 3}]


# ---------------------------------------------------------------- requests


@asynccontextmanager
async def counted() -> AsyncIterator[tuple[Counted, Log]]:
    store = Counted(MemoryStore())
    await initialise(store)
    log = Log(store, bounds_of(store, 30.0, 5.0))
    async with running(log.host):
        yield store, log


@pytest.mark.parametrize("keys", [1, 10, 100])
async def test_an_idle_member_beats_three_times_a_lease_whatever_its_keys(keys: int) -> None:
    names = [f"k{number}" for number in range(keys)]
    async with counted() as (store, log), log.consumer("g", names) as consumer:
        with anyio.move_on_after(61):
            await anext(consumer)
        assert sorted(consumer.keys) == sorted(names)
        store.clear()
        with anyio.move_on_after(60):
            await anext(consumer)
        assert store.requests["put"] <= 18
        assert store.requests["get"] <= 30
        assert store.bytes_written <= 18 * (200 + 50 * keys)


async def test_members_that_are_not_alone_read_before_they_write() -> None:
    async with counted() as (store, log), log.consumer("g", "ab"), log.consumer("g", "ab"):
        await anyio.sleep(61)
        store.clear()
        await anyio.sleep(60)
        assert store.requests["put"] <= 2 * 18
        assert store.requests["get"] <= 2 * 18


@pytest.mark.parametrize(("limit", "puts"), [(1, 100), (100, 1)])
async def test_an_acknowledgement_is_one_write(limit: int, puts: int) -> None:
    async with counted() as (store, log):
        await log.append_many("a", [*range(100)])
        async with log.consumer("g", ["a"], lease_s=1e6) as consumer:
            records: list[Any] = []
            while len(records) < 100:
                records += await consumer.batch(limit)
                if len(records) == limit:
                    store.clear()
                await consumer.ack(records[-1])
            assert store.requests["put"] == puts
            assert store.requests["get"] == 0


async def test_commits_of_one_process_are_one_write_each() -> None:
    async with counted() as (store, log):
        await log.commit("g", {"a": 0})
        store.clear()
        for offset in range(1, 10):
            await log.commit("g", {"a": offset})
        assert store.requests == {"put": 9}
