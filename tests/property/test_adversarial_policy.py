"""A wrong policy costs time and messages, never safety: every decision of it is taken by a coin.

The policy decides when and by which node a batch is committed, and for how long anything waits. Safety is what
the attempt, the replica and the view do with any of these decisions. Here a policy that throws a coin takes the
place of the node's own; the simulator's oracle judges every change of the store and every answer.
"""

from random import Random
from typing import Any

import pytest

from leaderless.core.headlog.policy import CommitPolicy
from leaderless.core.machine import Machine
from leaderless.core.pace import Pace
from leaderless.core.scheduler import Scheduler
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.core.strategy import Clock, Context, Identity
from leaderless.core.timeouts import StoreTimeouts
from leaderless.runtime.session import Session
from simulation.judge import Report, judged
from simulation.nodes import CALLS_PER_START, raise_if_broken
from simulation.scenario import Scenario
from simulation.world import World

pytestmark = pytest.mark.usefixtures("garbage_collected")
TIMES_S = (0.0, 0.0, 0.001, 0.02, 0.3)
TIMEOUTS_S = (0.01, 0.3, 1.0)
# What a bad pace may cost: nothing is lost, but not everything is done or served in time.
SLOW = {"Progress", "CompactionMoves", "GarbageCollected", "unreplicated", "stats"}


class CoinTimeouts(StoreTimeouts):
    """A store call may be given up at any time."""

    def __init__(self, random: Random) -> None:
        super().__init__(Pace())
        self._random = random

    @property
    def timeout_s(self) -> float:
        return self._random.choice(TIMEOUTS_S)

    def pause_s(self, op: object) -> float:
        return self._random.choice(TIMES_S)


class CoinPolicy(CommitPolicy):
    """Takes every decision by coin; it is told the facts, and forgets them."""

    def __init__(self, random: Random, node: str, peers: tuple[str, ...], clock: Clock) -> None:
        super().__init__(clock, node, peers, Pace())
        self._random = random
        self._other_nodes = [peer for peer in peers if peer != node]

    def _coin(self) -> bool:
        return self._random.random() < 0.5

    def _time_s(self) -> float:
        return self._random.choice(TIMES_S)

    def target(self, asked: int = 0) -> str | None:
        return self._random.choice([None, *self._other_nodes])

    def greeting_s(self, peer: str) -> float:
        return self._time_s()

    def to_probe(self) -> list[str]:
        return [peer for peer in self._other_nodes if self._random.random() < 0.1]

    def rest_s(self) -> float:
        return self._time_s()

    def stands_back_s(self) -> float:
        return self._time_s()

    def company_until(self, since: float) -> float:
        return since + self._time_s()

    def needs_lane(self, waiting: int) -> bool:
        return self._coin()

    @property
    def turn(self) -> int:
        return self._random.randrange(9)

    keeps_losers = property(_coin)
    isolates = property(_coin)
    reads_ahead = property(_coin)
    hedge_s = property(lambda self: self._time_s() + 0.001)


class AdversarialWorld(World):
    """A run in which every node decides by the same coin."""

    def __init__(self, scenario: Scenario, seed: str) -> None:
        self._pace = Random(seed)
        super().__init__(scenario)

    def _new_session(self, _name: str, incarnation: int) -> Session:
        def start(identity: Identity) -> Machine:
            clock, options = Clock(), self.scenario.node_options

            def policy(
                clock: Clock, node: str, peers: tuple[str, ...], *_: Any, **__: Any
            ) -> CommitPolicy:
                return CoinPolicy(self._pace, node, peers, clock)

            made = LeaderlessLog(Context(identity, clock, options), policy)
            scheduler = Scheduler(CoinTimeouts(self._pace), CALLS_PER_START * incarnation)
            return Machine(made, options.limits, clock, scheduler)

        return Session(start, f"i{incarnation}", note=raise_if_broken)


def run(scenario: Scenario, seed: str) -> Report:
    return judged(AdversarialWorld(scenario, seed))


def test_every_decision_is_the_coins() -> None:
    """A decision that the policy gets one day must be given to the coin, too."""
    facts = {"store_took", "confirmed", "head_is_by", "others_committed", "arrived", "idle"}
    facts |= {"attempt_committed", "attempt_failed", "attempt_unknown"}
    facts |= {"peer_is_late", "peer_answered", "peer_helped", "peer_came"}
    shown = {"late", "committing_peer"}  # to people, and to the exploration
    decisions = {name for name in vars(CommitPolicy) if not name.startswith("_")} - facts - shown
    assert decisions <= vars(CoinPolicy).keys()


@pytest.mark.parametrize("seed", range(8))
def test_no_policy_breaks_the_log(seed: int) -> None:
    given = {"strategy": "leaderless", "time_limit_s": 2.0, "rate": 100.0}
    report = run(Scenario.draw(seed, given), f"policy/{seed}")
    assert set(report.names) <= SLOW, report.failures


def test_the_coin_is_asked() -> None:
    """The decisions of a run are really those of the coin: another coin makes another run."""
    scenario = Scenario.draw(1, {"strategy": "leaderless", "time_limit_s": 1.0})
    assert run(scenario, "a").digest == run(scenario, "a").digest != run(scenario, "b").digest
