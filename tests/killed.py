"""Processes that append, and are killed in the middle of whatever they do."""

import subprocess
from contextlib import suppress

from leaderless import Record
from tests.scripted import ROOT


class Killed:
    """A process that prints KEY OFFSET VALUE for each append; `acknowledged`: what it has said."""

    def __init__(self, *command: str) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        self.acknowledged: list[Record] = []

    def wait_for(self, appends: int) -> None:
        """Return when it has acknowledged so many appends."""
        assert self._process.stdout is not None
        while len(self.acknowledged) < appends:
            self._take(self._process.stdout.readline())

    def kill(self) -> None:
        """Kill it wherever it is, and take what it has said."""
        self._process.kill()
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("\n"):
                self._take(line)
        with suppress(BrokenPipeError):
            self._process.communicate()

    def _take(self, line: str) -> None:
        key, offset, value = line.split()
        self.acknowledged.append(Record(key, int(offset), value))
