"""Compaction, cut off at every step: whoever stops, sleeps or comes back, everything stays readable.

The schedules are not drawn but enumerated: a worker makes a few dozen store calls, so it can be stopped after
each of them, and the others go on from there. The store itself checks every change that is made to it.
"""

from collections.abc import Callable
from dataclasses import replace

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
    assert calls_of_a_worker(PAGED, AT_PACE) < calls_of_a_worker(PAGED)  # under one claim


# The entries, the limits, and how many workers crash in a row, each after so many calls, which grow by a step.
CRASHES: dict[str, tuple[int, Limits, int, int]] = {
    "runs": (ENTRIES, SMALL, 1, 1),
    "pages": (PAGED, SMALL, 3, 1),
    "several runs at once": (PAGED, AT_PACE, 2, 1),
    "crash after crash": (ENTRIES, SMALL, 1, FAILURES_MAX - 1),
    "too many crashes": (ENTRIES, SMALL, 3, FAILURES_MAX + 2),
}


@pytest.mark.parametrize(
    ("case", "which"),
    [(case, at) for case in CRASHES for at in ORDERS.values() if not at or CRASHES[case][3] == 1],
)
def test_a_worker_may_crash_after_every_call(case: str, which: int) -> None:
    """It gave up for ever, and silently, after five kills in a row: 18 of 3000 random runs ended so."""
    entries, limits, step, crashes = CRASHES[case]
    for made in range(crashes > 1, calls_of_a_worker(entries, limits), step):
        store = JudgedStore(entries)
        for name in range(crashes):
            Worker(store, f"crashes {name}", limits=limits).make_calls(made, which)
        finish(store)
    assert any(name.startswith("page/2/") for name in store.registers) == (entries == PAGED)


@pytest.mark.parametrize(("dead", "which"), [(True, 0), (True, -1), (False, 0)])
def test_calls_of_another_arrive_at_every_later_moment(dead: bool, which: int) -> None:
    steps = calls_of_a_worker()
    for made in range(steps):
        for later in range(made % 2, steps + 4, 2):
            store = JudgedStore()
            one = Worker(store, "one")
            one.make_calls(made, which)
            if dead:
                one.forget()
            other = Worker(store, "other")
            other.make_calls(later)
            while one.late:
                one.arrive()
            if not dead:
                one.finish()
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


def test_a_worker_that_stood_still_leaves_a_run_that_is_gone_to_others() -> None:
    """It is below a page, and a store has put it into another file (`leaderless.table`)."""
    low = replace(SMALL, memory_bytes=1)
    for made in range(calls_of_a_worker(PAGED, low)):
        store = JudgedStore(PAGED)
        slow = Worker(store, "slow", limits=low)
        slow.make_calls(made)
        finish(store)
        store.lose("run/0-1", "run/2-3", "run/4-5", "run/6-7")
        slow.finish()
        assert slow.broken == []


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


def paused_after(reader: Driver, calls: int) -> bool:
    """Carry out so many calls of a reader; says whether it has more."""
    for _ in range(calls):
        if not reader.calls:
            return False
        reader.carry_out()
    return bool(reader.calls)
