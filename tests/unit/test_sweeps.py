"""A sweep: its cells, its index, its runs; and JUnit XML.

`tests/datadriven/benches/sweep.txt` has what its command refuses, makes, and shows.
"""

import json
import tomllib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest

from bench.commands.sweep import guarded
from bench.flags import unit_of
from bench.options import FLAGS
from bench.sweep import making, table
from bench.sweep.axes import MORE
from bench.sweep.jobs import Job, jobs_of
from bench.sweep.making import Index, duration
from bench.sweep.plan import KEYS, parse, read, value_of
from bench.sweep.table import Case
from runs.faults import FAULTS
from runs.sweeps import Row, append

FILE = Path("sweeps/night.toml")
SHIPPED = sorted((Path(__file__).parents[2] / "bench/sweep").glob("*.toml"))


def jobs(text: str, engine: str = "embedded") -> list[Job]:
    return jobs_of(parse(tomllib.loads(text), FILE, {}), engine)


FAULTS_TEXT = '[[matrix]]\nfaults = ["none", "each", "all"]\nfault-interval = 0.5'
EACH = list(dict.fromkeys([(), *((fault,) for fault in FAULTS), FAULTS]))
TWO_MATRICES = '[base]\nnodes = 3\nstrategy = "cas"\n[[matrix]]\n[[matrix]]\nnodes = 5'
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
    found = [job.cell for job in jobs(text)]
    assert [cell.title for cell in found] == expected
    for name, values in options.items():
        assert [getattr(cell.options, name) for cell in found] == values


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
    document = (Path(__file__).parents[2] / "docs/bench/sweeps.md").read_text()
    own = {"strategy": "How the node keeps the log."}
    own["freshness"] = "The node's bound on the age of a view, in ms."
    for name, flag in FLAGS.items():
        unit = unit_of(name)
        own[flag.axis] = f"{flag.help.removesuffix('.')}, in {unit}." if unit else flag.help
    own["faults"] += " `each` stands for every single one in turn."
    del own[""]
    for name, told in (KEYS | own | MORE).items():
        assert f"| `{name}` | {told} |" in document


def test_the_example_of_the_document_is_a_sweep() -> None:
    document = (Path(__file__).parents[2] / "docs/bench/sweeps.md").read_text()
    example = document.partition("```toml\n")[2].partition("```")[0]
    assert len(jobs(example)) == 3 * (2 * (1 + len(FAULTS)) + 1)


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
        append(index.folder, row)
    assert list(index.rows().values()) == [*rows[:2], rows[3]]
    line = json.loads(index.path.read_text().splitlines()[0])
    assert line == asdict(ROW)  # readers of the index need these fields, in this order
    names = "sweep cell repetition engine run verdict exit_status seconds started"
    assert " ".join(list(line)[:9]) == names


@pytest.mark.parametrize("cut", [1, 10, 100])
def test_a_torn_last_line_is_passed_over_and_does_no_harm(index: Index, cut: int) -> None:
    append(index.folder, ROW)
    append(index.folder, replace(ROW, repetition=2))
    index.path.write_bytes(index.path.read_bytes()[:-cut])
    left = index.rows()
    assert ROW in left.values()
    added = replace(ROW, repetition=3)
    append(index.folder, added)
    assert list(index.rows().values()) == [*left.values(), added]


@pytest.mark.parametrize("line", ["3", "[]", "{}", '{"sweep": 1}', "\x00", "nonsense"])
def test_lines_that_are_no_rows_are_passed_over(index: Index, line: str) -> None:
    index.path.write_text(line + "\n")
    append(index.folder, ROW)
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


def test_a_disk_that_is_full_in_the_middle_of_a_line_is_told(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.write", lambda _, line: len(line) - 1)
    assert "Make room" in str(guarded(index, lambda: append(index.folder, ROW), ""))


def test_a_full_disk_is_told(index: Index) -> None:
    index.path.symlink_to("/dev/full")
    assert "Make room" in str(guarded(index, lambda: append(index.folder, ROW), ""))


# ---------------------------------------------------------------- work


TEXT = """
repetitions = 2
[base]
time-limit = 10
recovery-time = 2
[[matrix]]
nodes = [3, 5]
strategy = ["a", "b"]
"""


def test_the_command_line_of_a_run(tmp_path: Path) -> None:
    line = making.command(jobs(TEXT, "jepsen")[0], tmp_path)
    assert Path(line[2]).name == "maelstrom.py"
    assert " ".join(line[6:]) == (
        "--seed night --time-limit 10 --recovery-time 2 --nodes 3 --engine jepsen"
        f" --store {tmp_path} -- --strategy a"
    ).replace("--nodes", "--node-count")


def test_the_folder_of_a_run_can_be_read_and_is_not_too_long(tmp_path: Path) -> None:
    assert jobs(TEXT)[-1].folder(tmp_path).name == "nodes=5_strategy=a.2"
    text = f"[[matrix]]\nargs = ['--x /', '{'y' * 300}', '{'y' * 301}']"
    names = [job.folder(tmp_path).name for job in jobs(text)]
    assert names[0] == "args=--x_.1"
    assert names[1] != names[2]
    assert max(map(len, names)) < 140


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (89, "89 s"), (90, "2 min"), (12_000, "3 h 20 min")]
)
def test_durations(seconds: int, text: str) -> None:
    assert duration(seconds) == text


# ---------------------------------------------------------------- JUnit


def test_what_a_node_printed_cannot_break_the_file(tmp_path: Path) -> None:
    said = "\x1b[31m<&\"'\0\udc80\ufffe\N{GRINNING FACE}\ttab"
    case = Case(said, problem=table.ERROR, message=said, details=said)
    table.write_junit(tmp_path / "a.xml", "night", [case])
    (error,) = ElementTree.parse(tmp_path / "a.xml").iter("error")
    assert error.text == "�[31m<&\"'���\N{GRINNING FACE}\ttab"
