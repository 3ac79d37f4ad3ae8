"""The stepped cluster: a schedule is chosen event by event, so that all of them can be tried."""

from collections.abc import Iterator
from math import comb
from typing import Any

import pytest

from simulation.headlog import oracle_for
from simulation.nodes import LINEARIZABLE
from simulation.oracle import Violation
from tests.stepped import Step, SteppedCluster


def begun(keys: tuple[str, str]) -> SteppedCluster:
    """Two nodes, each with a message to append."""
    cluster = SteppedCluster(["n0", "n1"], "cas", oracle=oracle_for("cas", LINEARIZABLE))
    for node, key in zip(cluster.names, keys, strict=True):
        cluster.request("c1", node, {"type": "send", "key": key, "msg": node})
    return cluster


def all_ends(keys: tuple[str, str], steps: tuple[Step, ...] = ()) -> Iterator[SteppedCluster]:
    """The cluster at the end of every order of deliveries, each played from the beginning."""
    cluster = begun(keys)
    for step in steps:
        cluster.step(step)
    enabled = [step for step in cluster.enabled() if step.kind == "deliver"]
    if not enabled:
        yield cluster
    for step in enabled:
        yield from all_ends(keys, (*steps, step))


def log_of(cluster: SteppedCluster, key: str) -> list[Any]:
    return [msg for _, _, msg in cluster.store.registers[f"log/{key}"]]


def test_independent_appends_have_as_many_schedules_as_the_formula_says() -> None:
    """Each append is two deliveries: its call, and the answer."""
    ends = list(all_ends(("j", "k")))
    assert len(ends) == comb(4, 2)
    assert all((log_of(end, "j"), log_of(end, "k")) == (["n0"], ["n1"]) for end in ends)


def test_rivals_end_in_either_order_whatever_the_schedule() -> None:
    ends = list(all_ends(("k", "k")))
    assert {tuple(log_of(end, "k")) for end in ends} == {("n0", "n1"), ("n1", "n0")}
    assert not any(end.watch.unanswered for end in ends)


def test_time_is_an_event_among_others() -> None:
    cluster = begun(("k", "k"))
    assert [step.kind for step in cluster.enabled()] == ["deliver", "deliver", "pass_time"]
    cluster.step(Step("drop", 1))
    cluster.step(Step("pass_time", None))
    assert cluster.now == pytest.approx(1.0, abs=1e-3)  # n0 asks again
    cluster.converge(["k"])


def test_a_message_that_was_acknowledged_and_is_gone_is_a_violation() -> None:
    """The test of the test."""
    cluster = begun(("k", "k"))
    cluster.finish()
    cluster.store.cells.clear()
    with pytest.raises(Violation, match="PollFresh"):
        cluster.ask("n1", {"type": "poll", "offsets": {"k": 0}})
