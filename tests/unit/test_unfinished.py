"""A run that stopped before its end is unknown, unless it shows what cannot be undone; its totals agree."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bench.commands.check import check
from bench.failure import RunFailure
from bench.judgement import findings_of
from bench.pages.facts import read_facts
from bench.run import RunResult
from bench.verdict import EXIT_CRASHED, EXIT_INVALID, EXIT_UNKNOWN, exit_status
from runs.facts import UNKNOWN, Results
from runs.files import HISTORY, OPTIONS, RESULTS_JSON
from runs.history import write_jsonl
from runs.operations import operation_count, operations
from runs.store import Folder
from tests.toy_log import OPTIONS as OPTIONS_OF_RUNS
from tests.toy_log import MemoryLog, VirtualRun, judged, verdict_of
from workloads.interface import Body

FINAL_S = 20  # after the main phase and the recovery


class Duplicates(MemoryLog):
    """Hands out a duplicate of each fifth message."""

    def answer(self, body: Body) -> Body | None:
        if body["type"] == "send" and body["msg"] % 5 == 0:
            super().answer(body)
        return super().answer(body)


class Stopped(VirtualRun):
    """A run that is stopped after so many seconds, by Ctrl-C or because a node died."""

    def __init__(self, after_s: float, *, interrupted: bool = True, **more: Any) -> None:
        self._failure = RunFailure("It was stopped.", interrupted=interrupted)
        self._after_ns = int(after_s * 1e9)
        super().__init__(**more)

    def _start_nodes(self) -> None:
        self._loop.call_at(self._loop.now_ns() + self._after_ns, lambda: self.fail(self._failure))
        super()._start_nodes()

    @property
    def results(self) -> dict[Any, Any]:
        return judged(self).results

    @property
    def verdict(self) -> str:
        return verdict_of(self)

    def exit_status(self) -> int:
        return exit_status(self.results, self.outcome.failure)


MOMENTS = [0, 0.5, 5, 12]  # before the start, at the start, in the main phase, in the recovery


@pytest.mark.parametrize("after_s", MOMENTS)
def test_a_right_node_is_unknown_at_every_moment(after_s: float) -> None:
    run = Stopped(after_s)
    assert run.results["valid?"] == "unknown"
    assert run.results["workload"]["valid?"] == "unknown"
    assert run.results["workload"]["bad-error-types"] == ()
    assert run.exit_status() == EXIT_UNKNOWN
    last = run.verdict.splitlines()[-3:]
    assert any(line.startswith("? UNKNOWN: ") for line in last)
    assert "✘" not in run.verdict
    assert "INVALID" not in run.verdict


@pytest.mark.parametrize("after_s", MOMENTS)
def test_a_crash_has_its_own_word_and_status(after_s: float) -> None:
    run = Stopped(after_s, interrupted=False)
    assert run.results["valid?"] == "unknown"
    assert run.exit_status() == EXIT_CRASHED
    assert "\n? CRASHED: the run " in run.verdict
    assert "UNKNOWN" not in run.verdict


def test_final_polls_that_were_cut_off_are_none() -> None:
    run = Stopped(FINAL_S + 3, node_class=Forgets)  # they go on for 10 s: a message does not come
    assert "unseen" in run.results["workload"]["error-types"]
    assert run.exit_status() == EXIT_UNKNOWN
    whole = VirtualRun(node_class=Forgets)
    assert judged(whole).results["valid?"] is False


def test_what_is_missing_so_far_is_told_and_not_held_against_it() -> None:
    run = Stopped(5)
    assert "unseen" in run.results["workload"]["error-types"]
    assert "? unseen (" in run.verdict
    assert "so far" in run.verdict
    assert "before it could show whether anything is missing" in run.verdict


def test_a_run_that_never_started_found_nothing_wrong_because_it_tested_nothing() -> None:
    assert "the run did not start, so nothing was tested" in Stopped(0).verdict


@pytest.mark.parametrize("after_s", [5, 12])
def test_what_cannot_be_undone_is_invalid_all_the_same(after_s: float) -> None:
    run = Stopped(after_s, node_class=Duplicates)
    assert "duplicate" in run.results["workload"]["bad-error-types"]
    assert "unseen" not in run.results["workload"]["bad-error-types"]
    assert run.exit_status() == EXIT_INVALID
    assert "✘ duplicate" in run.verdict
    crashed = Stopped(after_s, interrupted=False, node_class=Duplicates)
    assert crashed.exit_status() == EXIT_INVALID
    assert "\n✘ INVALID: " in crashed.verdict


def test_availability_and_stats_are_open_until_the_end() -> None:
    class Silent(MemoryLog):
        def answer(self, body: Body) -> Body | None:
            return super().answer(body) if body["type"] == "init" else None

    run = Stopped(8, node_class=Silent, availability="total")
    assert run.results["stats"]["valid?"] == "unknown"
    assert run.results["availability"]["valid?"] == "unknown"
    assert run.exit_status() == EXIT_UNKNOWN
    whole = VirtualRun(node_class=Silent)
    assert judged(whole).results["valid?"] is False


# ---------------------------------------------------------------- what a killed bench leaves


def left(run: VirtualRun, folder: Path, *, cut_bytes: int = 0) -> Path:
    """A folder as a bench leaves it that was killed before it judged."""
    folder.mkdir()
    with (folder / HISTORY).open("wb") as file:
        write_jsonl(run.history, file)
    content = (folder / HISTORY).read_bytes()
    (folder / HISTORY).write_bytes(content[: len(content) - cut_bytes])
    asked = {"nodes": run.options.nodes, "concurrency": run.options.concurrency}
    (folder / OPTIONS).write_text(json.dumps({"workload": "kafka", "engine": "embedded"} | asked))
    return folder


def checked(*arguments: Path | str) -> Result:
    return CliRunner().invoke(check, list(map(str, arguments)))


@pytest.mark.parametrize(("after_s", "cut_bytes"), [(0, 0), (5, 0), (5, 30), (12, 0)])
def test_what_a_killed_bench_left_is_unknown(
    tmp_path: Path, after_s: float, cut_bytes: int
) -> None:
    folder = left(Stopped(after_s), tmp_path / "run", cut_bytes=cut_bytes)
    told = checked(folder)
    assert told.exit_code == EXIT_UNKNOWN
    assert "? UNKNOWN: the run " in " ".join(told.stdout.split())
    assert "INVALID" not in told.stdout
    as_json = checked("--json", folder)
    assert as_json.exit_code == EXIT_UNKNOWN
    said = json.loads(as_json.stdout)
    assert (said["valid"], said["bad"]) == ("unknown", [])
    assert said["unfinished"]


def test_a_bench_that_was_killed_while_it_judged_has_left_a_whole_history(tmp_path: Path) -> None:
    assert checked(left(VirtualRun(), tmp_path / "run")).exit_code == 0
    folder = left(VirtualRun(node_class=Duplicates), tmp_path / "bad")
    assert checked(folder).exit_code == EXIT_INVALID


class Forgets(MemoryLog):
    """Acknowledges the last message of each key, and does not keep it."""

    def answer(self, body: Body) -> Body | None:
        if body["type"] == "send" and body["msg"] == OPTIONS_OF_RUNS.max_writes_per_key:
            return {"offset": 10_000}
        return super().answer(body)


def test_a_run_that_noted_its_end_is_judged_whole_without_results(tmp_path: Path) -> None:
    folder = left(VirtualRun(node_class=Forgets), tmp_path / "run")
    assert checked(folder).exit_code == EXIT_UNKNOWN
    test = json.loads((folder / OPTIONS).read_text())
    (folder / OPTIONS).write_text(json.dumps(test | {"finished": True}))
    assert checked(folder).exit_code == EXIT_INVALID


def test_a_history_alone_is_judged_by_its_content(tmp_path: Path) -> None:
    folder = left(Stopped(5), tmp_path / "run")
    (folder / OPTIONS).unlink()
    told = checked(folder)
    assert told.exit_code == EXIT_UNKNOWN
    assert "Its final polls are missing" in told.stdout
    # For tools, the words of the real checker, which takes every history for a whole one.
    said = json.loads(checked("--json", folder).stdout)
    assert (said["valid"], said["bad"]) == (False, ["unseen"])
    assert "unfinished" not in said


def test_pages_say_the_same(tmp_path: Path) -> None:
    run = Stopped(5)
    folder = left(run, tmp_path / "run")
    killed = read_facts(Folder(folder, "run"), now_s=1e12)
    assert killed.verdict == "incomplete"
    (folder / RESULTS_JSON).write_text(json.dumps(run.results | {"error": "stopped by Ctrl-C"}))
    # The lake reads the same.
    recorded = Results.of_run(folder)
    assert recorded.valid == UNKNOWN
    assert [(each.type, each.invalidating) for each in recorded.anomalies()] == [("unseen", False)]
    facts = read_facts(Folder(folder, "run"), now_s=1e12)
    assert facts.verdict in ("unknown", "crashed")
    assert not any(each.invalidating for each in facts.anomalies)
    (finding,) = findings_of(Folder(folder, "run"), facts.told).found
    assert (finding.type, finding.invalidating) == ("unseen", False)


# ---------------------------------------------------------------- totals


@pytest.fixture(scope="module")
def run() -> VirtualRun:
    return VirtualRun(nemesis=("partition", "kill"), nemesis_interval_s=1.0, time_limit_s=3)


def test_progress_history_figures_and_verdict_count_the_same_operations(run: VirtualRun) -> None:
    count = operation_count(run.history)
    assert len(run.history) > 2 * count  # the faults are there, too
    assert run.operations() == count == len(operations(run.history))
    assert judged(run).results["stats"]["count"] == count
    assert f"\n{count} operations (" in verdict_of(run)
    assert "under way" not in verdict_of(run)


def test_what_was_under_way_when_a_run_stopped_is_counted_and_named(run: VirtualRun) -> None:
    last_invoked = max(op.index for op in run.history if op.type == "invoke")
    failure = RunFailure("Stopped.", interrupted=True)
    stopped = RunResult(run.history[: last_invoked + 1], run.network, failure, 0)
    count = operation_count(stopped.history)
    assert f"\n{count} operations (" in verdict_of(run, stopped)
    assert "under way when the run stopped" in verdict_of(run, stopped)


def test_a_rate_that_was_not_reached_is_told() -> None:
    class Slow(MemoryLog):
        def delay_s(self, body: Body) -> float:
            return 0.1

    slow = VirtualRun(node_class=Slow, time_limit_s=3)  # 4 clients, 100 ms each
    told = verdict_of(slow)
    made = sum(op.type == "invoke" and op.time < 3e9 for op in slow.history)
    assert f"100 operations a second were asked for, {made / 3:.0f} were made" in told
    right = VirtualRun(time_limit_s=3)
    assert "were asked for" not in verdict_of(right)


def test_client_crashes_are_meant_to_be(run: VirtualRun) -> None:
    crashes = sum(op.f == "crash" and op.type == "info" for op in run.history)
    assert crashes
    assert f"{crashes} client crash" in verdict_of(run)
    assert "that the workload asks for" in verdict_of(run)
