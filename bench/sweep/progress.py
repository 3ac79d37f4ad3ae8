"""Makes the runs of a sweep, one at a time, and shows the progress."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

from bench.sweep import table
from bench.sweep.folder import Index
from bench.sweep.runner import last_words, perform
from bench.sweep.work import Job, finished, missing, seconds_left
from runs.sweeps import CRASHED, Row


def run_all(
    planned: Sequence[Job], index: Index, console: Console, *, again: bool, discard: bool
) -> None:
    """Make every run that the index lacks, and with `again` those that failed.

    With `discard` the folder of a run that ended as expected is deleted once its figures are known.
    `KeyboardInterrupt` stops the sweep: finished runs are in the index, the run under way is not.
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
    with _Bar(console) as bar:
        for number, job in enumerate(todo):
            count = f"{number + 1}/{len(todo)}"
            left_s = seconds_left(todo[number:], planned, rows)
            row = perform(job, index.folder, bar.begin(f"{count} {job.cell.title}", left_s))
            if discard and row.as_expected:
                shutil.rmtree(job.folder(index.folder), ignore_errors=True)
                row = replace(row, run=None)
            index.add(row)
            rows[row.key] = row
            _print_row(console, job, row, index.folder, count)


def duration(seconds: float) -> str:
    """For people: `45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class _Bar:
    """The progress of the whole sweep, by time; nothing when the output is no terminal."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            BarColumn(20),
            TextColumn("{task.fields[left]} left: {task.description}", markup=False),
            console=console,
            auto_refresh=False,  # no refreshing thread: runs are forked from this process
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("", visible=False, left="")
        self._done_s = 0.0

    def __enter__(self) -> "_Bar":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, title: str, left_s: float) -> Callable[[float], None]:
        """A run begins, with so many seconds left for it and the rest. Gives what is to be told its
        seconds as they pass.
        """
        before_s = self._done_s

        def tick(seconds: float) -> None:
            self._done_s = before_s + seconds
            self._progress.update(
                self._task,
                description=title,
                completed=self._done_s,
                total=before_s + max(left_s, seconds),
                left=duration(max(0.0, left_s - seconds)),
                visible=True,
                refresh=True,
            )

        return tick


def _print_row(console: Console, job: Job, row: Row, folder: Path, count: str) -> None:
    messages = row.figures.get("server_messages_per_op")
    cost = f", {messages:.2f} server messages an operation" if messages is not None else ""
    if (requests := row.figures.get("store_requests_per_op")) is not None:
        cost += f", {requests:.2f} store requests"
    found = f" ({', '.join(row.anomalies)})" if row.anomalies else ""
    console.print(
        f"{escape(f'[{count}]')} {escape(job.title)}: {table.verdict([row])}{found}{cost}"
        f" ({row.seconds:.0f} s)",
        highlight=False,
        soft_wrap=True,
    )
    if row.verdict == CRASHED:
        words = last_words(job, folder)
        console.print(words, style="yellow", markup=False, highlight=False, soft_wrap=True)
