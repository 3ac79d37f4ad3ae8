"""From the index of a sweep to the pages of docs/performance, and whether their names agree.

What all measurements share: help and pages.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from bench.sweep import plan
from bench.sweep.making import MACHINE_FILE, Index, write_machine
from performance import age, crowd, measured, pages, scaling, strategies
from performance.harness import replace_section, table_lines, write_page
from performance.measured import found_in, summary, verdict_words
from performance.scaling import SLOPES
from performance.strategies import CONFIGURATIONS, SUBJECT, Bound, Configuration
from runs.sweeps import Cell, Row, append
from tests.programs import ROOT

AIMS = (
    Bound("server_messages_per_op", "at most", 1.0),
    Bound("throughput_ops_per_s", "above", 1.0, ("strategy", "cas")),
    Bound("send_p99_ms", "at most", 3.0, ("configuration", "calm")),
    Bound("strict_valid", "at least", 1.0),
    Bound("send_p50_ms", "at most", 3.0, of="cas"),
)
ROUGH = Configuration("rough", "Rough seas", "nobody sailed here", AIMS, {"poll_p99_ms": "11"})


def cells(name: str) -> Any:
    return [cell.axes for cell in plan.read(ROOT / "bench" / "sweep" / f"{name}.toml").cells]


def record(name: str = "rough", strategy: str = "leaderless", **figures: Any) -> Row:
    return Row("", {"name": name, "strategy": strategy}, verdict="valid", figures=figures)


def found(*records: Row) -> Any:
    return found_in(records, lambda cell: cell.get("name"))


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a sweep without a run."""
    command = ["maelstrom", "sweep", "bench/sweep/x.toml", *["--only", "strategy=leaderless"] * 9]
    monkeypatch.setattr("sys.argv", command)
    write_machine(tmp_path)
    return tmp_path


def page(name: str, sweep: Path, *rows: Row) -> str:
    """What is left of a page that said `old`."""
    index = Index(sweep)
    for number, row in enumerate(rows):
        append(index.folder, replace(row, repetition=number))
    docs = sweep / "docs" / "performance"
    docs.mkdir(parents=True)
    (docs / f"{name}.md").write_text("old")
    words = [name, str(sweep), "--docs", str(docs)]
    assert CliRunner().invoke(pages.main, words, catch_exceptions=False).exit_code == 0
    return (docs / f"{name}.md").read_text()


def test_every_cell_of_a_sweep_has_its_place_on_a_page() -> None:
    swept = cells("comparison")
    assert [each.name for each in CONFIGURATIONS] == list(dict.fromkeys(c["name"] for c in swept))
    columns = {c["strategy"] for c in swept}
    assert SUBJECT in columns
    assert len(swept) == len(CONFIGURATIONS) * len(columns)
    points = [str(scaling.case(cell)) for cell in cells("scaling")]
    assert len(set(points)) == len(points)
    assert {point.partition("=")[0] for point in points} == {slope.name for slope in SLOPES}
    assert "clients=20" in points


@pytest.mark.parametrize(
    ("figure", "values", "expected"),
    [
        ("send_p50_ms", [9.0, 1.0, 2.0], (2.0, 1.0, 9.0)),
        ("send_p50_ms", [None, 3.0], (3.0, 3.0, 3.0)),
        ("send_p50_ms", [None], None),
        ("valid", [1.0, 0.0, 1.0], (0.0, 0.0, 1.0)),
        ("ok_fraction", [1.0, 0.9, 1.0], (0.9, 0.9, 1.0)),
    ],
)
def test_a_figure_is_its_median_and_a_verdict_the_worst(
    figure: str, values: list[Any], expected: object
) -> None:
    assert summary(Cell([record(**{figure: value}) for value in values]), figure) == expected


def test_a_run_that_left_nothing_is_invalid() -> None:
    assert verdict_words(Cell([record(valid=1.0), record()]), "valid") == "**invalid**"


@pytest.mark.parametrize("good", [True, False])
def test_aims_absolute_against_a_strategy_and_against_a_configuration(good: bool) -> None:
    ours: Any = {"server_messages_per_op": 1.0, "throughput_ops_per_s": 101.0, "send_p99_ms": 30.0}
    if not good:
        ours = {"server_messages_per_op": 1.01, "throughput_ops_per_s": 100.0, "send_p99_ms": 30.1}
    runs = found(
        record("calm", send_p99_ms=10.0),
        record(strategy="cas", throughput_ops_per_s=100.0, send_p50_ms=2.0 if good else 4.0),
        record(strict_valid=float(good), **ours),
    )
    assert [strategies.judge(aim, "rough", runs).met for aim in AIMS] == [good] * 5


def test_a_configuration_has_a_table_its_aims_and_what_was_wrong() -> None:
    lost = replace(record(strategy="cas"), verdict="crashed", exit_status=255)
    wrong = replace(record(strategy="cas", send_p50_ms=4.0), anomalies=["unseen", "lost-write"])
    measured = record(server_messages_per_op=0.5, strict_valid=1.0, valid=1.0)
    again = record(server_messages_per_op=0.75)
    text = strategies.markdown(
        [ROUGH, *CONFIGURATIONS], ["leaderless", "cas"], found(measured, again, lost, wrong, wrong)
    )
    assert (
        text
        == """\
## Rough seas

|  | `leaderless` | `cas` | real tool (measured elsewhere) |
| --- | ---: | ---: | ---: |
| server messages/op | 0.62 (0.50–0.75) | – |  |
| send p50, ms | – | 4.0 |  |
| poll p99, ms | – | – | 11 |
| verdict | valid | **invalid** |  |
| verdict by `--strict` | valid | – |  |

- Known: nobody sailed here.
- Aim: server messages/op at most 1. 0.62: **✔ met**
- Aim: ops/s above that of `cas`. not measured: **?**
- Aim: send p99, ms at most 3 x that of `calm`. not measured: **?**
- Aim: valid by --strict. yes: **✔ met**
- Aim: send p50, ms of `cas` at most 3. 4.0: **✘ missed**
- `cas`, 1 of 3 runs: exit status 255.
- `cas`, 2 of 3 runs: `unseen`, `lost-write`."""
    )


def test_a_page_that_would_lack_a_configuration_stays(sweep: Path) -> None:
    assert page("strategies", sweep, record(CONFIGURATIONS[0].name)) == "old"


def test_a_page_of_all_configurations_says_where_its_figures_come_from(sweep: Path) -> None:
    made = (sweep / MACHINE_FILE).read_text()
    write_machine(sweep)  # a sweep that goes on began when it began
    assert (sweep / MACHINE_FILE).read_text() == made
    text = page("strategies", sweep, *(record(each.name) for each in CONFIGURATIONS))
    first, *_, last = (line for line in text.splitlines() if line.startswith("    "))
    assert first.startswith("    ./maelstrom sweep bench/sweep/x.toml --only")
    assert (first[-1], last[-1], len(first) <= 100) == ("\\", "s", True)
    assert f"{len(CONFIGURATIONS)} runs." in text


def test_what_is_no_folder_of_a_sweep_is_refused(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="is no folder of a sweep"):
        measured.rows_of(tmp_path)


def test_real_stores_have_a_table_each_with_the_worst_verdict_of_a_cell(sweep: Path) -> None:
    figures: Any = {"valid": 1.0, "send_p99_ms": 2.0}
    rows = [
        Row("", cells("stores")[-1], figures={"strict_valid": x, **figures}) for x in (1.0, 0.0)
    ]
    other = Row("", {"store-server": "etcd", "faults": "none"}, figures={"ok_fraction": 0.5})
    text = page("stores-under-faults", sweep, *rows, other)
    assert [line for line in text.splitlines() if line.startswith(("##", "| all", "| none"))] == [
        "## sqlite",
        "| all | valid, **not strict** | – | – | 2.0 |",
        "## etcd",
        "| none | **invalid** | – | 0.500000 | – |",  # no verdict is none
    ]


def test_a_slope_is_drawn_the_same_each_time(sweep: Path) -> None:
    slope = SLOPES[-1]
    figures: Any = {"server_messages_per_op": 1.0, "node_cpu_us_per_op": 300.0}
    rows = [
        Row("", {"name": slope.name, slope.axis: value, "strategy": "cas"}, figures=measured)
        for value in (4096, 16, 256)
        if (measured := {**figures, "longest_key_messages": float(value), "valid": value != 256})
    ]
    text = page("scaling", sweep, *rows)
    assert [line.split(" | ")[0] for line in text.splitlines() if "| – | 1.00 |" in line] == [
        f"| {messages}" for messages in ("16", "256, **invalid**", "4096")
    ]
    drawn = sweep / "docs" / "images" / f"performance-{slope.name}.svg"
    scaling.draw(slope, ["cas"], found_in(rows, scaling.case), sweep / "again.svg")
    assert drawn.read_bytes() == (sweep / "again.svg").read_bytes()


# ---------------------------------------------------------------- harness


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        (
            "before\n<!-- one -->\nold\n<!-- end of one -->\nafter\n",
            lambda page: replace_section(page, "one", ["new", "newer"]),
            "before\n<!-- one -->\nnew\nnewer\n<!-- end of one -->\nafter\n",
        ),
        (
            "old\n",
            lambda page: write_page(page, "Title", "measured", "\n    a command\n\n"),
            "# Title\n\nGenerated, never edited. [How it is measured, and what it means]"
            "(README.md).\nmeasured\n\n    a command\n",
        ),
    ],
    ids=["section", "page"],
)
def test_what_is_generated_is_replaced_and_nothing_else(
    tmp_path: Path, before: str, change: Callable[[Path], None], after: str
) -> None:
    page = tmp_path / "page.md"
    page.write_text(before)
    change(page)
    assert page.read_text() == after


def test_a_page_without_the_section_is_refused(tmp_path: Path) -> None:
    write_page(tmp_path / "new" / "page.md", "Title", "", "")
    with pytest.raises(ValueError, match="no section two"):
        replace_section(tmp_path / "new" / "page.md", "two", [])


def test_a_page_says_that_the_code_is_newer_once_a_statement_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(age, "ROOT", tmp_path)
    module, page = tmp_path / "core.py", tmp_path / "docs" / "page.md"
    module.write_text('"""About it."""\nwait_s = f"{1}"\n')
    write_page(page, "Title", age.line(["core.py"]), "")
    fresh = page.read_text()
    module.write_text("# Said in other words.\nwait_s = (\n    f'{1}'\n)\n")
    age.main()
    assert page.read_text() == fresh
    module.write_text("wait_s = f'{2}'\n")
    age.main()
    assert page.read_text().splitlines()[3].endswith("; the code is newer.")
    assert age.line(["core.py"], ["0123abc"]) == "Measured at commit 0123abc; the code is newer."
    with pytest.raises(ValueError, match="gone is measured, and has no module"):
        age.line(["core.py", "gone"])


def test_the_page_of_a_crowd_has_what_a_run_printed_and_its_picture(tmp_path: Path) -> None:
    images, docs = tmp_path / "images", tmp_path / "performance"
    images.mkdir()
    rows = [[f"20ms:{n}", *[f"{n}/{2 * n}"] * (len(crowd.TITLES) - 1)] for n in (4, 16)]
    table = "\n".join(table_lines(crowd.TITLES, rows))
    crowd.page(f"Measured.\n\n    python\n\nLoad.\n\n{table}\n", docs)
    made = (docs / "crowd.md").read_text()
    assert made.endswith(f"{table}\n")
    assert made.index("Measured.") < made.index("    python") < made.index("Load.")
    drawn = (images / "performance-crowd.svg").read_text()
    assert all(way in drawn for way in crowd.WAYS)
