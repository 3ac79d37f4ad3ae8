"""How long a store call may take: as long as round trips take, and less and less often while it errs."""

import pytest

from leaderless.core.messages import Cas, Get
from leaderless.core.pace import FAR_S, Pace
from leaderless.core.timeouts import StoreTimeouts
from leaderless.hosting.place import bounds_of
from leaderless.store.memory import MemoryStore
from simulation.judge import simulate
from simulation.scenario import Scenario


def test_it_follows_what_was_measured_and_is_never_less_than_the_first() -> None:
    timeouts = StoreTimeouts(Pace())
    for _ in range(100):
        timeouts.answered(Get, 0.001)
    assert timeouts.timeout_s == 1.0
    for _ in range(100):
        timeouts.answered(Get, 3.0)
    assert 3.0 < timeouts.timeout_s < 3.5


def test_it_doubles_once_while_the_store_is_silent() -> None:
    timeouts = StoreTimeouts(Pace(store_timeout_s=0.1))
    for _ in range(20):
        timeouts.answered(Get, 0.4)
    measured_s = timeouts.timeout_s
    for _ in range(5):
        timeouts.timed_out(asked_at=0.0, now=1.0)
        assert timeouts.timeout_s == 2 * measured_s
    timeouts.answered(Get, 0.4)
    assert timeouts.timeout_s < measured_s


def test_late_answers_make_it_no_longer_than_its_bound() -> None:
    timeouts = StoreTimeouts(Pace())
    for number in range(40):
        timeouts.answered(Get, 0.001 if number % 4 else 9.0)
    timeouts.timed_out(asked_at=0.0, now=1.0)
    assert timeouts.timeout_s == Pace().lease_s


@pytest.mark.parametrize("slow_s", [5.0, 16.0, 60.0])
def test_a_slow_call_of_upkeep_does_not_spoil_the_timeout_of_appends(slow_s: float) -> None:
    pace, quick_s = bounds_of(MemoryStore(), 30.0, 1.0).pace, 0.05
    timeouts = StoreTimeouts(pace)
    for _ in range(100):
        timeouts.answered(Cas, quick_s)
    before_s = timeouts.timeout_s
    timeouts.timed_out(asked_at=0.0, now=1.0)
    assert timeouts.timeout_s == before_s
    timeouts.answered(Cas, slow_s)  # the late answer of the same call
    assert before_s < timeouts.timeout_s <= max(pace.lease_s, slow_s / 4 + 2 * quick_s)
    for _ in range(60):
        timeouts.answered(Cas, quick_s)
    assert timeouts.timeout_s == before_s


def test_a_store_that_is_far_away_has_no_bound() -> None:
    timeouts = StoreTimeouts(Pace())
    for _ in range(40):
        timeouts.answered(Get, 9.0)
    timeouts.timed_out(asked_at=0.0, now=1.0)
    assert timeouts.timeout_s > 9.0


def test_pauses_after_errors_grow_until_the_same_operation_succeeds() -> None:
    timeouts = StoreTimeouts(Pace())
    pauses = [timeouts.pause_s(Cas) for _ in range(9)]
    assert pauses == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0]
    timeouts.answered(Get, 0.1)  # reads go on, which says nothing of writes
    assert timeouts.pause_s(Cas) == 1.0
    timeouts.answered(Cas, 0.1)
    assert timeouts.pause_s(Cas) == 0.01


def test_while_nothing_was_measured_it_is_longer_after_a_loss() -> None:
    timeouts = StoreTimeouts(Pace(store_timeout_s=0.02))
    grown = []
    for number in range(3):
        grown.append(timeouts.timeout_s)
        timeouts.timed_out(asked_at=number, now=number + 0.5)
    assert grown == [0.02, FAR_S, FAR_S]
    for _ in range(10):
        timeouts.answered(Get, 0.1)
    assert 0.1 < timeouts.timeout_s < 0.2


FAR = {"nodes": 3, "latency_ms": 50, "store_timeout_ms": 20.0, "time_limit_s": 1.0}


@pytest.mark.parametrize("strategy", ["cas", "leaderless", "prefetch-sealed"])
def test_a_round_trip_above_the_store_timeout_is_no_obstacle(strategy: str) -> None:
    """Every first call times out. The attempts of one request ended before the first answer came."""
    for seed in range(20):
        report = simulate(Scenario.draw(seed, FAR | {"strategy": strategy}))
        assert report.failures == [], seed


@pytest.mark.parametrize("strategy", ["leader", "prefetch"])
def test_nor_for_a_strategy_with_anomalies_of_its_own(strategy: str) -> None:
    """Its polls skip messages, as its module says, but every node serves."""
    for seed in range(5):
        given = FAR | {"strategy": strategy, "nemesis": ()}
        report = simulate(Scenario.draw(seed, given))
        assert set(report.names) <= {"poll-skip", "int-poll-skip"}, (seed, report.failures)
