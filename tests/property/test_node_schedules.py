"""Nodes under any schedule: answers late, lost, reordered; timeouts; restarts. Clients must not notice.

A schedule is a list of acts. An act that names a message in flight counts modulo what is in flight, so every
list is a schedule and shrinks well. After it the network heals, and all nodes must show the same log. The
oracle judges every answer on the way.
"""

import os
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from leaderless.core.messages import (
    Cas,
    CommitOffsetsOk,
    Failure,
    Ok,
    Put,
    Reason,
    Reply,
    SendOk,
    Unknown,
)
from leaderless.core.process import Process
from leaderless.core.strategies.cas import CasLog
from simulation.headlog import oracle_for
from simulation.nodes import LINEARIZABLE, StrategyMaker
from simulation.oracle import Oracle, Promises, Violation
from tests.stepped import SteppedCluster

# Shrinking may take minutes; HYPOTHESIS_SHRINK=1 asks for it.
PHASES = [
    phase for phase in Phase if os.environ.get("HYPOTHESIS_SHRINK") or phase is not Phase.shrink
]
pytestmark = pytest.mark.simulation
NODES = ["n0", "n1", "n2"]
KEYS = ["j", "k"]


class Act(NamedTuple):
    """One thing that happens; what `which` and `offset` mean depends on `kind`."""

    kind: str
    which: int = 0
    offset: int = 0


ACTS = st.builds(
    Act,
    # Repeated kinds are likelier: most messages arrive, and time passes seldom.
    st.sampled_from(
        ["send", "send", "send", "poll", "commit", "list", "restart", "wait"]
        + ["deliver"] * 8
        + ["drop"] * 2
    ),
    st.integers(0, 11),
    st.integers(0, 3),
)
# A list is twice its least size on average; short ones show nothing.
SCHEDULES = st.lists(ACTS, min_size=25, max_size=80)


class Run:
    """Carries acts out on a cluster."""

    def __init__(self, strategy: str | StrategyMaker, oracle: Oracle | None) -> None:
        self.cluster = SteppedCluster(NODES, strategy, oracle=oracle)

    def do(self, act: Act) -> None:
        """Carry one act out."""
        which, cluster = act.which, self.cluster
        flying = [*cluster.flying]
        match act.kind:
            case "send":
                key, msg = KEYS[act.offset % 2], cluster.last_msg_id
                self.ask(which, {"type": "send", "key": key, "msg": msg})
            case "poll":
                self.ask(which, {"type": "poll", "offsets": dict.fromkeys(KEYS, act.offset)})
            case "commit":
                self.ask(
                    which, {"type": "commit_offsets", "offsets": {KEYS[act.offset % 2]: which}}
                )
            case "list":
                self.ask(which, {"type": "list_committed_offsets", "keys": KEYS})
            case "restart":
                cluster.start(NODES[which % 3])
            case "wait":
                cluster.pass_time(0.3 * (1 + which % 4))
            case "deliver" if flying:
                cluster.deliver(flying[which % len(flying)])
            case "drop" if flying:
                cluster.drop(flying[which % len(flying)])

    def ask(self, node: int, body: dict[str, Any]) -> None:
        """A request to one node."""
        self.cluster.request("c1", NODES[node % 3], body)


def violation(
    schedule: list[Act], strategy: str | StrategyMaker, oracle: Oracle | None
) -> Violation | None:
    """What the oracle finds in a schedule, and in the convergence after it."""
    run = Run(strategy, oracle)
    try:
        for act in schedule:
            run.do(act)
        run.cluster.converge(KEYS, every_s=1.0)
    except Violation as found:
        return found
    return None


@pytest.mark.parametrize("strategy", ["cas", "leaderless"])
def test_clients_notice_nothing(strategy: str) -> None:
    @settings(max_examples=200, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])
    @given(SCHEDULES)
    def check(schedule: list[Act]) -> None:
        assert violation(schedule, strategy, oracle_for(strategy, LINEARIZABLE)) is None

    check()


class SendsBlindly(CasLog):
    """Broken: takes silence for failure and appends again under a new identity."""

    done: tuple[type[Any], ...] = (Ok,)

    def _send(self, event: Any) -> Process[Any]:
        while True:
            entry = [self._writer, next(self._numbers), event.msg]
            log = yield from self._read(event.key)
            outcome = yield Cas(f"log/{event.key}", log, [*log, entry], create=not log)
            if isinstance(outcome, self.done):
                yield Reply(event.request, SendOk(len(log)))
                return


class SendsHopefully(SendsBlindly):
    """Broken: takes silence for success."""

    done = (Ok, Unknown)


class CommitsBackwards(CasLog):
    """Broken: the last commit wins, also over a higher one."""

    def _commit_offsets(self, event: Any) -> Process[Any]:
        for key, offset in event.offsets.items():
            yield Put(f"committed/{key}", offset)
        yield Reply(event.request, CommitOffsetsOk())


class RefusesTooSoon(CasLog):
    """Broken: says that nothing happened when it does not know."""

    def _send(self, event: Any) -> Process[Any]:
        log = yield from self._read(event.key)
        entry = [self._writer, next(self._numbers), event.msg]
        outcome = yield Cas(f"log/{event.key}", log, [*log, entry], create=not log)
        happened = isinstance(outcome, Ok)
        answer = SendOk(len(log)) if happened else Failure(Reason.BUSY, "no luck")
        yield Reply(event.request, answer)


BROKEN = {
    SendsBlindly: "AckedExactlyOnce",
    SendsHopefully: "PollFresh",
    CommitsBackwards: "CommitsKept",
    RefusesTooSoon: "RejectedNeverAppended",
}


@pytest.mark.parametrize(("broken", "name"), BROKEN.items())
def test_the_oracle_catches_broken_strategies(broken: type[CasLog], name: str) -> None:
    def caught(schedule: list[Act]) -> bool:
        found = violation(schedule, broken, Oracle(Promises()))
        return found is not None and found.name == name

    try:
        find(SCHEDULES, caught, settings=settings(max_examples=2_000, phases=[Phase.generate]))
    except NoSuchExample:
        pytest.fail(f"no schedule shows what is wrong with {broken.__name__}")
