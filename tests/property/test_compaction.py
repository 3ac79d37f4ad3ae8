"""Compaction, cut off at every step: whoever stops, sleeps or comes back, everything stays readable.

The schedules are not drawn but enumerated: a worker makes a few dozen store calls, so it can be stopped after
each of them, and the others go on from there. The store itself checks every change that is made to it.
"""

from collections.abc import Callable

import pytest

from leaderless.core.claims import FAILURES_MAX
from leaderless.core.limits import Limits
from tests.compacting import (
    AT_PACE,
    ENTRIES,
    SMALL,
    JudgedStore,
    Worker,
    log_of,
    messages_of,
    reader_of,
)
from tests.driver import Driver

pytestmark = pytest.mark.simulation


PAGED = 27  # entries: six runs, so that pages are made of runs and of pages


def calls_of_a_worker(entries: int = ENTRIES, limits: Limits = SMALL) -> int:
    """How many calls one worker makes undisturbed."""
    store, count = JudgedStore(entries), 0
    worker = Worker(store, "alone", limits=limits)
    while worker.make_calls(1):
        count += 1
    store.require_compacted()
    return count


def finish(store: JudgedStore) -> None:
    Worker(store, "last").finish()
    store.require_compacted()


ORDERS = {"oldest call first": 0, "newest call first": -1}


def test_one_worker_is_enough() -> None:
    assert 20 < calls_of_a_worker() < 60


@pytest.mark.parametrize("which", ORDERS.values(), ids=ORDERS)
def test_a_worker_may_crash_after_every_call(which: int) -> None:
    for made in range(calls_of_a_worker()):
        store = JudgedStore()
        Worker(store, "crashes").make_calls(made, which)
        finish(store)


@pytest.mark.parametrize("which", ORDERS.values(), ids=ORDERS)
def test_a_worker_may_crash_while_it_makes_pages(which: int) -> None:
    for made in range(calls_of_a_worker(), calls_of_a_worker(PAGED), 3):
        store = JudgedStore(PAGED)
        Worker(store, "crashes").make_calls(made, which)
        finish(store)
        assert any(name.startswith("page/2/") for name in store.registers)


@pytest.mark.parametrize("which", ORDERS.values(), ids=ORDERS)
def test_a_worker_may_crash_while_it_makes_several_runs_at_once(which: int) -> None:
    calls = calls_of_a_worker(PAGED, AT_PACE)
    assert calls < calls_of_a_worker(PAGED)  # under one claim
    for made in range(0, calls, 2):
        store = JudgedStore(PAGED)
        Worker(store, "crashes", limits=AT_PACE).make_calls(made, which)
        finish(store)


def test_crash_after_crash() -> None:
    """Each worker gets a little further than the one before, and the task is never given up."""
    for made in range(1, calls_of_a_worker()):
        store = JudgedStore()
        for name in range(FAILURES_MAX - 1):
            Worker(store, f"crashes {name}").make_calls(made)
        finish(store)


def test_compaction_goes_on_after_too_many_crashes() -> None:
    """It gave up for ever, and silently, after five kills in a row: 18 of 3000 random runs ended so."""
    for made in range(1, calls_of_a_worker(), 3):
        store = JudgedStore()
        for name in range(FAILURES_MAX + 2):
            Worker(store, f"crashes {name}").make_calls(made)
        finish(store)


@pytest.mark.parametrize("which", ORDERS.values(), ids=ORDERS)
def test_calls_of_the_dead_arrive_at_every_later_moment(which: int) -> None:
    steps = calls_of_a_worker()
    for made in range(steps):
        for later in range(made % 2, steps + 4, 2):
            store = JudgedStore()
            dead = Worker(store, "dead")
            dead.make_calls(made, which)
            dead.forget()
            other = Worker(store, "other")
            other.make_calls(later)
            while dead.late:
                dead.arrive()
            other.finish()
            finish(store)


def test_a_slow_worker_wakes_up_at_every_later_moment() -> None:
    steps = calls_of_a_worker()
    for made in range(steps):
        for later in range(made % 2, steps + 4, 2):
            store = JudgedStore()
            slow = Worker(store, "slow")
            slow.make_calls(made)
            other = Worker(store, "other")
            other.make_calls(later)
            slow.finish()
            other.finish()
            finish(store)


def test_two_workers_in_turns() -> None:
    for turn in range(1, 12):
        store = JudgedStore()
        workers = [Worker(store, name) for name in ("one", "two")]
        while any(worker.running for worker in workers):
            for worker in workers:
                worker.make_calls(turn)
        finish(store)


# ---------------------------------------------------------------- readers meanwhile


def grown(store: JudgedStore) -> None:
    """Others append and compact again: what the reader has read is older than the index."""
    store.grow_to(ENTRIES + 8)
    Worker(store, "again").finish()


@pytest.mark.parametrize("known", [None, 1, 4, 9])
@pytest.mark.parametrize("then", [lambda _: None, grown], ids=["still", "grown"])
def test_a_reader_may_be_overtaken_after_every_call(
    known: int | None, then: Callable[[JudgedStore], None]
) -> None:
    steps = calls_of_a_worker()
    paused = 0
    more = True
    while more:
        for made in range(paused % 2, steps + 2, 2):
            store = JudgedStore(known or 0)
            reader, replica = reader_of(store)
            if known is not None:
                reader.call(replica.refresh())
            store.grow_to(ENTRIES)
            reader.start(replica.refresh())
            more = paused_after(reader, paused)
            Worker(store, "worker").make_calls(made)
            then(store)
            if (
                made % 4 < 2
            ):  # another request of the node reads beside it, and may be the faster one
                reader.start(replica.refresh())
                while reader.running:
                    reader.carry_out(which=-1)
            reader.finish()
            assert set(reader.results) == {None}
            reader.call(replica.refresh())
            assert log_of(reader, replica) == messages_of(store.entries)
            assert replica.view.slot == replica.head.end == store.entries
        paused += 1
    assert paused >= 3


def test_two_reads_of_one_node_may_cross() -> None:
    paused, more = 0, True
    while more:
        store = JudgedStore()
        Worker(store, "worker").finish()
        reader, replica = reader_of(store)
        reader.start(replica.refresh())
        more = paused_after(reader, paused)
        reader.start(replica.refresh())
        while reader.running:
            reader.carry_out(which=-1)
        assert reader.results == [None, None]
        assert log_of(reader, replica) == messages_of(ENTRIES)
        assert replica.view.slot == replica.head.end == ENTRIES
        paused += 1
    assert paused >= 5


def paused_after(reader: Driver, calls: int) -> bool:
    """Carry out so many calls of a reader; says whether it has more."""
    for _ in range(calls):
        if not reader.calls:
            return False
        reader.carry_out()
    return bool(reader.calls)
