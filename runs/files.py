"""The files that a run leaves, ours and the real tool's: what they are called, and which of them are read.

    history.jsonl      what clients did, written while the run goes on; the real tool has history.edn
    net-journal.jsonl  every message; the real tool has a folder of Fressian stripes, net-journal/
    test.json          the options (ours alone)
    results.json       the verdict and what it rests on; also results.edn
    figures.json       its figures (`runs.figures`)
    findings.json      its anomalies in sentences (`bench.verdict.kept`)
    node-logs/         what nodes wrote to stderr

Where a run has a file in two forms, the JSON one is read: every reader, Spark above all, reads it faster,
and both say the same. Histories and journals may be gzipped. A link that leads out of the run's folder is not
read: a stranger's run would show a file of yours.
"""

import errno
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HISTORY, HISTORY_EDN = "history.jsonl", "history.edn"
HISTORIES = (HISTORY, f"{HISTORY}.gz", HISTORY_EDN, f"{HISTORY_EDN}.gz")
JOURNAL, STRIPES, STRIPE_ENDING = "net-journal.jsonl", "net-journal", ".fressian"
JOURNALS = (JOURNAL, f"{JOURNAL}.gz")
RESULTS_JSON, RESULTS_EDN = "results.json", "results.edn"
RESULTS = (RESULTS_JSON, RESULTS_EDN)
OPTIONS = "test.json"
FIGURES, FINDINGS = "figures.json", "findings.json"
TIMELINE = "timeline.html"
NODE_LOGS, JEPSEN_LOG = "node-logs", "jepsen.log"
SWEEP_INDEX = "index.jsonl"  # in the folder of a sweep
LAKE = "quarantine"  # a table of a lake, whose folder holds thousands of files and no run
LATEST = "latest"  # a link to the newest run; a copied store may hold it as a folder

# A folder with one of these is a run, even one that was killed early or that still goes on.
SIGNS = frozenset((*HISTORIES, *RESULTS, *JOURNALS, OPTIONS, JEPSEN_LOG))


class RunsError(Exception):
    """Something the user can mend: no run at a path, a file that cannot be written.

    The message says what is wrong and what to do.
    """


@dataclass(frozen=True)
class File:
    """A file of a run: its name relative to the run's folder; `modified` changes when the file does."""

    name: str
    size_bytes: int
    modified: str


@dataclass(frozen=True)
class RunFiles:
    """The files of one run that are read; None for one that is not there.

    `journal` is one file of JSON lines, or the Fressian stripes in the order of their names, or empty.
    """

    history: File | None = None
    results: File | None = None
    options: File | None = None
    journal: tuple[File, ...] = ()

    @classmethod
    def among(cls, found: Mapping[str, File]) -> "RunFiles":
        """The files to read of all those in a run's folder, by name; stripes are `net-journal/...`."""
        journal = _first(found, JOURNALS)
        stripes = (found[name] for name in sorted(found) if name.endswith(STRIPE_ENDING))
        return cls(
            _first(found, HISTORIES),
            _first(found, RESULTS),
            _first(found, (OPTIONS,)),
            (journal,) if journal else tuple(stripes),
        )

    def __iter__(self) -> Iterator[File]:
        single = (self.history, self.results, self.options)
        return (file for file in (*single, *self.journal) if file)

    def fingerprint(self) -> str:
        """Changes when a file that is read changes in name, size or time of change."""
        return hashlib.sha256(repr(list(self)).encode()).hexdigest()[:16]


def files_of(folder: Path) -> RunFiles:
    """The files of the run in a folder of this machine; those that vanish meanwhile are left out."""
    return RunFiles.among({each.name: each for each in _scan(folder)})


def is_read(name: str) -> bool:
    """Whether a file of this name is one that `RunFiles` may hold, or a sweep's index."""
    known = (*HISTORIES, *RESULTS, *JOURNALS, OPTIONS, SWEEP_INDEX)
    return name in known or name.endswith(STRIPE_ENDING)


def _first(found: Mapping[str, File], names: Sequence[str]) -> File | None:
    return next((found[name] for name in names if name in found), None)


def _scan(folder: Path) -> Iterator[File]:
    for inside, prefix in ((folder, ""), (folder / STRIPES, f"{STRIPES}/")):
        try:
            with os.scandir(inside) as entries:
                names = [entry.name for entry in entries if is_read(entry.name)]
        except OSError:
            continue
        for name in names:
            try:
                stat = own(folder, prefix + name).stat()
            except OSError:
                continue
            yield File(prefix + name, stat.st_size, str(stat.st_mtime_ns))


def is_own(folder: Path, name: str) -> bool:
    """Whether a run's folder has a regular file of this name, and no link that leads out of the folder."""
    file = folder / name
    return file.is_file() and file.resolve().is_relative_to(folder.resolve())


def own(folder: Path, name: str) -> Path:
    """The file for which `is_own` holds; raises `FileNotFoundError` for any other."""
    if not is_own(folder, name):
        raise FileNotFoundError(errno.ENOENT, "no file of this run", str(folder / name))
    return folder / name


def end_of(file: Path, size_bytes: int) -> str:
    """The last so many bytes of a file, as text (`OSError` when it cannot be read)."""
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - size_bytes))
        return stream.read().decode(errors="replace")
