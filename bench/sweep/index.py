"""The index of a sweep, `index.jsonl`: one JSON object a finished run.

    {"sweep", "cell": {axis: value}, "repetition", "engine", "run", "verdict", "exit_status",
     "seconds", "started", "expect", "figures", "anomalies"}

`run` is the run's folder seen from the sweep's, or null when none was left; `verdict` is valid,
invalid, unknown or crashed. Of several rows of the same run the last counts. A line is written at
once or, at worst, torn at the end of the file, where it is passed over and does no harm.
"""

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from bench.failure import unwritable

FILE_NAME = "index.jsonl"
VERDICTS = {0: "valid", 1: "invalid", 2: "unknown"}
CRASHED = "crashed"


@dataclass(frozen=True)
class Row:
    """One finished run. `seconds` is how long it took, `started` an ISO time; `expect` as asked."""

    sweep: str
    cell: dict[str, Any]
    repetition: int
    engine: str
    run: str | None
    verdict: str
    exit_status: int
    seconds: float
    started: str
    expect: str = "valid"
    figures: dict[str, float | None] = field(default_factory=dict)
    anomalies: list[str] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, int, str]:
        """What tells runs of a sweep apart."""
        return json.dumps(self.cell, sort_keys=True), self.repetition, self.engine

    @property
    def as_expected(self) -> bool:
        """Whether the run ended in a verdict, and in the one that was asked for."""
        return self.verdict == self.expect or (
            self.expect == "any" and self.verdict in ("valid", "invalid")
        )


class Index:
    """The index in the folder of a sweep."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / FILE_NAME

    def rows(self) -> dict[tuple[str, int, str], Row]:
        """The newest row of each run."""
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            return {}
        rows = [row for line in lines if (row := _parsed(line)) is not None]
        return {row.key: row for row in rows}

    def add(self, row: Row) -> None:
        """Append a row in one write (`RunFailure` when the disk is full)."""
        line = json.dumps(asdict(row)).encode() + b"\n"
        try:
            with self.path.open("ab+") as file:
                if file.tell() and not _ends_whole(file):
                    line = b"\n" + line
                if os.write(file.fileno(), line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
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


def _ends_whole(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")


def _parsed(line: bytes) -> Row | None:
    try:
        content = json.loads(line)
        return Row(
            **{each.name: content[each.name] for each in fields(Row) if each.name in content}
        )
    except (ValueError, TypeError):
        return None
