"""Every number of operations that a person sees is the same one."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from bench import verdict
from bench.checkers import judge
from bench.failure import RunFailure
from bench.run import RunResult
from runs.keyword import Keyword
from runs.operations import operation_count, operations
from tests.toy_log import VirtualRun
from workloads.interface import Placement


@pytest.fixture(scope="module")
def run() -> VirtualRun:
    return VirtualRun(nemesis=("partition", "kill"), nemesis_interval_s=1.0, time_limit_s=3)


def last_lines(run: VirtualRun, outcome: RunResult) -> str:
    console = Console(file=io.StringIO(), record=True, width=200)
    results = judge(outcome, run.options, run.workload)
    place = Placement(run.options.nodes, run.options.concurrency)
    verdict.print_verdict(console, Path("here"), results, outcome, run.workload, place=place)
    return console.export_text()


def test_progress_history_figures_and_verdict_count_the_same_operations(run: VirtualRun) -> None:
    count = operation_count(run.history)
    assert len(run.history) > 2 * count  # the faults are there, too
    assert run.operations() == count == len(operations(run.history))
    results = judge(run.outcome, run.options, run.workload)
    assert results[Keyword("stats")]["count"] == count
    assert f"\n{count} operations (" in last_lines(run, run.outcome)
    assert "under way" not in last_lines(run, run.outcome)


def test_what_was_under_way_when_a_run_stopped_is_counted_and_named(run: VirtualRun) -> None:
    last_invoked = max(op.index for op in run.history if op.type == "invoke")
    failure = RunFailure("Stopped.", interrupted=True)
    stopped = RunResult(run.history[: last_invoked + 1], run.network, failure, 0)
    count = operation_count(stopped.history)
    assert f"\n{count} operations (" in last_lines(run, stopped)
    assert "under way when the run stopped" in last_lines(run, stopped)
