"""Works off the runs of a sweep, one at a time, and shows how it goes."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.markup import escape

from bench.sweep import table
from bench.sweep.index import CRASHED, Index, Row
from bench.sweep.runner import Job, last_words, perform
from bench.sweep.work import finished, missing, seconds_left


def run_all(
    planned: Sequence[Job], index: Index, console: Console, *, again: bool, discard: bool
) -> None:
    """Make every run that the index lacks, and with `again` those that failed.

    With `discard` the folder of a run that ended as expected goes once its figures are known.

    `KeyboardInterrupt` stops it: what is finished is in the index, the run under way is not.
    """
    rows = finished(planned, index.rows())
    todo = missing(planned, rows, again=again)
    left_s = seconds_left(todo, planned, rows)
    console.print(
        f"{len(todo)} runs to make, about {duration(left_s)}"
        + (f"; {len(planned) - len(todo)} are finished already" if rows else "")
        + f". Folder: {escape(str(index.folder))}",
        highlight=False,
        soft_wrap=True,
    )
    for number, job in enumerate(todo):
        left_s = seconds_left(todo[number:], planned, rows)
        row = _perform(job, index.folder, console, f"[{number + 1}/{len(todo)}]", left_s)
        if discard and row.as_expected:
            shutil.rmtree(job.folder(index.folder), ignore_errors=True)
            row = replace(row, run=None)
        index.add(row)
        rows[row.key] = row
        _tell(console, job, row, index.folder, f"[{number + 1}/{len(todo)}]")


def duration(seconds: float) -> str:
    """For people: `45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _perform(job: Job, folder: Path, console: Console, count: str, left_s: float) -> Row:
    name = f"{job.cell.title}, repetition {job.repetition}"
    if not console.is_terminal:
        return perform(job, folder, lambda _: None)
    # No refreshing thread: runs are forked from this process.
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def show(seconds: float) -> None:
            left = duration(max(0.0, left_s - seconds))
            text = f"{count} {left} left; {seconds:.0f} of about {job.duration_s:.0f} s: {name}"
            live.update(escape(text), refresh=True)

        return perform(job, folder, show)


def _tell(console: Console, job: Job, row: Row, folder: Path, count: str) -> None:
    figures = row.figures.get("server_messages_per_op")
    cost = f", {figures:.2f} server messages an operation" if figures is not None else ""
    found = f" ({', '.join(row.anomalies)})" if row.anomalies else ""
    again = f", repetition {row.repetition}" if row.repetition > 1 else ""
    console.print(
        f"{escape(count)} {escape(job.cell.title)}{again}: {table.verdict([row])}{found}{cost}"
        f" ({row.seconds:.0f} s)",
        highlight=False,
        soft_wrap=True,
    )
    if row.verdict == CRASHED:
        words = last_words(job, folder)
        console.print(words, style="yellow", markup=False, highlight=False, soft_wrap=True)
