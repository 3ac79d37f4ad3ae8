"""Stores of runs: making the folder of a run, and finding the runs below a folder.

A store is any folder with runs somewhere below it: our `results`, a sweep, a store of the real tool.

We make `<workload>/<time>/`, and links `latest` to the newest run. A folder gets a name that no other bench
has, and with the links it is made by one bench at a time, so that several benches can share a store:
`latest` is the run that began last, whatever the clock of the day said.
"""

import fcntl
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import orjson

from runs.files import (
    JEPSEN_LOG,
    LAKE,
    LATEST,
    NODE_LOGS,
    SIGNS,
    SWEEP_INDEX,
    RunFiles,
    files_of,
    is_own,
    own,
)
from runs.writing import write_whole

T = TypeVar("T")
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)")


def utc_now() -> datetime:
    return datetime.now(UTC)


def create_run_dir(store: Path, workload: str, now: datetime) -> Path:
    """Make the folder of a run that begins now, and let the `latest` links point to it.

    Raises `OSError` when the store cannot be written.
    """
    store.mkdir(parents=True, exist_ok=True)
    handle = os.open(store, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system may have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        run_dir = _make_unique(store / workload, now)
        for link in (store / LATEST, store / workload / LATEST):
            _point(link, run_dir)
    finally:
        os.close(handle)
    (run_dir / NODE_LOGS).mkdir()
    return run_dir


def _make_unique(parent: Path, now: datetime) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    while True:
        stamp = now.strftime("%Y%m%dT%H%M%S.") + f"{now.microsecond // 1000:03d}"
        try:
            (parent / stamp).mkdir()
        except FileExistsError:
            now += timedelta(milliseconds=1)
        else:
            return parent / stamp


def _point(link: Path, target: Path) -> None:
    """Make or replace a relative symbolic link in one step.

    Nothing depends on it. Where there can be none (a file system without links, a copied store in
    which it has become a folder), there is none.
    """
    draft = link.with_name(f".{link.name}.{os.getpid()}")
    with suppress(OSError):
        draft.unlink(missing_ok=True)
        draft.symlink_to(os.path.relpath(target, link.parent), target_is_directory=True)
        try:
            draft.replace(link)
        except OSError:
            draft.unlink()


def time_named(folder_name: str) -> str | None:
    """`2026-11-21 10:07:17` for a folder named `20261121T100717.972`; None if it names no time."""
    found = _TIME.match(folder_name)
    return "{}-{}-{} {}:{}:{}".format(*found.groups()) if found else None


@dataclass(frozen=True)
class Folder:
    """A run: where it is, its name in the store (`kafka/20261121T100709.972`), and that of its sweep."""

    path: Path
    name: str
    sweep: str | None = None

    @property
    def files(self) -> RunFiles:
        """Its files as they are now."""
        return files_of(self.path)

    @property
    def history(self) -> Path | None:
        file = self.files.history
        return self.path / file.name if file else None

    @property
    def journal(self) -> list[Path]:
        """One file of JSON lines, or the Fressian stripes, or nothing."""
        return [self.path / file.name for file in self.files.journal]

    @property
    def logs(self) -> list[Path]:
        """Logs of nodes (n2 before n10), and the real tool's own."""
        found = (file.name for file in (self.path / NODE_LOGS).glob("*.log"))
        names = [
            f"{NODE_LOGS}/{name}" for name in sorted(found, key=lambda name: (len(name), name))
        ]
        return [self.path / name for name in (*names, JEPSEN_LOG) if is_own(self.path, name)]

    def changed_s(self) -> float:
        """When a file of the run last changed, in seconds of Unix time."""
        times = []
        for file in (self.path, self.history, *self.journal, *self.logs):
            with suppress(OSError):  # it went away meanwhile
                times.append(file.stat().st_mtime if file else 0.0)
        return max(times, default=0.0)

    def keep(self, file: str, form: int, fingerprint: str, content: Mapping[str, Any]) -> bool:
        """Write what was made of the run's files into its folder; False where that cannot be done.

        Args:
            file: its name.
            form: another number when the same files would now give something else.
            fingerprint: that of the files (`RunFiles`) before they were read.
            content: what was made of them.
        """
        told = {"format": form, "fingerprint": fingerprint, **content}
        try:
            write_whole(self.path / file, [orjson.dumps(told).decode()])
        except OSError:
            return False
        return True

    def kept(self, file: str, form: int, make: Callable[..., T]) -> T | None:
        """What `make` makes of such a file's fields; None without one, or if the run's files have changed."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            told = orjson.loads(own(self.path, file).read_bytes())
            if (told.pop("format"), told.pop("fingerprint")) == (form, self.files.fingerprint()):
                return make(**told)
        return None


@dataclass(frozen=True)
class Store:
    """The runs in and below `root`. Nothing outside it is ever given, whatever links point to."""

    root: Path

    def runs(self) -> list[Folder]:
        """All runs, newest name first. Links (`latest`) are not followed, so that each counts once."""
        return sorted(
            self._walk(self.root.resolve(), None),
            # Folders that are named for a time come first, in its order.
            key=lambda run: (run.path.name[:1].isdigit(), run.path.name, run.name),
            reverse=True,
        )

    def run(self, name: str) -> Folder | None:
        """The run of this name, which may go through a link inside the store; None if there is none."""
        path = self.inside(name)
        if path is None or not is_run(path):
            return None
        root = self.root.resolve()
        above = (each for each in path.parents if each.is_relative_to(root))
        sweep = next((self._name(each) for each in above if (each / SWEEP_INDEX).is_file()), None)
        return Folder(path, self._name(path), sweep)

    def sweep(self, name: str) -> Path | None:
        """The folder of the sweep of this name; None if there is none."""
        path = self.inside(name)
        return path if path and (path / SWEEP_INDEX).is_file() else None

    def file(self, name: str) -> Path | None:
        """A regular file of a run, by its name in the store; None for anything else."""
        path = self.inside(name)
        if path is None or not path.is_file():
            return None
        owner = next(filter(is_run, (path.parent, path.parent.parent)), None)
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
        if names & SIGNS:
            yield Folder(folder, self._name(folder), sweep)
            return
        if LAKE in names:
            return
        if SWEEP_INDEX in names:
            sweep = self._name(folder)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                yield from self._walk(Path(entry.path), sweep)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root.resolve()).as_posix()


def is_run(folder: Path) -> bool:
    """Whether a run left its files in this folder."""
    try:
        with os.scandir(folder) as entries:
            return any(entry.name in SIGNS for entry in entries)
    except OSError:
        return False
