"""Which folders of a store are runs, and which of its files may be shown.

A store is a folder with runs somewhere below it: this bench's `results`, a sweep, a store of the
real tool. A run is known by one of the files that either tool leaves, so that one which was killed
early, or still goes on, is one too.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.sources import HISTORIES, JOURNALS, OPTIONS, STRIPES

RESULTS = ("results.json", "results.edn")  # the first is the quicker to read
SWEEP_INDEX = "index.jsonl"
NODE_LOGS = "node-logs"
JEPSEN_LOG = "jepsen.log"
_SIGNS = frozenset((*HISTORIES, *RESULTS, *JOURNALS, OPTIONS, JEPSEN_LOG))
_LAKE = "_commits"  # a folder with this one is a lake: thousands of files, no run


@dataclass(frozen=True)
class Folder:
    """A run: where it is, and its name in the store (`kafka/20261121T100709.972`)."""

    path: Path
    name: str
    sweep: str | None = None  # the name of the sweep it is part of

    def first(self, names: Sequence[str]) -> Path | None:
        """The first of these files that is there."""
        return next((self.path / name for name in names if (self.path / name).is_file()), None)

    @property
    def history(self) -> Path | None:
        return self.first(HISTORIES)

    @property
    def journal(self) -> list[Path]:
        """One file of JSON lines, or the Fressian stripes, or nothing."""
        lines = self.first(JOURNALS)
        return [lines] if lines else sorted(self.path.glob(f"{STRIPES}/*.fressian"))

    @property
    def logs(self) -> list[Path]:
        """Logs of nodes, in the order of their names, and the real tool's own."""
        found = sorted((self.path / NODE_LOGS).glob("*.log"), key=_natural)
        return [file for file in (*found, self.path / JEPSEN_LOG) if file.is_file()]

    def fingerprint(self) -> str:
        """Changes when a file that is read changes in name, size or time of change."""
        singles = [self.first([name]) for name in (*HISTORIES, *RESULTS, OPTIONS)]
        facts = []
        for file in (*filter(None, singles), *self.journal):
            try:
                stat = file.stat()
            except OSError:  # it went away meanwhile
                continue
            facts.append(f"{file.name} {stat.st_size} {stat.st_mtime_ns}")
        return ";".join(facts)

    def changed_s(self) -> float:
        """When a file of the run last changed, in seconds of Unix time."""
        times = []
        for file in (self.path, self.history, *self.journal, *self.logs):
            try:
                times.append(file.stat().st_mtime if file else 0.0)
            except OSError:
                continue
        return max(times, default=0.0)


@dataclass(frozen=True)
class Store:
    """The folder that is shown. Nothing outside it ever is."""

    root: Path

    def runs(self) -> list[Folder]:
        """All runs, newest name first; links (`latest`) are not followed, so that each counts once."""
        return sorted(self._walk(self.root.resolve(), None), key=_newest_first, reverse=True)

    def run(self, name: str) -> Folder | None:
        """The run of this name, which may go through a link inside the store; None if there is none."""
        path = self.inside(name)
        if path is None or not is_run(path):
            return None
        return Folder(path, self._name(path), self._sweep_of(path))

    def sweep(self, name: str) -> Path | None:
        """The folder of the sweep of this name; None if there is none."""
        path = self.inside(name)
        return path if path and (path / SWEEP_INDEX).is_file() else None

    def file(self, name: str) -> Path | None:
        """A regular file of a run, by its name in the store; None for anything else."""
        path = self.inside(name)
        if path is None or not path.is_file():
            return None
        owner = next(
            (folder for folder in (path.parent, path.parent.parent) if is_run(folder)), None
        )
        return path if owner and owner.is_relative_to(self.root.resolve()) else None

    def inside(self, name: str) -> Path | None:
        """Where `name` leads, all links followed, if that exists and is inside the store."""
        root = self.root.resolve()
        try:
            path = (root / name).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):  # not there, a null byte, a loop of links
            return None
        hidden = any(part.startswith(".") for part in path.parts[len(root.parts) :])
        return path if path.is_relative_to(root) and not hidden else None

    def _walk(self, folder: Path, sweep: str | None) -> Iterator[Folder]:
        try:
            with os.scandir(folder) as found:
                entries = list(found)
        except OSError:
            return
        names = {entry.name for entry in entries}
        if names & _SIGNS:
            yield Folder(folder, self._name(folder), sweep)
            return
        if _LAKE in names:
            return
        if SWEEP_INDEX in names:
            sweep = self._name(folder)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                yield from self._walk(Path(entry.path), sweep)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root.resolve()).as_posix()

    def _sweep_of(self, path: Path) -> str | None:
        root = self.root.resolve()
        above = [folder for folder in path.parents if folder.is_relative_to(root)]
        return next((self._name(each) for each in above if (each / SWEEP_INDEX).is_file()), None)


def is_run(folder: Path) -> bool:
    """Whether a run left its files here."""
    try:
        with os.scandir(folder) as entries:
            return any(entry.name in _SIGNS for entry in entries)
    except OSError:
        return False


def _newest_first(run: Folder) -> tuple[bool, str, str]:
    """Folders that are named for a time come first, in its order."""
    last = run.path.name
    return (last[:1].isdigit(), last, run.name)


def _natural(file: Path) -> tuple[int, str]:
    return (len(file.name), file.name)  # n2 before n10
