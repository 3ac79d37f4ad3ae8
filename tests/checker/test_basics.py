"""Stats, availability, network statistics and exceptions, against what the real tool said."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.net import Traffic
from bench.verdict import checkers
from bench.verdict.checkers import (
    availability,
    exceptions,
    net_statistics,
    single,
    stats,
)
from runs import edn, fressian
from runs.history import Op, OpType, read_history
from tests.stores import STORES
from tests.toy_log import VirtualRun, judged, verdict_of
from workloads.interface import Result, worst

REAL = sorted(STORES.iterdir())


@pytest.fixture(scope="module", params=REAL, ids=lambda path: path.name)
def store(request: pytest.FixtureRequest) -> SimpleNamespace:
    text = (request.param / "results.edn").read_text()
    history = read_history(request.param / "history.edn")
    return SimpleNamespace(path=request.param, results=edn.loads(text), history=history)


def journal_traffic(path: Path) -> Any:
    """The traffic counters that our network would have had."""
    counts: Counter[Any] = Counter()
    for stripe in (path / "net-journal").glob("*.fressian"):
        for event in fressian.journal_events(stripe.read_bytes()):
            message = event["message"]
            of_client = "c" in (message["src"][0], message["dest"][0])
            counts["clients" if of_client else "servers", event["type"]] += 1
    return SimpleNamespace(
        clients=Traffic(counts["clients", "send"], counts["clients", "recv"]),
        servers=Traffic(counts["servers", "send"], counts["servers", "recv"]),
    )


def test_figures_are_those_of_the_real_tool(store: SimpleNamespace) -> None:
    assert stats(store.history) == store.results["stats"]
    assert availability(store.history, None) == store.results["availability"]
    assert net_statistics(store.history, journal_traffic(store.path)) == store.results["net"]


def op(outcome: OpType, f: str = "send", process: int | str = 0, **extra: str) -> Op:
    return Op(0, 0, outcome, process, f, None, extra)


def test_stats_are_invalid_when_something_never_succeeded_and_count_no_faults() -> None:
    history = [op("invoke"), op("ok"), op("invoke", "poll"), op("fail", "poll")]
    assert stats(history)["valid?"] is False
    assert stats([*history, op("ok", "poll")])["valid?"] is True
    assert stats([*history[:2], op("info", "crash")])["valid?"] is True
    assert stats([op("info", "start-partition", "nemesis")])["count"] == 0


@pytest.mark.parametrize(
    ("expected", "valid"), [(None, True), ("total", False), (0.75, True), (0.8, False), (0, True)]
)
def test_availability(expected: Any, valid: bool) -> None:
    history = [op("invoke")] * 4 + [op("ok")] * 3 + [op("fail")]
    found = availability(history, expected)
    assert (found["valid?"], found["ok-fraction"]) == (valid, 0.75)
    last = {"process": 0, "f": "send", "time": 0}
    assert found.get("last-ok") == (None if valid else last)


def test_nothing_invoked_is_fully_available() -> None:
    assert availability([], "total") == {"valid?": True, "ok-fraction": 1}


def test_exceptions_are_counted_by_kind_the_most_frequent_first() -> None:
    rare, often = op("info", exception="KeyError"), op("info", exception="ValueError")
    found = exceptions([often, rare, often, op("ok")])["exceptions"]
    assert [(each["class"], each["count"]) for each in found] == [
        ("ValueError", 2),
        ("KeyError", 1),
    ]
    assert exceptions([op("ok")]) == {"valid?": True}


@pytest.mark.parametrize("number", [0.97572815, 5.7038836, 0.0, 1 / 3, 1e-9, 16777217])
def test_single_precision_is_printed_as_short_as_it_can_be(number: float) -> None:
    assert single(number) == float(str(np.float32(number)))


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [([True, True], True), ([True, "unknown"], "unknown"), (["unknown", False], False), ([], True)],
)
def test_the_worst_verdict_counts(verdicts: list[Any], expected: bool | str) -> None:
    assert worst(verdicts) == expected


def test_a_checker_that_breaks_leaves_the_verdict_unknown_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> Result:
        raise ZeroDivisionError("here")

    run = VirtualRun(time_limit_s=1)
    run.workload = replace(run.workload, judge=replace(run.workload.judge, check=broken))
    results = judged(run).results
    assert results["valid?"] == "unknown"
    assert "ZeroDivisionError: here" in results["workload"]["error"]
    keys = "perf timeline exceptions stats availability net workload valid?"
    assert " ".join(results) == keys
    monkeypatch.setattr(checkers, "stats", broken)
    assert verdict_of(run).startswith("? stats\n")
