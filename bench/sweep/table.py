"""The table of a sweep: a row for each cell, medians over its repetitions. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from bench.sweep.axes import shown
from bench.sweep.definition import Sweep
from bench.sweep.work import Job
from runs.figures import number_of
from runs.sweeps import Cell, Key, Row

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
