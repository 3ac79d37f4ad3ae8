"""The notebooks as they are kept, what shows them, and how a broken one ends.

That all of them run on a fresh sweep is tried by `make notebooks`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from pyspark.sql import Row, SparkSession
from pyspark.testing import assertDataFrameEqual

from analysis.comparison import LESS, MORE, SAME, TOO_FEW
from analysis.errors import AnalysisError
from analysis.lake import Lake, copy
from analysis.notebooks import answers, tables
from analysis.notebooks.execution import named
from analysis.notebooks.present import readable
from analysis.notebooks.tables import (
    REFERENCE,
    Tables,
    offset_order,
    offset_times,
    tables_of,
    with_late,
)
from analysis.rows import BY_CAUSE
from tests.programs import ROOT

KEPT = sorted((ROOT / "analysis/notebooks").glob("*.ipynb"))
NAMES = [
    "fault-injection",
    "latency",
    "messages-per-operation",
    "programs",
    "query-the-lake",
    "the-log-as-a-table",
    "why-prefetch-fails",
]


def test_all_notebooks_are_there() -> None:
    assert [file.stem for file in KEPT] == NAMES


@pytest.mark.parametrize("file", KEPT, ids=NAMES)
def test_a_kept_notebook_was_executed_and_opens_with_its_answer(file: Path) -> None:
    text = file.read_text()
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) >= (4, 5)
    title, opening = notebook.cells[:2]
    assert title.cell_type == "markdown"
    assert title.source.startswith("# ")
    answer, picture = opening.outputs
    assert answer.data["text/markdown"].startswith("**")
    assert "image/png" in picture.data
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    # No warnings, no errors; nothing of the machine that executed it.
    assert {output.output_type for cell in code for output in cell.outputs} == {"display_data"}
    assert str(ROOT) not in text
    logic = re.compile(r"^\s*(def|for|while|if|class|with|try)\b", re.MULTILINE)
    assert [cell.source for cell in code if logic.search(cell.source)] == []


def run_notebooks(folder: Path, *cells: NotebookNode) -> subprocess.CompletedProcess[str]:
    """Execute a notebook of these cells as the command does it."""
    source = folder / "broken.ipynb"
    source.write_text(nbformat.writes(new_notebook(cells=list(cells))))
    program = (
        "import sys; from pathlib import Path; from analysis.notebooks import execution;"
        "execution.FOLDER = Path(sys.argv.pop(1)); from analysis.cli import main; main()"
    )
    command = [sys.executable, "-c", program, str(folder), "notebooks", "-o", str(folder / "out")]
    return subprocess.run(
        [*command, "--lake", str(folder / "no-lake")],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "200"},
    )


@pytest.mark.process
def test_a_broken_cell_fails_with_its_notebook_its_code_and_the_reason(tmp_path: Path) -> None:
    done = run_notebooks(
        tmp_path,
        new_markdown_cell("# Is it broken?"),
        new_code_cell("lake = 1"),
        new_code_cell("lake / 0"),
        new_code_cell("lake = 2"),
    )
    assert done.returncode == 1
    for part in ("broken.ipynb, code cell 2 failed", "    lake / 0", "ZeroDivisionError"):
        assert part in done.stderr
    kept = nbformat.read(tmp_path / "out" / "broken.ipynb", as_version=4)
    assert [cell.get("execution_count") for cell in kept.cells] == [None, 1, 2, None]


def test_a_notebook_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(AnalysisError, match=f"no notebook latecny; there are: {', '.join(NAMES)}"):
        named(["latecny"])


def operation(f: str, start: int, end: int, value: str, run: str = "r") -> Row:
    times = {"invoked_ns": start, "completed_ns": end, "latency_ns": end - start}
    names = {"workload": "kafka", "program": run, "faults": "none", "phase": "main"}
    return Row(run_id=run, f=f, outcome="ok", completed_value_json=value, **names, **times)


@pytest.mark.spark
def test_a_message_sent_below_what_somebody_has_read_is_late(spark: SparkSession) -> None:
    # docs/learn/why-prefetch-fails.md, with times: 4 is sent when 2@16 has been read.
    history = [
        operation("send", 1, 2, '[["send","k",[0,1]]]'),
        operation("poll", 3, 4, '[["poll",{"k":[[0,1]]}]]'),
        operation("send", 3, 5, '[["send","k",[16,2]]]'),
        operation("poll", 6, 7, '[["poll",{"k":[[16,2]]}]]'),
        operation("send", 8, 9, '[["send","k",[1,4]]]'),
        operation("poll", 10, 11, '[["poll",{"k":[[0,1],[1,4],[16,2]]}]]'),
        # At the same time as the poll: no doubt is left out of the count.
        operation("send", 6, 9, '[["send","k",[2,5]]]'),
        operation("assign", 12, 13, '["k"]'),
        operation("poll", 12, 13, '[["poll",{}]]', run="empty"),
    ]
    times = offset_times(spark.createDataFrame(history))
    late = with_late(times).filter("is_late").select("offset", "message", "first_polled_ns")
    assertDataFrameEqual(late, [Row(offset=1, message="4", first_polled_ns=11)])
    counts = {"runs": 1, "message_count": 4, "hole_count": 13, "late_count": 1}
    assertDataFrameEqual(offset_order(times), [Row(program="r", **counts)])


@pytest.mark.spark
def test_a_latency_curve_ends_with_the_slowest_operation(spark: SparkSession) -> None:
    frame = spark.createDataFrame([operation("send", 0, n, "[]") for n in range(1, 101)])
    lake = Tables(frame, frame, frame, frame, frame, frame)
    curve = {row.slower_share: row.latency_ns for row in tables.curves(lake).itertuples()}
    assert curve[1.0] == 1
    assert min(curve) == pytest.approx(0.01)
    assert curve[min(curve)] == 99


@pytest.mark.slow
@pytest.mark.spark
def test_a_lean_lake_gives_the_same_answers(
    spark: SparkSession, stores_lake: Lake, tmp_path: Path
) -> None:
    copy(spark, stores_lake, tmp_path, lean=True)
    whole, lean = tables_of(spark, str(stores_lake.folder)), tables_of(spark, str(tmp_path))
    for frame in (tables.runs, tables.messages):
        pd.testing.assert_frame_equal(frame(whole), frame(lean))
    for name in ("operations", "faults", "anomalies", "figures"):  # all of these is kept
        rows, kept = (sorted(map(str, getattr(each, name).collect())) for each in (whole, lean))
        assert rows == kept
    assert lean.messages.filter("sent_ns is not null").isEmpty()
    written = {file.name: file.read_bytes() for file in tmp_path.glob("*.parquet")}
    copy(spark, stores_lake, tmp_path, lean=True)
    assert written == {file.name: file.read_bytes() for file in tmp_path.glob("*.parquet")}


@pytest.mark.spark
def test_the_reference_names_no_folder_of_the_machine_it_was_made_on(spark: SparkSession) -> None:
    runs = Lake(REFERENCE).table(spark, "runs")
    assert runs.filter("source like '%/%' or options_json is not null").isEmpty()


@pytest.mark.spark
def test_a_lake_that_holds_nothing_to_answer_with_says_so(spark: SparkSession) -> None:
    lake = tables_of(spark, str(REFERENCE)).where("false")
    asked = (answers.latency, answers.messages, answers.faults, answers.programs)
    assert [[*of(lake)] for of in asked] == [["**No run is in this lake.**"]] * 4
    assert answers.prefetch(tables.order(lake)).startswith("**No run of kafka")


@pytest.mark.spark
def test_programs_are_compared_under_equal_conditions_only(spark: SparkSession) -> None:
    # Alone at 0 ms `leaderless` looks quicker than `cas` ever was: its runs there must not count.
    asked = [("leaderless", 0.0), ("leaderless", 0.0), ("leaderless", 5.0), ("cas", 5.0)]
    took_ms = [1, 1, 24, 28]
    of_run = {"engine": "embedded", "workload": "kafka", "node_count": 5, "concurrency": 10}
    of_run |= {"rate_hz": 200.0, "time_limit_s": 4.0, "faults": "none", "valid": "true"}
    runs = [
        Row(run_id=f"r{number}", program=program, latency_ms=latency_ms, **of_run)
        for number, (program, latency_ms) in enumerate(asked)
    ]
    sends = [
        Row(
            **operation("send", 0, ms * 1_000_000, "[]", f"r{number}").asDict()
            | {"program": program}
        )
        for number, (ms, (program, _)) in enumerate(zip(took_ms, asked, strict=True))
    ]
    nothing = spark.createDataFrame([], "run_id string")
    both = spark.createDataFrame(runs), spark.createDataFrame(sends)
    lake = Tables(*both, nothing, nothing, nothing, nothing)
    calm = lake.alike("faults = 'none'")
    told = answers.waited("kafka", tables.latencies(calm), tables.runs(calm))
    assert (
        "The median of `send` (5 nodes, 10 clients, 200 operations a second, 5 ms a hop, runs of each: 1),"
        " quickest first: `leaderless` 24 ms, `cas` 28 ms."
    ) in told
    assert lake.alike("faults = 'kill'").runs.isEmpty()


def test_a_program_with_an_invalid_run_is_marked_and_never_ranked() -> None:
    assert answers.named("quick.py (invalid)") == "`quick.py` (invalid)"
    for runs, first in [
        ({"quick.py (invalid)": 9, "slow.py": 2}, "slow.py"),
        ({"a": 1, "b": 3, "leaderless": 1}, "leaderless"),
        ({"a": 1, "b": 3, "leaderless (invalid)": 9}, "b"),
        ({"a (invalid)": 3, "leaderless (invalid)": 1}, "leaderless (invalid)"),
    ]:
        assert answers.baseline(runs) == first
    values = {"quick.py (invalid)": 1.0, "slow.py": 5.0, "middle.py": 3.0}
    ranked = answers.ranking(values, "quickest first", "{:g} ms".format)
    assert ranked == (
        "quickest first: `middle.py` 3 ms, `slow.py` 5 ms; not ranked: `quick.py` (invalid) 1 ms"
    )
    rows = [(name, name, [value]) for name, value in values.items()]
    told = answers.sql(rows)
    assert (
        "in the median of the runs 3 ms (middle.py) to 5 ms (slow.py). Programs with an invalid run"
        in told
    )
    assert "no program here has only valid runs" in answers.sql(rows[:1])


@pytest.mark.parametrize(
    ("rows", "there"),
    [
        ([("prefetch", 10, 5, 3), ("prefetch-sealed", 10, 70, 0), ("leaderless", 10, 0, 0)],
         ["(`prefetch`: 3 of 10)",
          "Holes are not the reason: nothing is ever put into the 70 of `prefetch-sealed`."]),
        ([("prefetch", 10, 0, 0), ("prefetch-sealed", 10, 0, 0), ("leaderless", 10, 0, 0)],
         ["No message came to stand behind a reader, with `leaderless`, `prefetch-sealed`, `prefetch`."]),
        ([("mine.py (invalid)", 9, 2, 1), ("yours.py", 9, 0, 0)],
         ["(`mine.py` (invalid): 1 of 9)", "There are none with `yours.py`.", "no run of `prefetch`"]),
    ],
)  # fmt: skip
def test_the_answer_about_prefetch_follows_the_figures(
    rows: list[tuple[Any, ...]], there: list[str]
) -> None:
    columns = ["program", "message_count", "hole_count", "late_count"]
    told = answers.prefetch(pd.DataFrame(rows, columns=columns))
    assert [part for part in there if part not in told] == []


def test_the_answer_about_programs_is_a_grid() -> None:
    rows = [
        ("latency", "cas", MORE, "less"),  # the other has more of it, which is worse for the other
        ("latency", "leader (invalid)", LESS, "less"),
        ("availability", "cas", SAME, "more"),
        ("availability", "leader (invalid)", TOO_FEW, "more"),
    ]
    compared = pd.DataFrame(rows, columns=["figure", "other", "verdict", "better"])
    compared = compared.assign(baseline="leaderless", baseline_runs=4, comparisons=[3, 3, 3, None])
    told = answers.stands("kafka", compared)
    assert told.startswith("**kafka: how `leaderless` stands against each other program")
    assert "A difference is told in 2 of 3 comparisons; of those told at most 5% are" in told
    assert told.splitlines()[-4:] == [
        "| | `cas` | `leader` (invalid) |",
        "|---|---|---|",
        "| latency | **better** | (worse) |",
        "| availability | same | too few runs |",
    ]
    means = pd.DataFrame(
        [(row[0], row[1], row[3]) for row in [*rows, ("latency", "leaderless", "", "less")]],
        columns=["figure", "program", "better"],
    )
    standings = answers.standings(means, compared)
    assert list(standings.standing) == ["worse", "not ranked", None, None, "baseline"]
    assert list(standings.enough_runs) == [True, True, True, False, True]


def recovery(program: str, kind: str, *seconds: float | None) -> list[tuple[Any, ...]]:
    return [
        (f"run-{program}-{n}", program, kind, 1e9, None if s is None else s * 1e9)
        for n, s in enumerate(seconds)
    ]


ALONE = [*recovery("leaderless", "kill", 0.5, 1.5, None), *recovery("leaderless", "pause", 0, 0, 0)]
LATER = recovery("cas", "pause", 0, 1, 1)
SOONER = r"Sooner, in the median: `cas` after kill \(0.5 s after the fault, against 1.5 s"


@pytest.mark.parametrize(
    ("others", "there", "absent"),
    [
        ([*LATER, *recovery("cas", "kill", 0.25, 0.5)], SOONER, "after pause"),
        (
            recovery("x (invalid)", "kill", 0),
            r"Sooner, but not ranked: `x` \(invalid\) after kill",
            "median:",
        ),
        (
            LATER,
            "No other program recovered sooner than `leaderless` from the same faults.",
            "Sooner",
        ),
        (recovery("cas", "loss", 0), r"s after the fault\.$", "ooner"),  # nothing to compare with
        ([], r"s after the fault\.$", "ooner"),
    ],
)
def test_the_answer_about_faults_says_where_another_recovered_sooner(
    others: list[tuple[Any, ...]], there: str, absent: str
) -> None:
    served = pd.DataFrame(
        [("leaderless", "kill", 99, 100)],
        columns=["program", "fault", "ok_count", "invoked_count"],
    )
    columns = ["run_id", "program", "kind", "watched_ns", "recovery_ns"]
    rows = pd.DataFrame([*ALONE, *others], columns=columns)
    runs = pd.DataFrame({"program": ["leaderless", "cas"], "runs": 3})
    told = answers.suffered("kafka", served, rows, runs)
    assert "`leaderless` acknowledged: kill 99.0%." in told
    assert "After 5 of 6 faults in 3 runs" in told
    assert re.search(there, told)
    assert absent not in told


@pytest.mark.spark
def test_what_a_workload_counts_is_shown_and_only_a_log_has_causes(spark: SparkSession) -> None:
    of, names = (
        ("p", "partition"),
        "workload string, program string, faults string, run_id string, ",
    )
    figures = [
        ("stable_median_ms", None, 85.0),
        ("stable_most_ms", None, 554.0),
        (BY_CAUSE, "refresh", 3.0),
    ]
    both = [(each, *of, "r", *figure) for each in ("broadcast", "kafka") for figure in figures]
    done = [("add", "main", None, "3"), ("add", "main", None, "4"), ("read", "final", "7", None)]
    counted = [("g-counter", *of, "r", "ok", *each) for each in done]
    columns = "outcome string, f string, phase string, completed_value_json string, invoked_value_json string"
    nothing = spark.createDataFrame([], "run_id string")
    lake = Tables(
        spark.createDataFrame([(each[0], *of, "r") for each in both[::3]], names.rstrip(", ")),
        spark.createDataFrame(counted, names + columns),
        *(nothing, nothing, nothing),
        spark.createDataFrame(both, f"{names}figure string, of string, value double"),
    )
    found = tables.counts(lake)
    most = found[found.workload != "kafka"].set_index("counted").most.to_dict()
    assert most == {
        "add, ok": 2,
        "read, ok": 1,
        "sum of acknowledged adds": 7,
        "final read": 7,
        "median stable latency, ms": 85,
        "longest stable latency, ms": 554,
    }
    told = answers.spread(found[found.workload == "broadcast"], "p")
    assert "under partition after 85 ms in the median and 554 ms at the latest" in told
    assert answers.spread(found[found.workload == "g-counter"], "p") == ""
    assert list(tables.messages(lake).workload) == ["kafka"]


def test_tables_have_readable_units() -> None:
    frame = pd.DataFrame(
        {"program": ["cas"], "run_id": ["r"], "latency_ns_p50": [1.5e6], "ended_ns": [2e9]}
    ).assign(faults=[["kill", "pause"]], recovery_ns=[None], count=[12345])
    assert readable(frame).to_dict("records") == [
        {
            "program": "cas",
            "latency p50, ms": "1.5",
            "ended, s": "2",
            "faults": "kill, pause",
            "recovery, s": None,
            "count": "12 345",
        }
    ]
