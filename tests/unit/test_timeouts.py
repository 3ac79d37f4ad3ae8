"""How long a store call may take: as long as round trips take, and less and less often while it errs."""

import pytest

from leaderless.core.messages import Cas
from leaderless.core.timeouts import StoreTimeouts
from leaderless.hosting.place import bounds_of
from leaderless.store.memory import MemoryStore
from simulation.judge import simulate
from simulation.scenario import Scenario


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


FAR = {"nodes": 3, "latency_ms": 50, "store_timeout_ms": 20.0, "time_limit_s": 1.0}


@pytest.mark.parametrize("strategy", ["cas", "leaderless", "prefetch-sealed"])
def test_a_round_trip_above_the_store_timeout_is_no_obstacle(strategy: str) -> None:
    """Every first call times out. The attempts of one request ended before the first answer came."""
    for seed in range(8):
        assert simulate(Scenario.draw(seed, FAR | {"strategy": strategy})).failures == [], seed


@pytest.mark.parametrize("strategy", ["leader", "prefetch"])
def test_nor_for_a_strategy_with_anomalies_of_its_own(strategy: str) -> None:
    """Its polls skip messages, as its module says, but every node serves."""
    for seed in range(5):
        report = simulate(Scenario.draw(seed, FAR | {"strategy": strategy, "nemesis": ()}))
        assert set(report.names) <= {"poll-skip", "int-poll-skip"}, (seed, report.failures)
