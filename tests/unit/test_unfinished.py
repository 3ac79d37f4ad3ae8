"""A run that stopped before its end is unknown, unless it shows what cannot be undone; its totals agree."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bench.commands.check import check
from bench.failure import EXIT_CRASHED, EXIT_INVALID, EXIT_UNKNOWN, RunFailure
from bench.pages.facts import read_facts
from bench.run import RunResult
from bench.verdict.kept import findings_of
from bench.verdict.last_line import exit_status
from runs.facts import UNKNOWN, Results
from runs.files import HISTORY, OPTIONS, RESULTS_JSON
from runs.history import json_line
from runs.operations import Timings, operation_count
from runs.store import Folder
from tests.toy_log import NEVER_ANSWERS, VirtualRun, answering, judged, verdict_of
from tests.toy_log import OPTIONS as OPTIONS_OF_RUNS

FINAL_S = 20  # after the main phase and the recovery


# Hands out a duplicate of each fifth message.
DUPLICATES = answering(send=lambda body, right: right() if body["msg"] % 5 else right() and right())


class Stopped(VirtualRun):
    """A run that is stopped after so many seconds, by Ctrl-C or because a node died."""

    def __init__(self, after_s: float, *, interrupted: bool = True, **more: Any) -> None:
        self._failure = RunFailure("It was stopped.", interrupted=interrupted)
        self._after_ns = int(after_s * 1e9)
        super().__init__(**more)

    def _start_nodes(self) -> None:
        self._loop.call_at(self._loop.now_ns() + self._after_ns, lambda: self.fail(self._failure))
        super()._start_nodes()


# Acknowledges the last message of each key, and does not keep it.
FORGETS = answering(
    send=lambda body, right: (
        {"offset": 10_000} if body["msg"] == OPTIONS_OF_RUNS.max_writes_per_key else right()
    )
)


CRASHED: dict[str, Any] = {"interrupted": False}
DUPLICATE: dict[str, Any] = {"node_class": DUPLICATES}
SILENT: dict[str, Any] = {"node_class": NEVER_ANSWERS, "availability": "total"}
MALFORMED = {
    "echo": answering(echo=lambda *_: {"more": 1}),
    "unique-ids": answering(generate=lambda *_: {"more": 1}),
}
MOMENTS = [0, 0.5, 5, 12]  # before the start, at the start, in the main phase, in the recovery
# A run; its exit status, the types of anomaly held against it, what its verdict says and does not.
RUNS: list[tuple[Any, int, tuple[str, ...], list[str], str]] = [
    *(
        (partial(Stopped, each), EXIT_UNKNOWN, (), ["^. UNKNOWN: "], "✘|INVALID")
        for each in MOMENTS
    ),
    *(
        (
            partial(Stopped, each, **CRASHED),
            EXIT_CRASHED,
            (),
            [r"^. CRASHED: .*\. The run "],
            "UNKNOWN",
        )
        for each in MOMENTS
    ),
    (partial(Stopped, 0), EXIT_UNKNOWN, (), ["the run did not start, so nothing was tested"], "✘"),
    (
        partial(Stopped, 5),
        EXIT_UNKNOWN,
        (),
        [r"^\? unseen \(.*so far", "before it could show whether anything is missing"],
        "✘",
    ),
    # The final polls go on for 10 s, because a message does not come.
    (partial(Stopped, FINAL_S + 3, node_class=FORGETS), EXIT_UNKNOWN, (), [r"\? unseen \("], "✘"),
    (partial(VirtualRun, node_class=FORGETS), EXIT_INVALID, ("unseen",), ["^✘ unseen"], "so far"),
    # What cannot be undone is invalid all the same.
    *(
        (partial(Stopped, each, **DUPLICATE, **more), EXIT_INVALID, ("duplicate",), said, "CRASHED")
        for each in (5, 12)
        for more in ({}, CRASHED)
        for said in [["^✘ duplicate", "^✘ INVALID: "]]
    ),
    # Nothing was asked in the main phase, so nothing could go wrong.
    (partial(VirtualRun, rate=0), EXIT_UNKNOWN, (), [r"^\? UNKNOWN: nothing was asked"], "✘|✔"),
    (partial(VirtualRun, rate=0, workload="echo"), EXIT_UNKNOWN, (), ["nothing was asked"], "✘|✔"),
    # A malformed reply is one word in every workload, and stands first.
    *(
        (
            partial(VirtualRun, node, workload=workload),
            EXIT_CRASHED,
            (),
            [r"(?s)^The run could not be finished\nNode \w+ sent a malformed.*\n. CRASHED: Node"],
            "✘|✔",
        )
        for workload, node in MALFORMED.items()
    ),
    # Availability and stats are open until the end.
    (partial(Stopped, 8, **SILENT), EXIT_UNKNOWN, (), [r"^\? stats", r"^\? availability"], "✘"),
    (partial(VirtualRun, **SILENT), EXIT_INVALID, (), ["^✘ stats", "^✘ availability"], "CRASHED"),
]


@pytest.mark.parametrize(("make", "status", "bad", "said", "not_said"), RUNS)
def test_a_run_is_judged_by_what_no_longer_one_could_undo(
    make: Callable[[], VirtualRun],
    status: int,
    bad: tuple[str, ...],
    said: list[str],
    not_said: str,
) -> None:
    run = make()
    results, text = judged(run).results, verdict_of(run)
    assert exit_status(results, run.outcome.failure) == status
    found = set(results["workload"].get("bad-error-types", ()))
    assert found >= set(bad) if bad else not found & {"unseen", "duplicate"}
    assert [part for part in said if not re.search(part, text, re.MULTILINE)] == []
    assert not re.search(not_said, text)


# ---------------------------------------------------------------- what a killed bench leaves


def left(run: VirtualRun, folder: Path, cut_bytes: int = 0, **more: Any) -> Path:
    """A folder as a bench leaves it that was killed before it judged; `alone`, without options."""
    folder.mkdir()
    with (folder / HISTORY).open("wb") as file:
        file.writelines(json_line(op) + b"\n" for op in run.history)
        file.truncate(file.tell() - cut_bytes)
    if "alone" not in more:
        asked = {"nodes": run.options.nodes, "concurrency": run.options.concurrency}
        asked |= {"workload": "kafka", "engine": "embedded"}
        (folder / OPTIONS).write_text(json.dumps(asked | more))
    return folder


def checked(*arguments: Path | str) -> Result:
    return CliRunner().invoke(check, list(map(str, arguments)))


OPEN: tuple[Any, ...] = (EXIT_UNKNOWN, "? UNKNOWN: the run ", ("unknown", [], True))
# A run, what is left of it; the exit status, what a person is told, and a tool: validity, anomalies, and
# whether the run is unfinished.
Left = tuple[Callable[[], VirtualRun], dict[str, Any], int, str, tuple[Any, list[str], bool]]
LEFT: list[Left] = [
    (partial(Stopped, 0), {}, *OPEN),
    (partial(Stopped, 5), {}, *OPEN),
    (partial(Stopped, 5), {"cut_bytes": 30}, *OPEN),
    (partial(Stopped, 12), {}, *OPEN),
    # A bench that was killed while it judged has left a whole history.
    (VirtualRun, {}, 0, "VALID", (True, [], False)),
    (partial(VirtualRun, **DUPLICATE), {}, EXIT_INVALID, "INVALID",
     (False, ["duplicate", "int-nonmonotonic-poll", "int-poll-skip", "poll-skip"], True)),
    (partial(VirtualRun, node_class=FORGETS), {}, *OPEN),
    (partial(VirtualRun, node_class=FORGETS), {"finished": True}, EXIT_INVALID, "INVALID",
     (False, ["unseen"], False)),
    # A history alone is judged by its content; for tools, in the words of the real checker, which takes every
    # history for a whole one.
    (partial(Stopped, 5), {"alone": True}, EXIT_UNKNOWN, "Its final polls are missing",
     (False, ["unseen"], False)),
]  # fmt: skip


@pytest.mark.parametrize("case", LEFT)
def test_what_a_killed_bench_left_is_judged_by_what_it_shows(tmp_path: Path, case: Left) -> None:
    make, more, status, said, found = case
    folder = left(make(), tmp_path / "run", **more)
    told, as_json = checked(folder), checked("--json", folder)
    assert said in " ".join(told.stdout.split())
    assert (told.exit_code, "INVALID" in told.stdout) == (status, status == EXIT_INVALID)
    one = json.loads(as_json.stdout)
    assert (one["valid"], one["bad"], "unfinished" in one) == found
    assert as_json.exit_code == {True: 0, False: EXIT_INVALID}.get(one["valid"], EXIT_UNKNOWN)


def test_pages_say_the_same(tmp_path: Path) -> None:
    run = Stopped(5)
    folder = left(run, tmp_path / "run")
    assert read_facts(Folder(folder, "run"), now_s=1e12).verdict == "incomplete"
    (folder / RESULTS_JSON).write_text(
        json.dumps(judged(run).results | {"error": "stopped by Ctrl-C"})
    )
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
    assert run.recorder.operation_count == count == len(Timings(run.history))
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
    slow = VirtualRun(
        node_class=answering(delay_s=lambda _: 0.1), time_limit_s=3
    )  # 4 clients, 100 ms each
    told = verdict_of(slow)
    made = sum(op.type == "invoke" and op.time < 3e9 for op in slow.history)
    assert f"100 operations a second were asked for, {made / 3:.0f} were made" in told
    assert "were asked for" not in verdict_of(VirtualRun(time_limit_s=3))


def test_client_crashes_are_meant_to_be(run: VirtualRun) -> None:
    crashes = sum(op.f == "crash" and op.type == "info" for op in run.history)
    assert crashes
    assert f"{crashes} client crash" in verdict_of(run)
    assert "that the workload asks for" in verdict_of(run)
