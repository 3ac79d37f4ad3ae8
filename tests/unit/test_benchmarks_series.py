"""The plan of a series, what is left of it, and where its tables go."""

import json
from dataclasses import replace
from pathlib import Path

import click
import pytest
from rich.console import Console

from benchmarks import scaling, series, strategies
from benchmarks.configurations import CONFIGURATIONS, STRATEGIES
from benchmarks.measure import Job, command
from benchmarks.series import Series
from benchmarks.slopes import SLOPES
from benchmarks.table import summarise

JOB = Job("2-nodes", "cas", 1, ("--rate", "5"), time_limit_s=20, recovery_s=1.0)
JOBS = [replace(JOB, repetition=number) for number in (1, 2, 3)]


def record(job, wall_s=31.0, **figures):
    own = {"case": job.case, "strategy": job.strategy, "repetition": job.repetition}
    took = {"wall_s": wall_s, "time_limit_s": job.time_limit_s, "recovery_s": job.recovery_s}
    return own | took | {"figures": figures, "error": None if figures else "given up"}


@pytest.fixture
def console():
    return Console(quiet=True)


def test_a_repetition_runs_everything_once_and_begins_with_another_strategy():
    jobs = strategies.plan(CONFIGURATIONS[:2], ["a", "b", "c"], 2, 20)
    assert [job.strategy for job in jobs] == [*"abcabc", *"bcabca"]
    assert len({job.key for job in jobs}) == len(jobs)


def test_strategies_of_a_repetition_get_the_same_seed_and_repetitions_another(tmp_path):
    def seed(job):
        line = command(job, Path("run.sh"), tmp_path)
        return line[line.index("--seed") + 1]

    assert seed(JOB) == seed(replace(JOB, strategy="leader"))
    assert seed(JOB) != seed(replace(JOB, repetition=2))


def test_the_command_names_the_strategy_for_the_node(tmp_path):
    line = command(JOB, Path("run.sh"), tmp_path)
    assert line[-3:] == ["--", "--strategy", "cas"]


def test_the_bench_knows_every_flag_and_the_node_every_strategy(tmp_path):
    from bench.commands.test import test
    from leaderless.core.strategies import STRATEGIES as KNOWN

    plans = strategies.plan(CONFIGURATIONS, STRATEGIES, 1, 20), scaling.plan(SLOPES, ["cas"], 1, 6)
    for job in [job for jobs in plans for job in jobs]:
        line = command(job, Path(__file__), tmp_path)
        parsed = test.make_context("test", line[2:])
        assert parsed.params["strict"] is job.strict
        assert job.strategy in KNOWN


def test_resuming_leaves_out_what_has_a_record_also_of_a_failure():
    assert series.missing(JOBS, [record(JOBS[0], valid=1.0), record(JOBS[2])]) == [JOBS[1]]


def test_time_left_learns_from_the_runs_so_far():
    fast = replace(JOB, flags=("--rate", "2000"))
    expected = 21 + series.OVERHEAD_S + 40_000 * series.OVERHEAD_PER_OPERATION_S
    assert series.seconds_left([fast, fast], []) == pytest.approx(2 * expected)
    assert series.seconds_left(JOBS[1:], [record(JOBS[0], wall_s=25.0)]) == 2 * 25.0
    leader = record(replace(JOB, strategy="leader"), wall_s=61.0)
    assert series.seconds_left([JOB], [leader]) == 61.0
    assert series.seconds_left([JOB], [record(JOB, wall_s=25.0), leader]) == 25.0


def test_a_series_keeps_what_it_measured_and_goes_on_from_there(tmp_path, console):
    ran = []

    def run(job):
        if job.repetition == 3 and len(ran) == 2:
            ran.append("interrupted")
            raise KeyboardInterrupt
        ran.append(job.repetition)
        return record(job)

    first = Series.create(tmp_path, {"repetitions": 3})
    assert not series.perform(first, JOBS, run, console)
    with (first.folder / series.RUNS_FILE).open("a") as file:
        file.write('{"case": "cut off by a full')
    second = Series.resume(tmp_path, "latest")
    assert second.plan["repetitions"] == 3
    assert [each["repetition"] for each in second.records()] == [1, 2]
    assert series.perform(second, JOBS, run, console)
    assert ran == [1, 2, "interrupted", 3]


def test_a_line_that_was_cut_off_does_not_swallow_the_next(tmp_path):
    run = Series.create(tmp_path, {})
    run.add(record(JOBS[0]))
    with (run.folder / series.RUNS_FILE).open("a") as file:
        file.write('{"case": ')
    run.add(record(JOBS[1]))
    assert [each["repetition"] for each in run.records()] == [1, 2]


def test_resuming_nothing_says_what_to_give(tmp_path):
    with pytest.raises(click.UsageError, match="or latest"):
        Series.resume(tmp_path, "latest")


def test_a_section_of_a_document_is_replaced_between_its_markers(tmp_path):
    document = tmp_path / "doc.md"
    document.write_text("before\n<!-- bench -->\nold\n<!-- /bench -->\nafter <!-- bench x -->\n")
    series.replace_section(document, "bench", "new | table\n")
    series.replace_section(document, "bench", "newer\n")
    text = "before\n<!-- bench -->\nnewer\n<!-- /bench -->\nafter <!-- bench x -->\n"
    assert document.read_text() == text
    with pytest.raises(click.UsageError, match="each once"):
        series.replace_section(document, "other", "")


def test_the_document_has_a_place_for_every_generated_section(tmp_path):
    copy = tmp_path / "performance.md"
    copy.write_text((strategies.ROOT / "docs" / "performance.md").read_text())
    names = ["bench", "bench-scaling", *(f"bench-scaling {slope.name}" for slope in SLOPES)]
    for name in names:
        series.replace_section(copy, name, f"generated: {name}")
        assert f"<!-- {name} -->\ngenerated: {name}\n<!-- /{name} -->" in copy.read_text()


def test_a_slope_is_drawn_the_same_each_time(tmp_path):
    slope = SLOPES[-1]
    found = {"server_messages_per_op": 1.0, "node_cpu_us_per_op": 300.0}
    records = [
        {"case": slope.case(value), "strategy": "cas"}
        | {"figures": found | {"longest_key_messages": float(value)}}
        for value in slope.values[:3]
    ]
    summaries = summarise(records)
    assert [x for x, _ in scaling.points(slope, "cas", summaries)] == [16, 256, 4096]
    pictures = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for picture in pictures:
        scaling.draw(slope, ["cas"], summaries, picture)
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
    assert "| 4096 | – | 1.00 |" in scaling.section(slope, ["cas"], summaries)


def test_longer_runs_only_where_a_slope_says_so():
    jobs = {job.case: job for job in scaling.plan(SLOPES, ["cas"], 1, 6)}
    assert jobs["messages=100000"].time_limit_s == 60
    assert jobs["messages=4096"].time_limit_s == 6
    assert json.loads(json.dumps(jobs["nodes=25"].flags))[:2] == ["--node-count", "25"]
