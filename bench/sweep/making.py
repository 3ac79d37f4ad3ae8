"""The runs of a sweep are made here, one at a time, with an index of those that are finished.

A run is `./maelstrom test` as a process of its own, watched until its end. It has a folder
`<cell>.<repetition>/` in the sweep's own. It makes its store there: the embedded bench under the workload's
name, the real tool (which stores where it is started) under `store/`. Its output is in `output.log` beside.
"""

import fcntl
import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

from bench.sweep import table
from bench.sweep.axes import arguments
from bench.sweep.jobs import Job, finished, missing, seconds_left
from bench.system import die_with_parent, end
from runs import sweeps
from runs.facts import EMBEDDED, Results, program
from runs.figures import of_run
from runs.files import SWEEP_INDEX
from runs.house import HOUSE, INSTALLED, MAELSTROM, START
from runs.store import Folder, utc_now
from runs.sweeps import CRASHED, Key, Row, verdict_of

OUTPUT = "output.log"
_LAST_LINES = 14  # why a run broke off, its figures, and the command that repeats it
_TICK_S = 0.25
# At the first SIGTERM a bench stops its nodes and judges the history so far; at the second it stops judging.
_STOP = (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL)
_STOP_GRACE_S = 10.0
Tick = Callable[[float], None]


def command(job: Job, store: Path | None) -> list[str]:
    """The command line of a run. Cells of one repetition share a seed, so that they are paired."""
    for_bench, for_node = arguments({"seed": job.sweep, **job.cell.axes, "engine": job.engine})
    line = [*START, "test", "--bin", job.cell.options.bin, *for_bench]
    if job.repetition > 1:  # as --test-count has it
        seed = line.index("--seed") + 1
        line[seed] += f"-{job.repetition}"
    own = ["--store", str(store)] if store else []
    return [*line, *own, *(["--", *for_node] if for_node else [])]


def repeat(job: Job) -> str:
    """The command that makes the run again by hand, with the same operations, delays and faults."""
    return shlex.join([MAELSTROM, *command(job, None)[len(START) :]])


def perform(job: Job, parent: Path, tick: Tick) -> Row:
    """Make the run; `tick` gets the seconds since its start, a few times a second.

    A run that crashes or hangs is a row like any other. `KeyboardInterrupt` stops it and is passed
    on; `OSError` when nothing can be written.
    """
    place = job.folder(parent).absolute()
    began, started = time.monotonic(), utc_now()
    place.mkdir(exist_ok=True)
    before = _newest(place, job.engine)
    with (place / OUTPUT).open("wb") as output:
        status = _watch(command(job, place), place, output.fileno(), job.limit_s, tick)
    newest = _newest(place, job.engine)
    run_dir = None if newest == before else newest
    figures: Mapping[str, float | None] = {}
    anomalies: list[str] = []
    if run_dir:
        with suppress(OSError, ValueError):  # it did not come so far
            anomalies = Results.of_run(run_dir).invalidating
            cell = {"time-limit": job.cell.options.time_limit_s, **job.cell.axes}
            figures = of_run(Folder(run_dir, run_dir.name), cell=cell).numbers
    return Row(
        sweep=job.sweep,
        cell=dict(job.cell.axes),
        workload=job.cell.options.workload,
        program=program(job.cell.options.as_dict()),
        repetition=job.repetition,
        engine=job.engine,
        run=os.path.relpath(run_dir, parent.resolve()) if run_dir else None,
        verdict=verdict_of(status),
        exit_status=status,
        seconds=round(time.monotonic() - began, 2),
        started=started.isoformat(timespec="milliseconds"),
        expect=job.cell.expect,
        figures=dict(figures),
        anomalies=anomalies,
        node=job.cell.node,
    )


def last_words(job: Job, parent: Path) -> str:
    """The last lines that a run printed."""
    try:
        lines = (job.folder(parent) / OUTPUT).read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-_LAST_LINES:])


def _newest(place: Path, engine: str) -> Path | None:
    latest = place / "latest" if engine == EMBEDDED else place / "store" / "latest"
    return latest.resolve() if latest.exists() else None


def _watch(line: Sequence[str], place: Path, output: int, limit_s: float, tick: Tick) -> int:
    """Run it to its end, or to the limit. Returns its exit status; no process is left behind."""
    began = time.monotonic()
    process = subprocess.Popen(
        line,
        cwd=place,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        preexec_fn=die_with_parent(signal.SIGTERM),  # noqa: PLW1509 - a sweep has one thread
    )
    try:
        while time.monotonic() - began < limit_s:
            tick(time.monotonic() - began)
            with suppress(subprocess.TimeoutExpired):
                return process.wait(_TICK_S)
        os.write(output, f"\nGiven up after {limit_s:.0f} s.\n".encode())
        return end(process, *_STOP, grace_s=_STOP_GRACE_S)
    except BaseException:  # Ctrl-C does not reach the run, which has a session of its own
        end(process, *_STOP, grace_s=_STOP_GRACE_S)
        raise


# ---------------------------------------------------------------- the index of a sweep


MACHINE_FILE = "machine.json"


class Index:
    """Rows of finished runs. Only one sweep at a time may hold it `locked`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / SWEEP_INDEX

    def rows(self) -> dict[Key, Row]:
        """The newest row of each run."""
        return sweeps.read(self.folder)

    def set_aside(self) -> None:
        """Move the folder away, if there is one, under a name with the time of its last run."""
        if self.path.exists():
            with self.locked():
                last = datetime.fromtimestamp(self.path.stat().st_mtime, UTC)
                self.folder.rename(f"{self.folder}-{last:%Y%m%dT%H%M%S.%f}")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other sweeps out of this folder for as long as this one runs (`OSError` if it is read-only)."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise click.UsageError(
                    f"Another sweep is running in {self.folder}. Wait for it, or give another"
                    " --name."
                ) from None
            yield


def write_machine(folder: Path) -> None:
    """Write `machine.json`: the command, the time, the machine and its load, the commit of the code.

    A sweep that goes on leaves it as it is.
    """
    file = folder / MACHINE_FILE
    if file.exists():
        return
    content = {
        "command": " ".join([MAELSTROM, *sys.argv[1:]]),
        "started": utc_now().isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "kernel": platform.release().split("-")[0],
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
        "commit": commit_here(),
    }
    file.write_text(json.dumps(content, indent=2) + "\n")


def _cpu_model() -> str:
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        models = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
        return next(models, platform.machine())
    return platform.processor() or platform.machine()


def commit_here() -> str:
    """The commit of this project that runs, with `-dirty` after it if files differ; `unknown` without git.

    Of an installed bench its version: a commit would be that of whatever it is installed in.
    """
    if INSTALLED:
        return version("leaderless")
    line = ["git", "describe", "--always", "--dirty"]
    with suppress(OSError):  # no git
        told = subprocess.run(line, cwd=HOUSE, capture_output=True, text=True, check=False).stdout
        return told.strip() or "unknown"
    return "unknown"


# ---------------------------------------------------------------- all runs


def run_all(
    planned: Sequence[Job],
    index: Index,
    console: Console,
    *,
    again: bool = False,
    discard: bool = False,
) -> None:
    """Make every run that the index lacks; `again`: those that did not end as expected, too.

    With `discard` the folder of a run that ended as expected is deleted once its figures are known.
    `KeyboardInterrupt` stops the sweep: finished runs are in the index, the run under way is not.
    """
    before = index.rows()
    rows = finished(planned, before)
    todo = missing(planned, rows, again=again)
    left_s = seconds_left(todo, planned, rows)
    done = len(planned) - len(todo)
    stale = sum(job.key in before and job.key not in rows for job in planned)
    console.print(
        f"{so_many_runs(len(todo))} to make, about {duration(left_s)}"
        + (f"; {done} {'is' if done == 1 else 'are'} finished already" if done else "")
        + (f"; the node has changed since {stale} of them" if stale else "")
        + f". Folder: {escape(str(index.folder))}",
        highlight=False,
        soft_wrap=True,
    )
    done_s = 0.0
    with Progress(
        BarColumn(20),
        TextColumn("{task.fields[left]} left: {task.description}", markup=False),
        console=console,
        auto_refresh=False,  # no refreshing thread: runs are forked from this process
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("", visible=False, left="")
        for number, job in enumerate(todo):
            count = f"{number + 1}/{len(todo)}"
            left_s = seconds_left(todo[number:], planned, rows)

            def tick(seconds: float, before_s: float = done_s, left_s: float = left_s) -> None:
                nonlocal done_s
                done_s = before_s + seconds
                bar.update(
                    task,
                    completed=done_s,
                    total=before_s + max(left_s, seconds),
                    left=duration(max(0.0, left_s - seconds)),
                    visible=True,
                    refresh=True,
                )

            bar.update(task, description=f"{count} {job.cell.title}")
            row = perform(job, index.folder, tick)
            if discard and row.as_expected:
                shutil.rmtree(job.folder(index.folder), ignore_errors=True)
                row = replace(row, run=None)
            sweeps.append(index.folder, row)
            rows[row.key] = row
            _print_row(console, job, row, index.folder, count)


def so_many_runs(count: int) -> str:
    """For people: `1 run`, `3 runs`."""
    return "1 run" if count == 1 else f"{count} runs"


def duration(seconds: float) -> str:
    """For people: `45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


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
        console.print(
            last_words(job, folder), style="yellow", markup=False, highlight=False, soft_wrap=True
        )
