"""What a sweep does next, how long it says it takes, and what it shows in the end."""

import io
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from bench.sweep import runner, table, work
from bench.sweep.definition import parse
from bench.sweep.progress import duration
from commands.sweep import exit_status
from runs.sweeps import Row

TEXT = """
about = "[odd] markup"
repetitions = 2
[base]
time-limit = 10
recovery-time = 2
[[matrix]]
nodes = [3, 5]
strategy = ["a", "b"]
"""


def planned(text=TEXT, engine="embedded"):
    sweep = parse(tomllib.loads(text), Path("night.toml"), {})
    return sweep, work.jobs(sweep, engine)


def row(job, verdict="valid", seconds=15.0, **figures):
    return Row(
        *(job.sweep, dict(job.cell.axes), job.repetition, job.engine, "run", verdict, 0),
        *(seconds, "2026-01-02T03:04:05", job.cell.expect, figures),
    )


def rows(*found):
    return {each.key: each for each in found}


def test_a_repetition_runs_every_cell_once_and_begins_with_another_value_of_the_last_axis():
    _, jobs = planned()
    assert [(job.repetition, job.cell.axes["strategy"]) for job in jobs] == [
        *((1, name) for name in "abab"),
        *((2, name) for name in "baba"),
    ]
    assert len({job.key for job in jobs}) == 8


def test_a_cell_may_name_its_engine():
    _, jobs = planned("[[matrix]]\nengine = ['embedded', 'jepsen']\n[[matrix]]\nnodes=3", "jepsen")
    assert [job.engine for job in jobs] == ["embedded", "jepsen", "jepsen"]


def test_finished_runs_are_not_made_again_and_failed_ones_only_when_asked():
    _, jobs = planned()
    done = rows(row(jobs[0]), row(jobs[1], "crashed"), row(jobs[2], "invalid"))
    assert work.missing(jobs, done, again=False) == jobs[3:]
    assert work.missing(jobs, done, again=True) == jobs[1:]
    other = rows(replace(row(jobs[0]), engine="jepsen"))
    assert work.missing(jobs, other, again=False) == jobs


def test_time_left_learns_from_what_runs_took():
    _, jobs = planned()
    assert work.seconds_left(jobs, jobs, {}) == 8 * (12 + 4)
    done = rows(row(jobs[0], seconds=13.0), row(jobs[1], seconds=17.0))
    # the first two cells took 1 and 5 s more than they had to; others are taken for their mean
    assert work.seconds_left(jobs[2:], jobs, done) == 6 * 12 + (1 + 5) + 4 * 3


def test_cells_of_a_repetition_share_a_seed_and_repetitions_do_not(tmp_path):
    def seed(job):
        line = runner.command(job, tmp_path)
        return line[line.index("--seed") + 1]

    _, jobs = planned()
    assert [seed(job) for job in jobs] == ["night"] * 4 + ["night-2"] * 4
    _, jobs = planned("[[matrix]]\nseed = [1, 2]")
    assert [seed(job) for job in jobs] == ["1", "2"]


def test_the_command_line_of_a_run(tmp_path):
    _, jobs = planned(TEXT, "jepsen")
    line = runner.command(jobs[0], tmp_path)
    assert line[0].endswith("/maelstrom")
    assert " ".join(line[4:]) == (
        "--seed night --time-limit 10 --recovery-time 2 --nodes 3 --engine jepsen"
        f" --store {tmp_path} -- --strategy a"
    ).replace("--nodes", "--node-count")


def test_the_folder_of_a_run_can_be_read_and_is_not_too_long(tmp_path):
    _, jobs = planned()
    assert jobs[-1].folder(tmp_path).name == "nodes=5_strategy=a.2"
    _, jobs = planned(f"[[matrix]]\nargs = ['--x /', '{'y' * 300}', '{'y' * 301}']")
    names = [job.folder(tmp_path).name for job in jobs]
    assert names[0] == "args=--x_.1"
    assert names[1] != names[2]
    assert max(map(len, names)) < 140


def test_the_table_has_a_row_for_each_cell_and_what_was_found():
    sweep, jobs = planned()
    done = [
        row(job, server_messages_per_op=float(n), send_p50_ms=1.5) for n, job in enumerate(jobs)
    ]
    done[1] = replace(done[1], verdict="invalid", anomalies=["poll-skip"])
    shown = io.StringIO()
    console = Console(file=shown, width=120)
    console.print(table.outcome(sweep, jobs, rows(*done)))
    text = shown.getvalue()
    assert "[odd] markup" in text
    assert "1.5 / –" in text
    assert " ".join(next(line for line in text.splitlines() if "invalid" in line).split()) == (
        "3 b 1 invalid, 1 valid 2.50 – 1.5 / – –"
    )
    assert table.findings(jobs, rows(*done)) == ["nodes=3 strategy=b: poll-skip"]


def test_mute_nodes_are_named_beside_the_anomalies():
    _, jobs = planned()
    done = [row(job, mute_nodes=float(number)) for number, job in enumerate(jobs[:2])]
    done[1] = replace(done[1], anomalies=["unseen"])
    (line,) = table.findings(jobs, rows(*done))
    assert line.endswith("unseen, 1 mute node")


def test_cells_can_be_listed_before_anything_has_run():
    shown = io.StringIO()
    Console(file=shown, width=120).print(table.cells(*planned()))
    assert len([line for line in shown.getvalue().splitlines() if "embedded" in line]) == 4


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        (["valid", "valid"], 0),
        ([], 0),
        (["valid", "unknown"], 2),
        (["unknown", "crashed"], 255),
        (["crashed", "invalid", "unknown"], 1),
    ],
)
def test_the_worst_run_decides_the_exit_status(verdicts, status):
    _, jobs = planned()
    assert exit_status(map(row, jobs, verdicts)) == status


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (89, "89 s"), (90, "2 min"), (12_000, "3 h 20 min")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text
