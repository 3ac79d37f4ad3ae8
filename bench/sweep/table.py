"""The table of a sweep: a row for each cell, medians over its repetitions; and its runs as JUnit XML.

Of the many forms of JUnit's file it has the one that all readers know: `failure` for a run that ended in
another verdict than it should, `error` for one without a verdict, `skipped` for what does not count.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

import click
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from bench.sweep.axes import NODE_ARGUMENTS, PROGRAM, shown
from bench.sweep.jobs import Job
from bench.sweep.plan import Sweep
from runs.facts import OF_OUR_NODE
from runs.figures import number_of
from runs.sweeps import CRASHED, INVALID, UNKNOWN, Cell, Key, Row
from runs.sweeps import cells as of_cells

# Heading -> the figures below it.
HEADINGS = {
    "msgs/op": ("server_messages_per_op",),
    "store/op": ("store_requests_per_op",),
    "ops/s": ("throughput_ops_per_s",),
    "send ms": ("send_p50_ms", "send_p99_ms"),
    "poll ms": ("poll_p99_ms",),
}
CAPTION = (
    "medians; msgs/op: between servers; store/op: requests to a real store;"
    " send ms: p50 / p99; poll ms: p99"
)
ONLY_IF_KNOWN = ("store_requests_per_op",)
OF_PROGRAM = (*OF_OUR_NODE, "program", PROGRAM, NODE_ARGUMENTS)  # axes that say what runs
MARK = "✘"
_STYLES = {True: "green", False: "bold red"}


def cells(sweep: Sweep, jobs: Sequence[Job]) -> Table:
    """The cells of a sweep before anything has run (`--dry-run`)."""
    table = _begin(sweep, ("expected", "engine"), ("seconds",))
    for job in (job for job in jobs if job.repetition == 1):
        table.add_row(
            *_axes(sweep, job.cell.axes), job.cell.expect, job.engine, f"{job.duration_s:g}"
        )
    return table


def outcome(sweep: Sweep, rows: Mapping[Key, Row]) -> Table:
    """Verdicts and figures of each cell that has run at least once."""
    several_engines = len({row.engine for row in rows.values()}) > 1
    words = ("engine", "verdict") if several_engines else ("verdict",)
    headings = {
        name: figures
        for name, figures in HEADINGS.items()
        if figures != ONLY_IF_KNOWN
        or any(row.figures.get(figure) is not None for row in rows.values() for figure in figures)
    }
    table = _begin(sweep, words, headings)
    found = ranked(of_cells(rows.values()))
    marked = f"; {MARK}: a program with an invalid run" * any(wrong for _, wrong in found)
    table.caption, table.caption_justify = f"{CAPTION}{marked}", "left"
    for (cell, wrong), (following, _) in zip(found, [*found[1:], found[-1]], strict=True):
        figures = [" / ".join(median(cell, name)[0] for name in each) for each in headings.values()]
        which = [cell.engine] if several_engines else []
        own = _axes(sweep, cell.axes, wrong=wrong)
        end = ran(following)[0] != ran(cell)[0]
        table.add_row(*own, *which, verdict(cell.rows), *figures, end_section=end)
    return table


def ran(cell: Cell) -> tuple[str | None, Any]:
    """Workload and program of a cell; rows of an older bench do not say them."""
    return cell.rows[0].workload, cell.rows[0].program or cell.axes.get("strategy")


def ranked(cells: Sequence[Cell]) -> list[tuple[Cell, bool]]:
    """Cells by workload, and whether the program of each has an invalid run of that workload.

    Programs under the same conditions stand side by side, those with an invalid run last: they may have saved
    what the others spend on being right.
    """

    wrong = {ran(cell) for cell in cells if INVALID in cell.verdicts}
    places: dict[Any, int] = {}

    def place(cell: Cell) -> tuple[int, int, bool]:
        conditions = {name: cell.axes[name] for name in cell.axes if name not in OF_PROGRAM}
        of_workload = places.setdefault(ran(cell)[0], len(places))
        under = places.setdefault(
            json.dumps([conditions, cell.engine], sort_keys=True), len(places)
        )
        return of_workload, under, ran(cell) in wrong

    return [(cell, ran(cell) in wrong) for cell in sorted(cells, key=place)]


def findings(jobs: Sequence[Job], rows: Mapping[Key, Row]) -> list[str]:
    """For each cell whose runs showed anomalies or mute nodes: its title and what they showed."""
    titles = {(job.cell.key, job.engine): job.cell.title for job in jobs}
    showing = (cell for cell in of_cells(rows.values()) if cell.signs)
    return [f"{titles[cell.rows[0].cell_key]}: {', '.join(cell.signs)}" for cell in showing]


def verdict(rows: Sequence[Row]) -> str:
    """The verdicts of the runs of a cell, as marked-up text; green when they were expected."""
    cell = Cell(rows)
    words = ", ".join(
        word if len(rows) == 1 else f"{count} {word}" for word, count in cell.verdicts.items()
    )
    fine = cell.as_expected
    hint = "" if fine or rows[0].expect == "valid" else f", expected {rows[0].expect}"
    return f"[{_STYLES[fine]}]{words}[/]{hint}"


def _begin(sweep: Sweep, words: Iterable[str], numbers: Iterable[str]) -> Table:
    table = Table(
        title=escape(sweep.about or sweep.name),
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
    for name in (*sweep.varied, *words):
        table.add_column(name, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _axes(sweep: Sweep, axes: Mapping[str, Any], *, wrong: bool = False) -> list[str]:
    return [_word(name, axes[name], wrong) if name in axes else "" for name in sweep.varied]


def _word(name: str, value: Any, wrong: bool) -> str:
    text = escape(shown(name, value))
    return f"[{_STYLES[False]}]{MARK}[/] {text}" if wrong and name in OF_PROGRAM else text


def median(cell: Cell, figure: str) -> tuple[str, str]:
    """The median and, if the values of several runs differ, the spread."""
    summary = cell.summary(figure)
    if summary is None:
        return "–", ""
    middle, low, high = summary.text(number_of(figure).decimals)
    return middle, f"{low} to {high}" if low != high else ""


# ---------------------------------------------------------------- JUnit


FAILURE, ERROR, SKIPPED = "failure", "error", "skipped"
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Case:
    """A run. `problem` is the element that says that it did not go well, None if it did.

    `message` is one line, `details` what the run printed and how to repeat it.
    """

    name: str
    seconds: float = 0.0
    problem: str | None = None
    message: str = ""
    details: str = ""


def case_of(name: str, row: Row | None, details: str) -> Case:
    """The test case of a run of a sweep; without a row it was not made."""
    if row is None:
        return Case(name, problem=ERROR, message="not run")
    if row.as_expected:
        return Case(name, row.seconds)
    problem = ERROR if row.verdict in (UNKNOWN, CRASHED) else FAILURE
    found = f": {', '.join(row.anomalies)}" if row.anomalies else ""
    return Case(name, row.seconds, problem, f"{row.verdict}{found}", details)


def write_junit(file: Path, suite: str, cases: Sequence[Case]) -> None:
    """Write the cases as one suite (`click.FileError` when the file cannot be written)."""
    counts = Counter(case.problem for case in cases)
    problems = {"failures": FAILURE, "errors": ERROR, "skipped": SKIPPED}
    root = Element("testsuites")
    its = {
        "name": _text(suite),
        **{name: str(counts[problem]) for name, problem in problems.items()},
        "tests": str(len(cases)),
        "time": f"{sum(case.seconds for case in cases):.2f}",
    }
    group = SubElement(root, "testsuite", its)
    for case in cases:
        who = {"classname": _text(suite), "name": _text(case.name)}
        element = SubElement(group, "testcase", {**who, "time": f"{case.seconds:.2f}"})
        if case.problem:
            told = SubElement(element, case.problem, message=_text(case.message))
            told.text = _text(case.details)
    indent(root)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise click.FileError(str(file), error.strerror) from None


def _text(text: str) -> str:
    """The text without the characters that XML does not have, such as those that colour a terminal."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)
