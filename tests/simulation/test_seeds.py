"""Each strategy that must survive under each fault, and every scenario that ever failed."""

from collections import Counter
from dataclasses import replace

import pytest

from runs.faults import FAULTS, OPERATIONS
from simulation.judge import simulate
from simulation.scenario import SURVIVORS, Scenario, command_of
from tests.regressions import Regression, regressions
from tests.simulation.counting import counted

STRATEGIES = sorted(set(SURVIVORS))
STORMS = [(), *((fault,) for fault in FAULTS), FAULTS]
SEEDS_EACH = 3  # times 3 strategies, times 11 storms
DRAWN = 20
MANY = range(10_000, 12_000, 100)  # the first seed of each hundred
SOME = MANY[:1]  # in every run of CI; the others by `make seeds`


def sound(seed: int, given: dict[str, object]) -> None:
    """Nothing is wrong with a seed."""
    assert simulate(Scenario.draw(seed, given)).failures == [], f"replay: {command_of(seed, given)}"


@pytest.mark.parametrize("storm", STORMS, ids=lambda storm: "+".join(storm[:2]) or "calm")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_strategy_survives_a_storm(strategy: str, storm: tuple[str, ...]) -> None:
    for seed in range(SEEDS_EACH):
        sound(seed, {"strategy": strategy, "nemesis": storm})


def test_everything_drawn() -> None:
    for seed in range(DRAWN):
        sound(seed, {})


@pytest.mark.parametrize("regression", regressions(), ids=lambda each: str(each.scenario.seed))
def test_what_failed_once(regression: Regression) -> None:
    assert simulate(regression.scenario).failures == [], regression.story


def hundreds() -> list[object]:
    """The first seed of each hundred, with the marker of the target that runs it."""
    marks = {first: pytest.mark.slow if first in SOME else pytest.mark.seeds for first in MANY}
    return [pytest.param(first, marks=mark) for first, mark in marks.items()]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", hundreds())
def test_many_seeds(first: int) -> None:
    for seed in range(first, first + 100):
        sound(seed, {})


def test_storms_hold_what_the_rules_are_for() -> None:
    """The test of the test."""
    given = {"strategy": "leaderless", "nemesis": FAULTS, "nodes": 4, "rate": 300.0}
    small = {"seal_entries": 3, "segments_per_run": 2, "time_limit_s": 4.0, "combine": True}
    counts: Counter[str] = Counter()
    for seed in range(6):
        counts += counted(Scenario.draw(seed, given | small))[1]
    begun = [begins for begins, _ in OPERATIONS.values()]
    conflict, fenced = "error 22", "error 11"
    for happened in (*begun, conflict, fenced, "hand_over_ok", "fence_ok", "write"):
        assert counts[happened] > 10, (happened, counts)


def test_options_that_are_given_leave_the_draws_of_others() -> None:
    drawn = Scenario.draw(7)
    assert Scenario.draw(7, {"nodes": drawn.nodes + 1}) == replace(drawn, nodes=drawn.nodes + 1)


def test_every_option_takes_all_its_values() -> None:
    drawn = [Scenario.draw(seed) for seed in range(300)]
    assert {each.strategy for each in drawn} == set(SURVIVORS)
    assert {each.nodes for each in drawn} == {1, 2, 3, 4, 5}
    for fault in FAULTS:
        assert 50 < sum(fault in each.nemesis for each in drawn) < 200, fault
    assert any(each.nemesis == () for each in drawn)
