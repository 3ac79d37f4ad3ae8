"""One run of a sweep: `./maelstrom test` as a process of its own, watched until its end.

The run has a folder `<cell>.<repetition>/` in the sweep's own. It makes its store there: the embedded bench
under the workload's name, the real tool (which stores where it is started) under `store/`. Its output is in
`output.log` beside.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.failure import unwritable
from bench.sweep import axes
from bench.sweep.work import Job
from bench.system import die_with_parent
from runs.facts import EMBEDDED, Results, program
from runs.figures import of_run
from runs.store import Folder, utc_now
from runs.sweeps import Row, verdict_of

MAELSTROM = Path(__file__).parents[2] / "maelstrom"
OUTPUT = "output.log"
_LAST_LINES = 14  # why a run broke off, its figures, and the command that repeats it
_TICK_S = 0.25
_STOP_GRACE_S = 10.0
Tick = Callable[[float], None]


def command(job: Job, store: Path | None) -> list[str]:
    """The command line of a run. Cells of one repetition share a seed, so that they are paired."""
    for_bench, for_node = axes.arguments({"seed": job.sweep, **job.cell.axes, "engine": job.engine})
    line = [str(MAELSTROM), "test", "--bin", job.cell.options.bin, *for_bench]
    if job.repetition > 1:  # as --test-count has it
        seed = line.index("--seed") + 1
        line[seed] += f"-{job.repetition}"
    line += ["--store", str(store)] if store else []
    return [*line, *(["--", *for_node] if for_node else [])]


def repeat(job: Job) -> str:
    """The command that makes the run again by hand, with the same operations, delays and faults."""
    return shlex.join(["./maelstrom", *command(job, None)[1:]])


def perform(job: Job, parent: Path, tick: Tick) -> Row:
    """Make the run; `tick` gets the seconds since its start, a few times a second.

    A run that crashes or hangs is a row like any other. `KeyboardInterrupt` stops it and is passed
    on; `RunFailure` when nothing can be written.
    """
    place = job.folder(parent).absolute()
    began, started = time.monotonic(), utc_now()
    try:
        place.mkdir(exist_ok=True)
        before = _newest(place, job.engine)
        with (place / OUTPUT).open("wb") as output:
            status = _watch(command(job, place), place, output.fileno(), job.limit_s, tick)
    except OSError as error:
        raise unwritable(str(place), error) from None
    run_dir = _newest(place, job.engine)
    figures: Mapping[str, float | None] = {}
    anomalies: list[str] = []
    if run_dir is not None and run_dir != before:
        with contextlib.suppress(OSError, ValueError):  # it did not come so far
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
        run=None if run_dir in (None, before) else os.path.relpath(run_dir, parent.resolve()),
        verdict=verdict_of(status),
        exit_status=status,
        seconds=round(time.monotonic() - began, 2),
        started=started.isoformat(timespec="milliseconds"),
        expect=job.cell.expect,
        figures=dict(figures),
        anomalies=anomalies,
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
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_TICK_S)
        os.write(output, f"\nGiven up after {limit_s:.0f} s.\n".encode())
        return _stop(process)
    except BaseException:  # Ctrl-C does not reach the run, which has a session of its own
        _stop(process)
        raise


def _stop(process: "subprocess.Popen[bytes]") -> int:
    """End the run: at the first SIGTERM a bench stops its nodes and judges the history so far; at the second it
    stops judging; SIGKILL comes last.
    """
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_GRACE_S)
            break
    return process.wait()
