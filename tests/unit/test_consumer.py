"""Groups of consumers (`leaderless.groups.consumer`), on a clock that jumps; see `tests/datadriven/logs`."""

from typing import Any

import anyio
import orjson
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from leaderless import open_log_sync
from leaderless.api.log import Log
from leaderless.core.coordination import Misfit
from leaderless.errors import LogError
from leaderless.groups.members import (
    Member,
    Members,
    Membership,
    Roster,
    Tenure,
    roster_of,
    shares,
)
from leaderless.store.memory import MemoryStore
from leaderless.store.port import OutcomeUnknown
from tests.around import READS, Fate, Fated, value_at

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


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


def test_the_sync_iterator_goes_on_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Fated()
    monkeypatch.setattr("leaderless.hosting.place.open_store", lambda _url, _options: store)
    with open_log_sync("memory:", patience_s=0.3, store_timeout_s=0.1) as log:
        log.append("a", 1)
        records = iter(log.tail(["a"], "earliest", latency_s=0.01))
        store.fates = [Fate(READS, "head", OutcomeUnknown("nobody is there"), applied=False)]
        for _ in range(2):
            with pytest.raises(LogError):
                next(records)
        store.fates.clear()
        assert next(records).value == 1


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
    value = orjson.loads(await value_at(store, "group/g/members"))
    assert value.keys() == ROSTER.keys()
    assert value["keys"] == ROSTER["keys"]
    assert value["members"].items() >= ROSTER["members"].items()


async def nothing() -> dict[str, int]:
    return {}
