"""The folder of a sweep: its index of finished runs (`runs.sweeps`), and the machine on which it began."""

import fcntl
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click

from bench.failure import unwritable
from runs import sweeps
from runs.files import SWEEP_INDEX
from runs.store import utc_now
from runs.sweeps import Key, Row

MACHINE_FILE = "machine.json"


class Index:
    """Rows of finished runs. Only one sweep at a time may hold it `locked`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / SWEEP_INDEX

    def rows(self) -> dict[Key, Row]:
        """The newest row of each run."""
        return sweeps.read(self.folder)

    def add(self, row: Row) -> None:
        """Append a row (`RunFailure` when the disk is full)."""
        try:
            sweeps.append(self.folder, row)
        except OSError as error:
            raise unwritable(str(self.path), error) from None

    def set_aside(self) -> None:
        """Move the folder away, if there is one, under a name with the time of its last run."""
        if self.path.exists():
            with self.locked():
                last = datetime.fromtimestamp(self.path.stat().st_mtime, UTC)
                self.folder.rename(f"{self.folder}-{last:%Y%m%dT%H%M%S}")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other sweeps out of this folder for as long as this one runs."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = self.path.open("ab")
        except OSError as error:
            raise unwritable(f"The folder {self.folder}", error) from None
        with file:
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
        "command": " ".join(["./maelstrom", *sys.argv[1:]]),
        "started": utc_now().isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "kernel": platform.release().split("-")[0],
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
        "commit": _commit(),
    }
    file.write_text(json.dumps(content, indent=2) + "\n")


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _commit() -> str:
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:  # no git
        return "unknown"
    return described.stdout.strip() or "unknown"
