"""The index in the folder of a sweep, as the sweep that writes it sees it: see `runs.sweeps`."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click

from bench.failure import unwritable
from runs import sweeps
from runs.files import SWEEP_INDEX
from runs.sweeps import Key, Row


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
