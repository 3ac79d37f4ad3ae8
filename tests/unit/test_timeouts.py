"""How long a store call may take: as long as round trips take, and less and less often while it errs."""

import pytest

from simulation.judge import simulate
from simulation.scenario import Scenario

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
