"""The refinement oracle: runs of every kind are behaviours of HeadLog, and not of a model that is wrong."""

from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import anyio
import pytest

from leaderless.api.log import Log
from leaderless.core.shape import Shape
from leaderless.errors import Fenced
from leaderless.store.values import Value
from simulation.bucket import LawfulBucket
from simulation.bucket_world import world_of
from simulation.exploration import stage
from simulation.exploration.campaign import explored
from simulation.exploration.cluster import ExploredCluster
from simulation.exploration.processes import Processes
from simulation.exploration.setting import Setting
from simulation.judge import Report, judged, simulate
from simulation.logs import Around
from simulation.loop import VirtualEventLoop, run_virtual
from simulation.oracle import Violation
from simulation.refinement import Followed, Refinement
from simulation.scenario import Scenario
from specs.head_log.views import EMPTY_VIEW
from tests.around import slow_port

pytestmark = pytest.mark.simulation

BUSY: dict[str, Any] = {
    "nodes": 3,
    "rate": 60.0,
    "time_limit_s": 2.0,
    "seal_entries": 3,
    "segments_per_run": 2,
}
FAULTS: dict[str, Any] = {"nemesis": ("partition", "kill", "loss", "duplicate", "store", "fence")}
SILENT: dict[str, Any] = {"nemesis": ("store",), "nemesis_targets": "all", "latency_ms": 5}
SEEDS = [
    Scenario(1, **BUSY, commits="deferred"),
    Scenario(2, **BUSY, commits="durable", nemesis_interval_s=0.3, **FAULTS),
    Scenario(3, **BUSY, latency_ms=20, nemesis_interval_s=0.3, **FAULTS),
    Scenario(5, **BUSY, backlog=40, nemesis_interval_s=0.5, **FAULTS),
    Scenario(36, **BUSY, **SILENT, nemesis_interval_s=0.3),
    Scenario.draw(446, {"strategy": "leaderless"}),
    Scenario.draw(
        120, {"strategy": "leaderless"}
    ),  # rejects a batch that was made in a fenced epoch
    Scenario(106, **BUSY, lanes=1, clients=1, latency_ms=5, nemesis_interval_s=0.3, **FAULTS),
]
STEPS = {
    *("Send", "Try", "Commit", "Seal", "Refresh", "HandOver", "Answered", "Acked", "Abandon"),
    *("Poll", "Claim", "CompactWrite", "CompactDelete", "CompactCursor", "Release", "Reject"),
    *("Fence", "Unfence"),
}


BESIDE = {"store": "bucket", "strategy": "leaderless", "compactions": 10, "rate": 100.0}
CONDITIONS = {"conditions": True, "closes": 2}
PROGRAMS = [Scenario.draw(seed, BESIDE | {"mixed": True} | CONDITIONS) for seed in (36, 13, 16)]
BESIDE_COMPACTION = Setting(programs=True, before=2, sends=1, compactions=1)
CONDITIONAL = Setting(programs=True, hand_over=True, conditions=True, before=5)


def followed(scenario: Scenario, model: type[Followed] = Followed) -> tuple[Report, Refinement]:
    world = world_of(scenario)
    oracle = world.refinement = Refinement(model)
    return judged(world), oracle


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each step was followed."""
    found: Counter[str] = Counter()
    stepped = Refinement._stepped

    def counted(oracle: Refinement, node: str, name: str, fields: dict[str, Any]) -> None:
        found[name] += 1
        stepped(oracle, node, name, fields)

    monkeypatch.setattr(Refinement, "_stepped", counted)
    return found


def test_every_step_of_the_seeds_is_one_of_the_model(told: Counter[str]) -> None:
    for scenario in SEEDS:
        report, oracle = followed(scenario)
        assert report.failures == []
        assert told.total() > 100
        assert oracle.state.log
    assert told.keys() >= STEPS


def test_every_step_of_programs_is_one_of_the_model(told: Counter[str]) -> None:
    for scenario in PROGRAMS:
        assert simulate(scenario).failures == []
    assert told.keys() >= STEPS - {"Abandon"}


def test_what_programs_alone_do_has_its_place_in_the_model(told: Counter[str]) -> None:
    """Several records at once, large values, batches with names, and a fence."""
    large = "x" * 100
    pairs: list[tuple[str, Value]] = [("k", 1), ("l", large)]

    async def both(one: Log, other: Log) -> None:
        assert await one.append_many("k", [1, large]) == [0, 1]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.append_named, "w", 3, pairs)
            tasks.start_soon(other.append_named, "w", 3, pairs)
            tasks.start_soon(other.append, "k", 2)
        await other.fence()
        with pytest.raises(Fenced):
            await one.append("k", 3)
        await one.unfence()
        await one.append_named("w", 7, pairs)  # with objects that are written anew
        for number in range(4):
            await other.append("k", number)
        await other.compact()
        assert len(await one.read("k")) == 9

    async def main(loop: VirtualEventLoop) -> Refinement:
        refinement, names = Refinement(), map("1-{:024x}".format, count())
        bucket = LawfulBucket(loop.time, refinement)
        around = Around(
            *("leaderless", False, lambda _: bucket.clock_s, lambda: next(names)),
            bucket.traced,
            {"seal_entries": 2, "segments_per_run": 2},
        )
        ports = [slow_port(bucket, name, 5.0) for name in "ab"]
        async with around.opened(ports[0]) as one, around.opened(ports[1]) as other:
            assert isinstance(one, Log)
            assert isinstance(other, Log)
            await both(one, other)
        refinement.settle()
        return refinement

    refinement = run_virtual(main)
    assert refinement.state.head.epoch == 2
    assert refinement.state.runs
    assert told.keys() >= {"Named", "Fence", "Unfence", "Reject"}


WRONG: dict[str, Callable[..., Any]] = {  # each is HeadLog with one line changed
    "first_offset": lambda _, view, key: view.end(key) + 1,
    "freed": lambda *_: 0,
    "is_full": lambda *_: False,
    "is_over": lambda *_: False,
    "has_outcome": lambda *_: False,
    "run_of": lambda _, segment: EMPTY_VIEW._replace(length=len(segment)),
    "same_head": lambda _, a, b: a.end != b.end,
    "next_epoch": lambda _, epoch: epoch + 2,
    "in_epoch": lambda _, batch, epoch: batch.epoch != epoch,
    "is_committed": lambda *_: True,
    "cas_claim": lambda *_: False,
    "cursor_after": lambda _, s, w: w.base + 1,
}
WRONG_CONDITIONS: dict[str, Callable[..., Any]] = {
    "end_is_expected": lambda _, view, b: not b.content.expected,
    "token_is_highest": lambda _, view, b: not b.content.tokens,
    "keys_are_open": lambda _, view, b: max(map(view.token, b.content.counts), default=-1) < 0,
    "is_kept_out": lambda *_: False,
}


@pytest.mark.parametrize("decision", WRONG)
def test_a_model_that_is_wrong_in_one_line_is_told(decision: str) -> None:
    wrong = type("Wrong", (Followed,), {decision: WRONG[decision]})
    found = (name for scenario in SEEDS for name in followed(scenario, wrong)[0].names)
    assert next(found) == "RefinesHeadLog"


OF_PROGRAMS = {
    **dict.fromkeys(("first_offset", "is_full", "run_of", "same_head"), BESIDE_COMPACTION),
    **dict.fromkeys(WRONG_CONDITIONS, CONDITIONAL),
}


@pytest.mark.parametrize("decision", OF_PROGRAMS)
def test_every_schedule_of_programs_is_held_to_the_model(
    decision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = type("Wrong", (Followed,), {decision: (WRONG | WRONG_CONDITIONS)[decision]})
    monkeypatch.setattr(stage, "Refinement", lambda: Refinement(wrong))
    failed = explored(OF_PROGRAMS[decision]).failed
    assert failed
    assert failed.name == "RefinesHeadLog"


def test_a_head_that_changes_in_no_new_epoch_is_told() -> None:
    head = {
        **{"state": "open", "epoch": 0, "version": 1, "by": "n0", "sealed": 0, "base": 0},
        **{"size": 0, "shape": [*Shape().value.values()], "entries": []},
    }
    oracle = Refinement()
    oracle.changed("head", head)
    oracle.changed("head", head | {"version": 2, "epoch": 1})  # before a vacuum
    for change in ({}, {"state": "fenced"}, {"epoch": 3}):
        with pytest.raises(Violation, match="RefinesHeadLog: Head of"):
            oracle.copy().changed("head", head | {"version": 3, "epoch": 1} | change)


def test_every_event_of_a_search_is_followed_and_a_copy_has_its_own_state() -> None:
    cluster = ExploredCluster(Processes(Setting(sends=2, polls=1)))
    copies = []
    while enabled := cluster.enabled():
        copies.append((cluster.copier(), cluster.refinement and cluster.refinement.state))
        cluster.step(enabled[0])
    assert cluster.refinement
    assert len(cluster.refinement.state.log) == 2
    for copy, state in copies:
        again = copy()
        assert again.refinement
        assert again.refinement.state == state
        assert again.refinement is not cluster.refinement
