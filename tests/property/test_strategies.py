"""The other strategies under schedules: `prefetch-sealed` survives, `prefetch` and `leader` break as told."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from leaderless.core.messages import Cas, Ok, Unknown
from leaderless.core.process import Process
from leaderless.core.strategies.leader import LeaderLog
from leaderless.core.strategies.prefetch import PrefetchLog
from leaderless.core.strategies.prefetch_sealed import RangeContent, SealedLog
from leaderless.core.strategy import Context
from simulation.headlog import oracle_for
from simulation.nodes import LINEARIZABLE, StrategyMaker
from simulation.oracle import Oracle, Promises, Violation
from tests.property.test_node_schedules import (
    KEYS,
    NODES,
    PHASES,
    SCHEDULES,
    Act,
    Run,
    violation,
)

pytestmark = pytest.mark.simulation
OF_CLIENTS = st.builds(
    Act, st.sampled_from(["send", "send", "poll"]), st.integers(0, 2), st.integers(0, 3)
)
DELIVERIES = st.builds(Act, st.just("deliver"), st.integers(0, 11), st.just(0))
# Nothing gets lost and nothing restarts, but messages take their time.
WITHOUT_FAULTS = st.lists(OF_CLIENTS | DELIVERIES, min_size=20, max_size=60)


def violated(schedule: list[Act], make: StrategyMaker, *, in_order: bool = False) -> str:
    """The invariant that a schedule breaks, if any; `in_order` lets everything arrive after each act.

    These strategies promise less than convergence, so each node is only read in the end.
    """
    run = Run(make, Oracle(Promises(dense=False, commits_kept=False)))
    cluster = run.cluster
    try:
        for act in schedule:
            run.do(act)
            if in_order:
                cluster.finish()
                cluster.pass_time(0.1)
                cluster.finish()
        cluster.finish(every_s=1.0)
        for node in range(len(NODES)):
            run.ask(node, {"type": "poll", "offsets": dict.fromkeys(KEYS, 0)})
            cluster.finish(every_s=1.0)
    except Violation as found:
        return found.name
    return ""


def found(
    schedules: st.SearchStrategy[list[Act]],
    make: StrategyMaker,
    names: str,
    *,
    in_order: bool = False,
) -> list[Act]:
    """A schedule that breaks one of these invariants; raises `NoSuchExample`."""
    return find(
        schedules,
        lambda schedule: violated(schedule, make, in_order=in_order) in names.split(),
        settings=settings(max_examples=2_000, phases=[Phase.generate]),
    )


def sealed(context: Context) -> SealedLog:
    """Ranges so short that every schedule fills some."""
    return SealedLog(context, size=2)


@settings(max_examples=200, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])
@given(SCHEDULES)
def test_clients_of_sealed_ranges_notice_nothing(schedule: list[Act]) -> None:
    assert violation(schedule, sealed, oracle_for("prefetch-sealed", LINEARIZABLE)) is None


@settings(max_examples=100, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])
@given(WITHOUT_FAULTS)
def test_clients_of_a_leader_notice_nothing_while_all_is_calm(schedule: list[Act]) -> None:
    assert violated(schedule, LeaderLog, in_order=True) == ""


@pytest.mark.parametrize("block", [1, 2, 16])
def test_prefetched_blocks_are_passed_over_without_any_fault(block: int) -> None:
    assert found(WITHOUT_FAULTS, lambda context: PrefetchLog(context, block), "PollContiguous")


@pytest.mark.parametrize("name", ["ViewIsPrefix", "PollFresh"])
def test_a_leader_that_is_restarted_numbers_from_0_again(name: str) -> None:
    assert found(SCHEDULES, LeaderLog, name)


class ShowsAtOnce(SealedLog):
    """Broken: does not close the ranges below what it shows."""

    def _close(self, key: str, number: int, content: RangeContent) -> Process[RangeContent]:
        return content
        yield


class Hopeful(SealedLog):
    """Broken: takes silence for success."""

    def _publish(self, key: str, entries: list[Any]) -> Process[Any]:
        publishing = super()._publish(key, entries)
        trap = next(publishing)
        try:
            while True:
                outcome = yield trap
                silent = isinstance(trap, Cas) and isinstance(outcome, Unknown)
                trap = publishing.send(Ok() if silent else outcome)
        except StopIteration as stop:
            return stop.value


def test_the_oracle_catches_broken_sealing() -> None:
    assert found(
        WITHOUT_FAULTS,
        lambda context: ShowsAtOnce(context, size=2),
        "PollContiguous",
        in_order=True,
    )


def test_the_oracle_catches_broken_retries() -> None:
    names = "PollFresh PollContiguous"
    assert found(SCHEDULES, lambda context: Hopeful(context, size=2), names)
