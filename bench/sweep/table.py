"""The table of a sweep: a row for each cell, medians over its repetitions; and its runs as JUnit XML.

Of the many forms of JUnit's file it has the one that all readers know: `failure` for a run that ended in
another verdict than it should, `error` for one without a verdict, `skipped` for what does not count.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

import click
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from bench.sweep.axes import shown
from bench.sweep.plan import Job, Sweep
from runs.figures import number_of
from runs.sweeps import CRASHED, UNKNOWN, Cell, Key, Row

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
ONLY_IF_KNOWN = ("store/op",)
_STYLES = {True: "green", False: "bold red"}


def cells(sweep: Sweep, jobs: Sequence[Job]) -> Table:
    """The cells of a sweep before anything has run (`--dry-run`)."""
    table = _begin(sweep, ("expected", "engine"), ("seconds",))
    for job in (job for job in jobs if job.repetition == 1):
        seconds = f"{job.duration_s:g}"
        table.add_row(*_axes(sweep, job), job.cell.expect, job.engine, seconds)
    return table


def outcome(sweep: Sweep, jobs: Sequence[Job], rows: Mapping[Key, Row]) -> Table:
    """Verdicts and figures of each cell that has run at least once."""
    several_engines = len({job.engine for job in jobs}) > 1
    words = ("engine", "verdict") if several_engines else ("verdict",)
    headings = {
        name: figures
        for name, figures in HEADINGS.items()
        if name not in ONLY_IF_KNOWN
        or any(row.figures.get(figure) is not None for row in rows.values() for figure in figures)
    }
    table = _begin(sweep, words, headings)
    table.caption, table.caption_justify = CAPTION, "left"
    for (_, engine), alike in _by_cell(jobs).items():
        found = [rows[job.key] for job in alike if job.key in rows]
        if found:
            figures = [_middles(Cell(found), names) for names in headings.values()]
            which = [engine] if several_engines else []
            table.add_row(*_axes(sweep, alike[0]), *which, verdict(found), *figures)
    return table


def findings(jobs: Sequence[Job], rows: Mapping[Key, Row]) -> list[str]:
    """For each cell whose runs showed anomalies or mute nodes: its title and what they showed."""
    lines = []
    for alike in _by_cell(jobs).values():
        found = [rows[job.key] for job in alike if job.key in rows]
        if found and (signs := Cell(found).signs):
            lines.append(f"{alike[0].cell.title}: {', '.join(signs)}")
    return lines


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
    title = escape(sweep.about or sweep.name)
    table = Table(
        title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False, pad_edge=False
    )
    for name in (*sweep.varied, *words):
        table.add_column(name, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _axes(sweep: Sweep, job: Job) -> list[str]:
    axes = job.cell.axes
    return [escape(shown(name, axes[name])) if name in axes else "" for name in sweep.varied]


def _by_cell(jobs: Sequence[Job]) -> dict[tuple[str, str], list[Job]]:
    found: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        found.setdefault((job.cell.key, job.engine), []).append(job)
    return found


def _middles(cell: Cell, names: Sequence[str]) -> str:
    return " / ".join(_middle(cell, name) for name in names)


def _middle(cell: Cell, figure: str) -> str:
    summary = cell.summary(figure)
    return summary.text(number_of(figure).decimals)[0] if summary else "–"


# ----------------------------------------------------------------


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
    counts = dict.fromkeys((FAILURE, ERROR, SKIPPED), 0)
    root = Element("testsuites")
    group = SubElement(root, "testsuite", name=_text(suite), tests=str(len(cases)))
    for case in cases:
        element = SubElement(
            group,
            "testcase",
            classname=_text(suite),
            name=_text(case.name),
            time=f"{case.seconds:.2f}",
        )
        if case.problem:
            counts[case.problem] += 1
            told = SubElement(element, case.problem, message=_text(case.message))
            told.text = _text(case.details)
    group.set("failures", str(counts[FAILURE]))
    group.set("errors", str(counts[ERROR]))
    group.set("skipped", str(counts[SKIPPED]))
    group.set("time", f"{sum(case.seconds for case in cases):.2f}")
    indent(root)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise click.FileError(str(file), error.strerror) from None


def _text(text: str) -> str:
    """The text without the characters that XML does not have, such as those that colour a terminal."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)
