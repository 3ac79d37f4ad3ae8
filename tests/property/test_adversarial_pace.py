"""A wrong pace costs time and messages, never safety: every choice of it is replaced by a coin.

Pace decides when and by which node a batch is committed, and for how long anything waits. Safety is what
the committer, the replica and the view do with any of these decisions. Here each decision is random; the
simulator's oracle judges every change of the store and every answer.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from unittest.mock import PropertyMock, patch

import pytest

from leaderless.core.headlog import committer, producer
from leaderless.core.headlog.committer import Committer
from leaderless.core.headlog.delivery import Delivery
from leaderless.core.headlog.economics import Company
from leaderless.core.timeouts import StoreTimeouts
from simulation.judge import simulate
from simulation.scenario import Scenario

pytestmark = pytest.mark.usefixtures("garbage_collected")
TIMES_S = (0.0, 0.0, 0.001, 0.02, 0.3)
SLOW = {"Progress", "unreplicated", "stats"}  # what a bad pace may cost


@contextmanager
def adversarial(random: Random) -> Iterator[None]:
    """Inside the block every node decides by coin."""

    def coin(*_: object) -> bool:
        return random.random() < 0.5

    def time_s(*_: object) -> float:
        return random.choice(TIMES_S)

    def target(delivery: Delivery) -> str | None:
        return random.choice([None, *(peer for peer in delivery._peers if peer != delivery._node)])

    with ExitStack() as patches:
        functions: list[tuple[object, str, object]] = [
            (Delivery, "_target", target),
            (Committer, "_rest_s", time_s),
            (Company, "linger_s", time_s),
            (committer, "reading_ahead_pays", coin),
            (producer, "another_lane_pays", coin),
        ]
        for owner, name, choice in functions:
            patches.enter_context(patch.object(owner, name, choice))
        properties: list[tuple[type, str, Callable[[], object]]] = [
            (Delivery, "_patience_s", lambda: time_s() + 0.001),
            (Delivery, "round_trip_s", time_s),
            (Committer, "_leads", coin),
            (Committer, "_isolates", coin),
            (StoreTimeouts, "timeout_s", lambda: time_s() + 0.01),
        ]
        for kind, name, drawn in properties:
            patches.enter_context(patch.object(kind, name, PropertyMock(side_effect=drawn)))
        yield


@pytest.mark.parametrize("seed", range(12))
def test_no_pace_breaks_the_log(seed: int) -> None:
    given = {"strategy": "leaderless", "time_limit_s": 2.0, "rate": 100.0}
    with adversarial(Random(f"pace/{seed}")):
        report = simulate(Scenario.draw(seed, given))
    assert set(report.names) <= SLOW, report.failures


def test_the_coin_is_asked() -> None:
    """The decisions of a run are really those of the coin: without it the run is another one."""
    scenario = Scenario.draw(1, {"strategy": "leaderless", "time_limit_s": 1.0})
    own = simulate(scenario).digest
    with adversarial(Random("pace/1")):
        assert simulate(scenario).digest != own
