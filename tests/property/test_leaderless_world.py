"""The leaderless log in a bad world: no invariant breaks, everybody is answered, all views converge.

`tests.sim` says what a world is; its oracle names every invariant of the design. A seed that failed once
stays in REGRESSIONS with what it found.
"""

from collections import Counter

import pytest

from tests.sim.scenario import Scenario
from tests.sim.world import Report, run

pytestmark = pytest.mark.usefixtures("garbage_collected")
REGRESSIONS = {
    25421: "a peer that could not share what the asker lacked was asked again for ever",
    35: "a run of the index that reaches beyond the head that was read put the view before the head",
}
SEEDS = range(1_000, 1_060)


def sound(scenario: Scenario) -> Report:
    """A report whose history the bench's checker accepts too; the oracle raises on its own."""
    report = run(scenario)
    assert report.anomalies() == [], f"replay: python -m tests.sim {scenario.seed}"
    return report


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_what_failed_once(seed: int) -> None:
    sound(Scenario.draw(seed))


def test_seeds() -> None:
    counts = sum((sound(Scenario.draw(seed)).counts for seed in SEEDS), Counter())
    # The test of the test: these worlds hold what the rules are for.
    for happened in ("kill", "partition", "fence", "conflict", "hand_over_ok", "error", "write"):
        assert counts[happened] > 20, happened


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 12_000, 100))
def test_many_seeds(first: int) -> None:
    for seed in range(first, first + 100):
        sound(Scenario.draw(seed))


def test_the_same_seed_gives_the_same_history() -> None:
    assert run(Scenario.draw(7)) == run(Scenario.draw(7))
