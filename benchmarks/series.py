"""A series of runs: kept as JSON lines while it goes, resumable, with the time that is left."""

import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from benchmarks.measure import ROOT, Job

EXIT_INTERRUPTED = 130  # as shells have it
RUNS_FILE, PLAN_FILE = "runs.jsonl", "plan.json"
# Start, final polls, judging and drawing, as seen on two busy cores; corrected by what runs really take.
OVERHEAD_S, OVERHEAD_PER_OPERATION_S = 3.0, 0.0003
OPERATIONS_PER_S_MAX = 6000.0  # what such a machine manages, whatever rate is asked for
Record = dict[str, Any]


class Series:
    """The folder of a series: its plan (settings and machine) and the records of its runs."""

    def __init__(self, folder: Path, plan: Mapping[str, Any]) -> None:
        self.folder = folder
        self.plan = plan

    @classmethod
    def create(cls, parent: Path, settings: Mapping[str, Any]) -> "Series":
        """Begin a series now, in a new folder in `parent`."""
        started = datetime.now(UTC)
        folder = parent / started.strftime("%Y%m%dT%H%M%S")
        folder.mkdir(parents=True)
        plan = {**settings, "started": started.isoformat(timespec="seconds"), **machine()}
        (folder / PLAN_FILE).write_text(json.dumps(plan, indent=2) + "\n")
        return cls(folder, plan)

    @classmethod
    def resume(cls, parent: Path, name: str) -> "Series":
        """Take up the series in the folder `name`, or the newest in `parent` when that is "latest"."""
        newest = max(parent.glob(f"*/{PLAN_FILE}"), default=parent / PLAN_FILE).parent
        folder = newest if name == "latest" else Path(name)
        try:
            return cls(folder, json.loads((folder / PLAN_FILE).read_text()))
        except (OSError, ValueError) as error:
            raise click.UsageError(
                f"--resume {name}: {folder} is no folder of a series ({error}). Give one of"
                f" {parent}/*, or latest."
            ) from None

    def records(self) -> list[Record]:
        """What has been measured; a last line that was cut off does not count."""
        try:
            lines = (self.folder / RUNS_FILE).read_text().splitlines()
        except FileNotFoundError:
            return []
        return [record for line in lines if (record := _parsed(line)) is not None]

    def add(self, record: Record) -> None:
        with (self.folder / RUNS_FILE).open("a") as file:
            torn = file.tell() and not self._ends_whole()
            file.write(("\n" if torn else "") + json.dumps(record) + "\n")

    def _ends_whole(self) -> bool:
        return (self.folder / RUNS_FILE).read_bytes().endswith(b"\n")


def _parsed(line: str) -> Record | None:
    try:
        record: Record = json.loads(line)
    except ValueError:
        return None
    return record


def missing(jobs: Iterable[Job], records: Iterable[Record]) -> list[Job]:
    """The jobs that have no record yet, in order. A run that failed has one: it is a result."""
    done = {(each["case"], each["strategy"], each["repetition"]) for each in records}
    return [job for job in jobs if job.key not in done]


def seconds_left(jobs: Sequence[Job], records: Sequence[Record]) -> float:
    """How long `jobs` will take: time limits, recovery, and the overhead of the last run of the same case and
    strategy, else of the same case, else as expected.
    """
    known: dict[tuple[str, ...], float] = {}
    for each in records:
        overhead = each["wall_s"] - each["time_limit_s"] - each["recovery_s"]
        known[each["case"],] = known[each["case"], each["strategy"]] = overhead
    return sum(
        job.time_limit_s
        + job.recovery_s
        + known.get((job.case, job.strategy), known.get((job.case,), _expected_overhead_s(job)))
        for job in jobs
    )


def _expected_overhead_s(job: Job) -> float:
    operations = min(job.rate, OPERATIONS_PER_S_MAX) * job.time_limit_s
    return OVERHEAD_S + OVERHEAD_PER_OPERATION_S * operations


def perform(
    series: Series, jobs: Sequence[Job], run: Callable[[Job], Record], console: Console
) -> bool:
    """Make every run that is missing, one at a time. Ctrl-C ends it; what has been measured stays.

    Returns whether all were made.
    """
    records = series.records()
    todo = missing(jobs, records)
    console.print(
        f"{len(todo)} runs, about {minutes(seconds_left(todo, records))}; figures in {series.folder}",
        highlight=False,
        soft_wrap=True,
    )
    try:
        for number, job in enumerate(todo):
            left = minutes(seconds_left(todo[number:], records))
            text = f"[{number + 1}/{len(todo)}, {left} left] {job.case}, {job.strategy}"
            with console.status(f"{text}, repetition {job.repetition}"):
                record = run(job)
            series.add(record)
            records.append(record)
            console.print(
                f"{text}: {_outcome(record)}", highlight=False, markup=False, soft_wrap=True
            )
    except KeyboardInterrupt:
        console.print(
            f"Stopped. {len(records)} runs are kept; go on with --resume {series.folder}",
            style="yellow",
            soft_wrap=True,
        )
        return False
    return True


def minutes(seconds: float) -> str:
    """A duration for people."""
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def replace_section(document: Path, name: str, text: str) -> None:
    """Put generated `text` between the markers `<!-- name -->` and `<!-- /name -->` of a document."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    content = document.read_text()
    if content.count(begin) != 1 or content.count(end) != 1:
        raise click.UsageError(f"{document} needs the lines {begin} and {end}, each once.")
    before, rest = content.split(begin)
    after = rest.split(end)[1]
    document.write_text(f"{before}{begin}\n{text.strip()}\n{end}{after}")


def provenance(plan: Mapping[str, Any], command: str) -> str:
    """What a reader must know of how figures came about: the command, the code, the machine, its load."""
    return (
        f"`{command}` on {plan['started'][:10]}, commit {plan['commit']}; {plan['cores']} cores of"
        f" {plan['cpu']}, Linux {plan['kernel']}, Python {plan['python']}; load average at the start"
        f" {plan['load']:.1f}. Nodes, clients, network and services share these cores."
    )


def machine() -> Record:
    """Where and on what code a series runs."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "kernel": platform.release().split("-")[0],
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
        "commit": _commit(),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _commit() -> str:
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or "unknown"


def _outcome(record: Record) -> str:
    figures = record["figures"]
    if record["error"] or not figures:
        return record["error"] or "no figures"
    verdict = "valid" if figures["valid"] else f"INVALID ({', '.join(record['anomalies'])})"
    return (
        f"{verdict}, {figures['server_messages_per_op'] or 0:.2f} server messages an operation,"
        f" {figures['throughput_ops_per_s']:.0f} operations/s"
    )
