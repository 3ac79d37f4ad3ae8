"""A sweep: its file and cells, its index, what it does next, what it shows; and JUnit XML."""

import io
import json
import tomllib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest
from rich.console import Console

from bench.commands.sweep import exit_status
from bench.failure import RunFailure
from bench.flags import unit_of
from bench.options import FLAGS
from bench.sweep import making, plan, table
from bench.sweep.making import Index, duration
from bench.sweep.plan import KEYS, Job, Sweep, parse, read, restrict, value_of
from bench.sweep.table import Case
from runs.faults import FAULTS
from runs.sweeps import Row, cells

FILE = Path("sweeps/night.toml")
SHIPPED = sorted((Path(__file__).parents[2] / "bench/sweep").glob("*.toml"))


def sweep(text: str, **changes: int | str) -> Sweep:
    return parse(tomllib.loads(text), FILE, changes)


def titles(found: Sweep) -> list[str]:
    return [cell.title for cell in found.cells]


FAULTS_TEXT = '[[matrix]]\nfaults = ["none", "each", "all"]\nfault-interval = 0.5'
EACH = list(dict.fromkeys([(), *((fault,) for fault in FAULTS), FAULTS]))
TWO_MATRICES = """
repetitions = 3
[base]
nodes = 3
strategy = "cas"
[[matrix]]
[[matrix]]
nodes = 5
expect = "invalid"
"""
# A file, the titles of its cells, and options of each.
CELLS: list[tuple[str, list[str], dict[str, list[Any]]]] = [
    (  # the last one turns fastest
        "[base]\nworkload = 'kafka'\n[[matrix]]\nnodes = [3, 5]\nrate = [10, 20.5]",
        [f"nodes={n} rate={r}" for n in (3, 5) for r in (10, 20.5)],
        {"rate": [10, 20.5, 10, 20.5], "workload": ["kafka"] * 4},
    ),
    (  # matrices follow each other and override the base
        TWO_MATRICES,
        ["nodes=3", "nodes=5"],
        {"nodes": [tuple(f"n{n}" for n in range(x)) for x in (3, 5)]}
        | {"args": [("--strategy", "cas")] * 2},
    ),
    ("", ["the only cell"], {}),
    ("[[matrix]]\nnodes = [3, 5]\n[[matrix]]\nnodes = 3", ["nodes=3", "nodes=5"], {}),
    (
        FAULTS_TEXT,
        [f"faults={'all' if each == FAULTS else ','.join(each) or 'none'}" for each in EACH],
        {"nemesis": EACH, "nemesis_interval_s": [0.5] * len(EACH)},
    ),
]


@pytest.mark.parametrize(("text", "expected", "options"), CELLS)
def test_a_file_says_its_cells(
    text: str, expected: list[str], options: dict[str, list[Any]]
) -> None:
    found = sweep(text)
    assert titles(found) == expected
    for name, values in options.items():
        assert [getattr(cell.options, name) for cell in found.cells] == values


def test_a_file_says_how_often_and_what_is_expected() -> None:
    found = sweep(TWO_MATRICES)
    assert (found.name, found.repetitions, found.varied) == ("night", 3, ["nodes"])
    assert [cell.expect for cell in found.cells] == ["valid", "invalid"]


def test_arguments_for_the_node_come_last() -> None:
    cell: dict[str, Any] = {
        "args": "--memory-mib 16",
        "strategy": "cas",
        "freshness": 0,
        "strict": True,
        "name": "x",
    }
    assert plan.arguments(cell | {"log-stderr": False, "rate": 5}) == (
        ["--strict", "--rate", "5"],
        ["--memory-mib", "16", "--strategy", "cas", "--freshness", "0"],
    )


def test_a_program_is_sought_from_the_folder_of_the_sweep(tmp_path: Path) -> None:
    (tmp_path / "node").touch()
    (tmp_path / "own.toml").write_text("[base]\nbin = 'node'")
    assert read(tmp_path / "own.toml").cells[0].options.bin == str(tmp_path / "node")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("nodes = 3", ["nodes: there is no such key", "[base]"]),
        ("repetitions = 0", ["repetitions", "whole number"]),
        ("base = 3", ["base", "[base]"]),
        ("matrix = 3", ["matrix", "[[matrix]]"]),
        ("[base]\nspeed = 3", ["[base]: speed", "write one of", "rate"]),
        ("[base]\nnode-count = 3", ["[base]: node-count", "write `nodes`"]),
        ("[base]\nstore = 'x'", ["[base]: store", "--store"]),
        ("[base]\ntest-count = 3", ["test-count", "repetitions"]),
        ("[base]\nnodes = 'three'", ["[base]: nodes", "'three'"]),
        ("[base]\nnodes = true", ["[base]: nodes", "its value"]),
        ("[base]\nstrict = 'yes'", ["[base]: strict", "true or false"]),
        ("[base]\nexpect = 'bad'", ["expect", "valid, invalid, any"]),
        ('[base]\nargs = "it\'s"', ["[base]: args", "as for a shell"]),
        ("[base]\nrate = []", ["[base]: rate", "a single value"]),
        ("[base]\nrate = [[1]]", ["[base]: rate", "no single value"]),
        ("[[matrix]]\n[[matrix]]\nlatency = [1, -5]", ["[[matrix]] 2: latency", "-5"]),
        ("[[matrix]]\nlatency-dist = 'normal'", ["[[matrix]] 1: latency-dist", "uniform"]),
        ("[[matrix]]\nfaults = 'fire'", ["faults", "fire", "partition"]),
        ("[[matrix]]\nnodes = 2\nconcurrency = '0n'", ["[[matrix]] 1", "--concurrency"]),
        ("[base]\nbin = 'missing'", ["[[matrix]] 1", "sweeps/missing", "path to your node"]),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_place(text: str, parts: list[str]) -> None:
    with pytest.raises(click.UsageError) as told:
        sweep(text)
    assert told.value.message.startswith(str(FILE))
    for part in parts:
        assert part in told.value.message


def test_a_file_that_is_no_sweep(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="cannot be read"):
        read(tmp_path / "missing.toml")
    (tmp_path / "broken.toml").write_text("[base")
    with pytest.raises(click.UsageError, match="is no TOML"):
        read(tmp_path / "broken.toml")


def test_changes_replace_what_the_file_says_in_every_cell() -> None:
    found = sweep("[base]\nrate = 5\n[[matrix]]\nnodes = [3, 5]\n", rate=7, nodes=2)
    assert [(cell.options.rate, len(cell.options.nodes)) for cell in found.cells] == [(7, 2)]
    with pytest.raises(click.UsageError, match="--set: rate"):
        sweep("", rate="fast")


def test_a_sweep_can_be_narrowed() -> None:
    found = sweep("[[matrix]]\nnodes = [3, 5]\nfaults = ['none', 'all']")
    assert titles(restrict(found, {"nodes": [5], "faults": ["none"]})) == ["nodes=5 faults=none"]
    assert restrict(found, {"nodes": [5]}).varied == ["faults"]
    assert len(restrict(found, {"nodes": [3, 5]}).cells) == 4
    with pytest.raises(click.UsageError, match="nodes=3"):
        restrict(found, {"nodes": [9]})


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("0.5", 0.5), ("true", True), ("2n", "2n"), ("kill,pause", "kill,pause"), ("", "")],
)
def test_values_on_a_command_line(text: str, value: Any) -> None:
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_the_sweeps_that_are_shipped_can_be_run(file: Path) -> None:
    found = read(file)
    assert found.about
    assert len(found.cells) > 1


def test_the_document_lists_every_key() -> None:
    document = (Path(__file__).parents[2] / "docs/sweeps.md").read_text()
    own = {"strategy": "How the node keeps the log."}
    own["freshness"] = "The node's bound on the age of a view, in ms."
    for name, flag in FLAGS.items():
        unit = unit_of(name)
        own[flag.axis] = f"{flag.help.removesuffix('.')}, in {unit}." if unit else flag.help
    own["faults"] += " `each` stands for every single one in turn."
    del own[""]
    for name, told in (KEYS | own | plan.MORE).items():
        assert f"| `{name}` | {told} |" in document


def test_the_example_of_the_document_is_a_sweep() -> None:
    document = (Path(__file__).parents[2] / "docs/sweeps.md").read_text()
    example = document.partition("```toml\n")[2].partition("```")[0]
    assert len(sweep(example).cells) == 2 * (1 + len(FAULTS)) + 1


# ---------------------------------------------------------------- the index


ROW = Row("night", {"nodes": 3}, 1, "embedded", "a/kafka/1", "valid", 0, 1.5, "2026-01-02T03:04:05")


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index(tmp_path)


def test_rows_come_back_as_they_were_and_the_newest_of_a_run_counts(index: Index) -> None:
    assert index.rows() == {}
    rows = [
        ROW,
        replace(ROW, repetition=2, figures={"send_p50_ms": None}, anomalies=["poll-skip"]),
        replace(ROW, verdict="crashed", cell={"a": 1, "b": 2}),
        replace(ROW, verdict="valid", cell={"b": 2, "a": 1}),
    ]
    for row in rows:
        index.add(row)
    assert list(index.rows().values()) == [*rows[:2], rows[3]]
    line = json.loads(index.path.read_text().splitlines()[0])
    assert line == asdict(ROW)  # readers of the index need these fields, in this order
    names = "sweep cell repetition engine run verdict exit_status seconds started"
    assert " ".join(list(line)[:9]) == names


@pytest.mark.parametrize("cut", [1, 10, 100])
def test_a_torn_last_line_is_passed_over_and_does_no_harm(index: Index, cut: int) -> None:
    index.add(ROW)
    index.add(replace(ROW, repetition=2))
    index.path.write_bytes(index.path.read_bytes()[:-cut])
    left = index.rows()
    assert ROW in left.values()
    added = replace(ROW, repetition=3)
    index.add(added)
    assert list(index.rows().values()) == [*left.values(), added]


@pytest.mark.parametrize("line", ["3", "[]", "{}", '{"sweep": 1}', "\x00", "nonsense"])
def test_lines_that_are_no_rows_are_passed_over(index: Index, line: str) -> None:
    index.path.write_text(line + "\n")
    index.add(ROW)
    assert list(index.rows().values()) == [ROW]


@pytest.mark.parametrize(
    ("verdict", "expect", "problem"),
    [
        ("valid", "valid", None),
        ("invalid", "valid", "failure"),
        ("invalid", "invalid", None),
        ("valid", "invalid", "failure"),
        ("invalid", "any", None),
        ("unknown", "any", "error"),
        ("unknown", "valid", "error"),
        ("crashed", "any", "error"),
        ("crashed", "valid", "error"),
    ],
)
def test_unknown_is_never_failure_and_nothing_unexpected_passes(
    verdict: str, expect: str, problem: str | None
) -> None:
    row = replace(ROW, verdict=verdict, expect=expect)
    assert (row.as_expected, table.case_of("a", row, "").problem) == (problem is None, problem)


def test_two_sweeps_do_not_share_a_folder(index: Index) -> None:
    with index.locked(), pytest.raises(click.UsageError, match="--name"), index.locked():
        pass
    with index.locked():  # it is free again
        pass


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunFailure, match="--store"), Index(tmp_path / "file" / "night").locked():
        pass


def test_a_disk_that_is_full_in_the_middle_of_a_line_is_told(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.write", lambda _, line: len(line) - 1)
    with pytest.raises(RunFailure, match="Make room"):
        index.add(ROW)


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    (tmp_path / "index.jsonl").symlink_to("/dev/full")
    with pytest.raises(RunFailure, match="Make room"):
        Index(tmp_path).add(ROW)


def test_a_sweep_can_begin_anew_and_the_old_one_stays(tmp_path: Path) -> None:
    index = Index(tmp_path / "night")
    index.set_aside()  # nothing is there yet
    with index.locked():
        index.add(ROW)
    index.set_aside()
    assert index.rows() == {}
    (old,) = tmp_path.iterdir()
    assert old.name.startswith("night-2")
    assert list(Index(old).rows().values()) == [ROW]


# ---------------------------------------------------------------- work


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


def planned(text: str = TEXT, engine: str = "embedded") -> tuple[Sweep, list[Job]]:
    sweep = parse(tomllib.loads(text), Path("night.toml"), {})
    return sweep, plan.jobs(sweep, engine)


def row(job: Job, verdict: str = "valid", seconds: float = 15.0, **figures: float | None) -> Row:
    return Row(
        *(job.sweep, dict(job.cell.axes), job.repetition, job.engine, "run", verdict, 0),
        *(seconds, "2026-01-02T03:04:05", job.cell.expect, figures),
    )


def rows(*found: Row) -> dict[tuple[str, int, str], Row]:
    return {each.key: each for each in found}


def test_a_repetition_runs_every_cell_once_and_begins_with_another_value_of_the_last_axis() -> None:
    _, jobs = planned()
    assert [(job.repetition, job.cell.axes["strategy"]) for job in jobs] == [
        *((1, name) for name in "abab"),
        *((2, name) for name in "baba"),
    ]
    assert len({job.key for job in jobs}) == 8


def test_a_cell_may_name_its_engine() -> None:
    _, jobs = planned("[[matrix]]\nengine = ['embedded', 'jepsen']\n[[matrix]]\nnodes=3", "jepsen")
    assert [job.engine for job in jobs] == ["embedded", "jepsen", "jepsen"]


def test_finished_runs_are_not_made_again_and_failed_ones_only_when_asked() -> None:
    _, jobs = planned()
    done = rows(row(jobs[0]), row(jobs[1], "crashed"), row(jobs[2], "invalid"))
    assert plan.missing(jobs, done, again=False) == jobs[3:]
    assert plan.missing(jobs, done, again=True) == jobs[1:]
    other = rows(replace(row(jobs[0]), engine="jepsen"))
    assert plan.missing(jobs, other, again=False) == jobs


def test_time_left_learns_from_what_runs_took() -> None:
    _, jobs = planned()
    assert plan.seconds_left(jobs, jobs, {}) == 8 * (12 + 4)
    done = rows(row(jobs[0], seconds=13.0), row(jobs[1], seconds=17.0))
    # the first two cells took 1 and 5 s more than they had to; others are taken for their mean
    assert plan.seconds_left(jobs[2:], jobs, done) == 6 * 12 + (1 + 5) + 4 * 3


def test_cells_of_a_repetition_share_a_seed_and_repetitions_do_not(tmp_path: Path) -> None:
    def seed(job: Job) -> str:
        line = making.command(job, tmp_path)
        return line[line.index("--seed") + 1]

    _, jobs = planned()
    assert [seed(job) for job in jobs] == ["night"] * 4 + ["night-2"] * 4
    _, jobs = planned("[[matrix]]\nseed = [1, 2]")
    assert [seed(job) for job in jobs] == ["1", "2"]


def test_the_command_line_of_a_run(tmp_path: Path) -> None:
    _, jobs = planned(TEXT, "jepsen")
    line = making.command(jobs[0], tmp_path)
    assert line[0].endswith("/maelstrom")
    assert " ".join(line[4:]) == (
        "--seed night --time-limit 10 --recovery-time 2 --nodes 3 --engine jepsen"
        f" --store {tmp_path} -- --strategy a"
    ).replace("--nodes", "--node-count")


def test_the_folder_of_a_run_can_be_read_and_is_not_too_long(tmp_path: Path) -> None:
    _, jobs = planned()
    assert jobs[-1].folder(tmp_path).name == "nodes=5_strategy=a.2"
    _, jobs = planned(f"[[matrix]]\nargs = ['--x /', '{'y' * 300}', '{'y' * 301}']")
    names = [job.folder(tmp_path).name for job in jobs]
    assert names[0] == "args=--x_.1"
    assert names[1] != names[2]
    assert max(map(len, names)) < 140


def test_the_table_has_a_row_for_each_cell_and_what_was_found() -> None:
    sweep, jobs = planned()
    done = [
        row(job, server_messages_per_op=float(n), send_p50_ms=1.5) for n, job in enumerate(jobs)
    ]
    done[1] = replace(done[1], verdict="invalid", anomalies=["poll-skip"])
    shown = io.StringIO()
    console = Console(file=shown, width=120)
    console.print(table.outcome(sweep, rows(*done)))
    text = shown.getvalue()
    assert "[odd] markup" in text
    assert "1.5 / –" in text
    lines = [" ".join(line.split()) for line in text.splitlines() if "valid" in line]
    assert "3 ✘ b 1 invalid, 1 valid 2.50 – 1.5 / – –" in lines
    assert lines[-1].endswith("✘: a program with an invalid run")
    assert table.findings(jobs, rows(*done)) == ["nodes=3 strategy=b: poll-skip"]


def test_programs_stand_side_by_side_and_one_with_an_invalid_run_last() -> None:
    _, jobs = planned(TEXT.replace("repetitions = 2", ""))
    verdicts = ("valid", "valid", "invalid", "crashed")  # that of program a with 5 nodes
    done = [replace(row(job, it), workload="kafka") for job, it in zip(jobs, verdicts, strict=True)]
    echo = replace(done[2], cell={**done[2].cell, "rate": 1}, workload="echo", verdict="valid")
    found = table.ranked(cells([*done[:2], echo, *done[2:]]))
    assert [(c.axes["nodes"], c.axes["strategy"], wrong) for c, wrong in found] == [
        *((3, "b", False), (3, "a", True), (5, "b", False), (5, "a", True)),
        (5, "a", False),
    ]


def test_mute_nodes_are_named_beside_the_anomalies() -> None:
    _, jobs = planned()
    done = [row(job, mute_nodes=float(number)) for number, job in enumerate(jobs[:2])]
    done[1] = replace(done[1], anomalies=["unseen"])
    (line,) = table.findings(jobs, rows(*done))
    assert line.endswith("unseen, 1 mute node")


def test_cells_can_be_listed_before_anything_has_run() -> None:
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
def test_the_worst_run_decides_the_exit_status(verdicts: list[Any], status: int) -> None:
    _, jobs = planned()
    assert exit_status(map(row, jobs, verdicts)) == status


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (89, "89 s"), (90, "2 min"), (12_000, "3 h 20 min")]
)
def test_durations(seconds: int, text: str) -> None:
    assert duration(seconds) == text


# ----------------------------------------------------------------


def written(file: Path, *cases: Case) -> ElementTree.Element:
    table.write_junit(file, "night", cases)
    (suite,) = ElementTree.parse(file).getroot()
    return suite


def test_a_run_that_was_not_made_does_not_pass() -> None:
    assert table.case_of("a", None, "").problem == "error"


def test_a_file_counts_its_cases_and_tells_what_went_wrong(tmp_path: Path) -> None:
    lost = Row("night", {}, verdict="invalid", anomalies=["unseen"], seconds=2.5)
    suite = written(
        tmp_path / "new/night.xml",
        table.case_of("kill", lost, "✘ INVALID\nTo repeat it: ./maelstrom test"),
        Case("calm", 1.25),
        Case("late", problem=table.SKIPPED, message="beyond"),
        Case("never", problem=table.ERROR),
    )
    counts = ("tests", "failures", "errors", "skipped", "time")
    assert [suite.get(name) for name in counts] == ["4", "1", "1", "1", "3.75"]
    (failure,) = suite.findall("testcase[@name='kill']/failure")
    assert failure.get("message") == "invalid: unseen"
    assert failure.text
    assert failure.text.endswith("To repeat it: ./maelstrom test")
    assert not list(suite.findall("testcase[@name='calm']/*"))


def test_what_a_node_printed_cannot_break_the_file(tmp_path: Path) -> None:
    said = "\x1b[31m<&\"'\0\udc80\ufffe\N{GRINNING FACE}\ttab"
    suite = written(tmp_path / "a.xml", Case(said, problem=table.ERROR, message=said, details=said))
    (error,) = suite.findall("testcase/error")
    assert error.text == "�[31m<&\"'���\N{GRINNING FACE}\ttab"


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(click.FileError):
        table.write_junit(tmp_path / "file/a.xml", "night", [])
