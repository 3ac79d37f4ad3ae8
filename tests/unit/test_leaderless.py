"""Promises of the leaderless strategy that no single part keeps: it needs no peer, and bounds what waits."""

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from simulation.scenario import Scenario
from tests.simulation.counting import counted
from tests.toy_log import run_of

pytestmark = pytest.mark.usefixtures("garbage_collected")
BUSY = Scenario(
    seed=5, nodes=4, clients=4, rate=400.0, time_limit_s=1.0, latency_ms=5, freshness_ms=0.0
)


@cache
def messages(combine: bool) -> Counter[str]:
    return counted(replace(BUSY, combine=combine))[1]


def test_without_combining_nobody_is_asked_and_everything_commits() -> None:
    counts = messages(combine=False)
    assert counts["hand_over"] == 0
    assert counts["send_ok"] > 100


def test_combining_saves_calls_of_the_store_under_contention() -> None:
    alone, together = messages(combine=False), messages(combine=True)
    assert together["hand_over"] > 20
    assert together["cas"] + together["read"] < 0.8 * (alone["cas"] + alone["read"])


def test_two_groups_that_cannot_hand_over_take_turns_at_the_store() -> None:
    """One node is cut off from four. Its commits in a row, each with a look at the head beside it, went
    uncounted, so it never rested: all the others waited for the partition to end, 3.3 s with this seed.
    """
    cut_off = run_of(
        "leaderless",
        nodes=tuple(f"n{number}" for number in range(5)),
        concurrency=10,
        rate=1000.0,
        latency_ms=10,
        time_limit_s=4,
        nemesis=("partition",),
        nemesis_interval_s=4,
        seed="5",
    )
    asked_ns: dict[Any, int] = {}
    waits_ns = []
    for op in cut_off.history:
        if op.type == "invoke":
            asked_ns[op.process] = op.time
        elif op.f == "send":
            waits_ns.append(op.time - asked_ns[op.process])
    assert max(waits_ns) < 1e9
