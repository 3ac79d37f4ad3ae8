"""Traces of the node's core in the simulated world are behaviours of HeadLog; tampered ones are not."""

import copy
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from leaderless.core.messages import Fields
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.core.strategy import Context
from leaderless.core.strategy import Trace as Steps
from simulation.judge import simulate
from simulation.scenario import Scenario
from specs.trace import validate
from specs.translation import FIELDS, Trace

Events = list[dict[str, Any]]

SMALL: dict[str, Any] = {
    "seal_entries": 3,
    "segments_per_run": 2,
    "latency_ms": 5,
    "freshness_ms": 0.0,
    "nemesis_interval_s": 0.3,
    "nemesis_targets": "one",
    "lanes": 1,
    "commits": "deferred",  # they are in the log
}
LOSSY: dict[str, Any] = {"nodes": 2, "rate": 60.0, "time_limit_s": 1.0, "nemesis": ("loss",)}
LATE: dict[str, Any] = {
    "rate": 60.0,
    "time_limit_s": 1.0,
    "latency_ms": 20,
    "nemesis": ("duplicate", "slow", "store"),
}
SILENT: dict[str, Any] = {
    "rate": 30.0,
    "time_limit_s": 1.5,
    "nemesis": ("store",),
    "nemesis_targets": "all",
}
KILLED: dict[str, Any] = {"rate": 30.0, "time_limit_s": 2.0, "nemesis": ("kill", "loss")}
FENCED: dict[str, Any] = {"rate": 30.0, "time_limit_s": 2.0, "nemesis": ("kill", "fence")}
TROUBLED: dict[str, Any] = {  # a fence of unknown outcome too
    "nemesis": ("partition", "kill", "loss", "duplicate", "store", "fence"),
}
SCENARIOS = [
    Scenario(seed, **SMALL | options)
    for seed, options in [
        (12, LOSSY),
        (30, LATE),
        (31, LATE),
        (32, LATE),
        (36, SILENT),
        (48, SILENT),
        (300, SILENT | {"time_limit_s": 8.0, "nemesis_interval_s": 5.0, "rate": 4.0}),
        (40, KILLED),
        (22, FENCED | {"clients": 1}),
        (106, TROUBLED | {"clients": 1, "rate": 30.0, "time_limit_s": 1.0}),
    ]
]
BY_SEED = {scenario.seed: scenario for scenario in SCENARIOS}
WITH_FENCE = 22
WITHOUT = 12  # neither fenced nor killed


@cache
def real_trace(seed: int) -> Trace:
    """The steps of all nodes of a world, in the order in which they were written."""
    scenario = BY_SEED[seed]
    events: Events = []
    report = simulate(scenario, lambda context: traced(context, events))
    assert report.failures == []
    return Trace(scenario.segments_per_run, tuple(events))


def traced(context: Context, events: Events) -> LeaderlessLog:
    node = context.identity.node
    if node == "fresh":  # the oracle's reader
        return LeaderlessLog(context)
    trace = Listed(node, events, context.trace)
    if any(event["node"] == node for event in events):
        trace("Restart", dict, {"incarnation": context.identity.writer.rpartition(".")[2]})
    return LeaderlessLog(context._replace(trace=trace))


class Listed(Steps):
    """Puts the steps of a node into the list of all nodes' at once, and tells them `also`."""

    def __init__(self, node: str, events: Events, also: Steps) -> None:
        super().__init__(on=True)
        self._node, self._events, self._also = node, events, also

    def __call__(self, name: str, fields: Callable[..., Fields] = dict, *of: object) -> None:
        self._events.append({"step": name, "node": self._node, **fields(*of)})
        self._also(name, fields, *of)


@pytest.mark.tlc
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(s, marks=[] if s in (WITH_FENCE, WITHOUT) else pytest.mark.slow)
        for s in BY_SEED
    ],
)
def test_real_traces_are_accepted(seed: int) -> None:
    judgement = validate(real_trace(seed))
    assert judgement.accepted, (judgement, BY_SEED[seed])


def test_the_traces_together_have_every_step() -> None:
    steps = Counter(event["step"] for seed in BY_SEED for event in real_trace(seed).events)
    assert set(steps) == set(FIELDS)
    assert (
        min(steps[step] for step in ("Conflict", "Unknown", "Answered", "Restart", "CompactCursor"))
        >= 5
    )


def place(events: Events, step: str, fits: Callable[[dict[str, Any]], Any] = bool) -> int:
    """Of the first event of that step that fits, counted from 0."""
    return next(i for i, event in enumerate(events) if event["step"] == step and fits(event))


def drop_a_commit(events: Events) -> int:
    """The entry of a batch that its own node committed: its acknowledgement has nothing to stand on."""
    at = place(events, "Commit", lambda e: all(id_of(entry) == e["node"] for entry in e["entries"]))
    ids = [entry["id"] for entry in events.pop(at)["entries"]]
    return place(events, "Acked", lambda e: e["id"] in ids)


def id_of(entry: dict[str, Any]) -> str:
    """The node whose batch it is."""
    node: str = entry["id"][0].partition(".")[0]
    return node


def swap_an_offset(events: Events) -> int:
    at = place(
        events, "Commit", lambda e: e["entries"][0]["slot"] > 2 and e["entries"][0]["appends"]
    )
    block = next(iter(events[at]["entries"][0]["appends"].values()))
    block[0] += 1
    return at


def duplicate_a_commit(events: Events) -> int:
    at = place(events, "Commit", lambda e: e["entries"][0]["slot"] > 2)
    again = copy.deepcopy(events[at])
    for entry in again["entries"]:
        entry["slot"] += len(again["entries"])
        for block in entry["appends"].values():
            block[0] += block[1]
    events.insert(at + 1, again)
    return at + 1


def acknowledge_at_once(events: Events) -> int:
    at = place(events, "Send", lambda e: e["appends"])
    sent = events[at]
    offsets = dict.fromkeys(sent["appends"], 0)
    events.insert(
        at + 1, {"step": "Acked", "node": sent["node"], "id": sent["id"], "offsets": offsets}
    )
    return at + 1


def skip_in_a_poll(events: Events) -> int:
    at = place(events, "Poll", lambda e: len(e["offsets"]) > 2)
    del events[at]["offsets"][1]
    return at


def append_while_fenced(events: Events) -> int:
    """By the last node that has read the fenced head."""
    epoch = events[place(events, "Fence")]["epoch"]
    reads = [i for i, e in enumerate(events) if e["step"] == "Refresh" and e["epoch"] == epoch]
    at = reads[-1]
    node = events[at]["node"]
    entry = {"slot": events[at]["length"], "id": [f"{node}.i1/0", 99], "appends": {}, "commits": {}}
    events.insert(at + 1, {"step": "Commit", "node": node, "base": 0, "entries": [entry]})
    return at + 1


def restart_under_the_old_name(events: Events) -> int:
    lived = {
        event["node"] for event in events[: place(events, "Restart")] if event["step"] == "Send"
    }
    at = place(events, "Restart", lambda e: e["node"] in lived)
    node = events[at]["node"]
    before = [e["id"][0] for e in events[:at] if e["step"] == "Send" and e["node"] == node]
    events[at]["incarnation"] = before[-1].partition("/")[0].rpartition(".")[2]
    return at


TAMPERED: dict[str, tuple[int, Callable[[Events], int], str]] = {
    "dropped entry": (WITHOUT, drop_a_commit, "not in the node's view"),
    "swapped offset": (WITHOUT, swap_an_offset, "offsets are not those"),
    "duplicated commit": (WITHOUT, duplicate_a_commit, "in the log already"),
    "acknowledged, never committed": (WITHOUT, acknowledge_at_once, "not in the node's view"),
    "poll that skips": (WITH_FENCE, skip_in_a_poll, "contiguous"),
    "append while fenced": (WITH_FENCE, append_while_fenced, "fenced"),
    "old name after a restart": (WITH_FENCE, restart_under_the_old_name, "fresh incarnation"),
}


@pytest.mark.tlc
@pytest.mark.parametrize("case", TAMPERED)
def test_tampered_traces_are_rejected_at_the_right_step(case: str) -> None:
    seed, tamper, reason = TAMPERED[case]
    trace = real_trace(seed)
    events = [dict(copy.deepcopy(event)) for event in trace.events]
    at = tamper(events)
    judgement = validate(Trace(trace.segments_per_run, tuple(events)))
    assert (judgement.accepted, judgement.step) == (False, at + 1), judgement
    assert reason in judgement.reason
