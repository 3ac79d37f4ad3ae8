"""Groups of consumers under random lives, deaths, failures and lost answers, on a clock that jumps.

What must hold: a key has one live owner; a record is acknowledged once at most, and in the order of its key; in
the end every record is acknowledged or has a dead letter.
"""

from collections import Counter
from contextlib import suppress
from typing import Any, TypeVar

import anyio
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderless.api.log import Log
from leaderless.errors import LogError
from leaderless.groups.consumer import Consumer
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, initialise
from leaderless.hosting.reads import Record
from leaderless.store.memory import MemoryStore
from tests.around import READS, UPDATES, Fate, Fated, in_turn

T = TypeVar("T")
KEYS = ("a", "b", "c")
RECORDS = 4  # of each key
LEASE_S = 4.0
FAILURES_MAX = 3


LIVES = st.lists(
    st.tuples(
        st.sampled_from(["leaves", "dies"]),
        st.integers(1, 40),  # seconds
        st.lists(st.sampled_from(["ack", "ack", "ack", "fail", "ignore"]), max_size=6),
        st.lists(st.sampled_from(["ok", "ok", "call lost", "answer lost"]), max_size=12),
    ),
    max_size=4,
)


class Group:
    """The members of one run, and what they did."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.members: list[tuple[Fated, Consumer]] = []
        self.acked: list[Record] = []

    async def life(self, how: str, seconds: int, habits: list[str], fates: list[str]) -> None:
        """A member from its beginning to its end."""
        store = Fated(self.store, *in_turn([*fates, "ok"], "group/"))
        log = Log(store, bounds_of(store, 30.0, 5.0))
        with anyio.CancelScope() as process:
            async with (
                running(log.host),
                log.consumer("g", KEYS, lease_s=LEASE_S, failures_max=FAILURES_MAX) as consumer,
            ):
                member = store, consumer
                self.members.append(member)
                try:
                    with anyio.move_on_after(seconds if how != "stays" else 1e9):
                        await self._work(consumer, [*habits])
                    if how == "dies":
                        store.fates = [Fate((*READS, *UPDATES), before=anyio.sleep_forever)]
                        process.cancel()
                finally:
                    self.members.remove(member)

    async def _work(self, consumer: Consumer, habits: list[str]) -> None:
        async for record in consumer:
            habit = habits.pop() if habits else "ack"
            await anyio.sleep(0.5)
            with suppress(LogError):
                if habit == "ack":
                    await consumer.ack(record)
                    self.acked.append(record)
                elif habit == "fail":
                    await consumer.fail(record)
                else:
                    await anyio.sleep_forever()  # it never settles: the member must go first

    async def watch(self) -> None:
        """Look at who owns what, all the time."""
        while True:
            owned = Counter(key for _, member in self.members for key in member.keys)
            assert all(count == 1 for count in owned.values()), owned
            await anyio.sleep(0.2)


async def run(lives: list[tuple[str, int, list[str], list[str]]]) -> None:
    group = Group()
    await initialise(group.store)
    log = Log(group.store, bounds_of(group.store, 30.0, 5.0))
    async with running(log.host):
        for key in KEYS:
            await log.append_many(key, [*range(RECORDS)])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(group.watch)
            async with anyio.create_task_group() as members:
                for life in lives:
                    members.start_soon(group.life, *life)
                    await anyio.sleep(1)
            tasks.start_soon(group.life, "stays", 0, [], [])
            await until_settled(log)
            tasks.cancel_scope.cancel()
        letters = [letter.value for letter in await log.read("dead/g", 0, 1000)]
    require_order(group.acked, letters)


async def until_settled(log: Log) -> None:
    """Return when the group is past every record."""
    for _ in range(1000):
        if await log.committed("g", KEYS) == dict.fromkeys(KEYS, RECORDS - 1):
            return
        await anyio.sleep(1)
    raise AssertionError("the group makes no progress")


def require_order(acked: list[Record], letters: list[Any]) -> None:
    for key in KEYS:
        offsets = [record.offset for record in acked if record.key == key]
        assert offsets == sorted({*offsets})
        buried = {letter["offset"] for letter in letters if letter["key"] == key}
        assert {*offsets} | buried <= {*range(RECORDS)}


@pytest.mark.filterwarnings("ignore:coroutine")
@settings(max_examples=25)
@given(LIVES)
def test_every_record_is_settled_by_one_owner_at_a_time(lives: Any) -> None:
    trio.run(run, lives, clock=trio.testing.MockClock(autojump_threshold=0))
