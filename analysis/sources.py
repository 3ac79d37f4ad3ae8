"""Finding the runs under a path, and the files of a run.

The path is a local folder or a URI that the Spark session reaches (`s3a://...`, `hdfs://...`).
"""

import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from analysis.errors import AnalysisError
from analysis.files import Files, is_local, location

HISTORIES = ("history.jsonl", "history.jsonl.gz", "history.edn", "history.edn.gz")
RESULTS = ("results.edn", "results.json")
JOURNALS = ("net-journal.jsonl", "net-journal.jsonl.gz")
STRIPES = "net-journal"
OPTIONS = "test.json"
INDEX = "index.jsonl"
LINK = "latest"  # what the benches link their newest run to; a copied store may hold it as a folder
_TIMESTAMP = re.compile(r"\d{8}T\d{6}")
_SWEEP_DEPTH = 4  # a run's folder is at most so deep in its sweep's: cell/store/kafka/time


@dataclass(frozen=True)
class File:
    """A file of a run; `name` is relative to the run's folder."""

    name: str
    size_bytes: int
    modified: str


@dataclass(frozen=True)
class Sweep:
    """What a sweep's index says of one of its runs."""

    name: str
    cell: Mapping[str, Any]
    repetition: int | None


@dataclass(frozen=True)
class Run:
    """The files of one run. Where a run has a file in two forms, the one that Spark reads itself."""

    run_id: str
    folder: str  # an absolute local path, or a URI
    history: File
    results: File | None
    journal: tuple[File, ...]  # one file of JSON lines, or the Fressian stripes, or nothing
    options: File | None
    sweep: Sweep | None = field(default=None, hash=False)

    @property
    def engine(self) -> str:
        """Which tool left it, if its options do not say: only the embedded bench writes them as JSON."""
        return "embedded" if self.options else "jepsen"

    @property
    def files(self) -> list[File]:
        """All files that are read, in a fixed order."""
        single = [self.history, self.results, self.options]
        return [file for file in (*single, *self.journal) if file]

    @property
    def location(self) -> str:
        """The folder as Spark must be told it."""
        return location(self.folder)

    @property
    def size_bytes(self) -> int:
        """Of its history and its journal."""
        return sum(file.size_bytes for file in (self.history, *self.journal))

    def fingerprint(self) -> str:
        """Changes when a file that is read changes in name, size or time of change."""
        facts = repr((self.files, self.sweep))
        return hashlib.sha256(facts.encode()).hexdigest()[:16]


def find_runs(path: str | Path) -> list[Run]:
    """The runs at or below `path`, sorted by name; symbolic links (`latest`) count once.

    For a URI there must be an active Spark session.

    Raises:
        AnalysisError: there is nothing, or no run, at `path`.
    """
    folders = _listed_here(path) if is_local(path) else _listed_by_spark(str(path))
    found = {folder: files for folder, files in folders.items() if _first(files, HISTORIES)}
    if not found:
        raise AnalysisError(
            f"{path} holds no run: there is no history.jsonl or history.edn in it or below it"
        )
    sweeps = _sweeps(folders, found)
    return [_run(folder, files, folders, sweeps.get(folder)) for folder, files in found.items()]


def find_run(folder: str | Path) -> Run:
    """The one run in `folder`.

    Raises:
        AnalysisError: there is none, or several below it.
    """
    runs = find_runs(folder)
    if len(runs) > 1:
        names = ", ".join(run.run_id for run in runs[:3])
        raise AnalysisError(f"{folder} holds {len(runs)} runs ({names}, ...); name one of them")
    return runs[0]


Folders = dict[str, dict[str, File]]  # by folder and name, what is in it


def _listed_here(path: str | Path) -> Folders:
    root = Path(path).resolve()
    if not root.exists():
        raise AnalysisError(f"{path} does not exist")
    folders: Folders = {}
    for folder, names, files in os.walk(root):
        names.sort()
        stats = {name: Path(folder, name).stat() for name in files if _is_read(name)}
        folders[folder] = {
            name: File(name, stat.st_size, str(stat.st_mtime_ns)) for name, stat in stats.items()
        }
    return folders


def _is_read(name: str) -> bool:
    known = (*HISTORIES, *RESULTS, *JOURNALS, OPTIONS, INDEX)
    return name in known or name.endswith(".fressian")


def _listed_by_spark(uri: str) -> Folders:
    """As `_listed_here`; Spark lists large trees in parallel, and opens no file for it."""
    files = SparkSession.active().read.format("binaryFile").option("recursiveFileLookup", "true")
    try:
        rows = files.load(uri).select("path", "length", "modificationTime").collect()
    except Exception as error:  # whatever its file system raises, as a Java exception
        raise AnalysisError(f"{uri} cannot be listed: {error}") from error
    folders: Folders = defaultdict(dict)
    for row in sorted(rows):
        folder, _, name = row.path.rpartition("/")
        if _is_read(name) and LINK not in folder.split("/"):
            folders[folder][name] = File(name, row.length, str(row.modificationTime))
    return folders


def _run(folder: str, files: Mapping[str, File], folders: Folders, sweep: Sweep | None) -> Run:
    history = _first(files, HISTORIES)
    assert history is not None, "found by its history"
    journal = _first(files, JOURNALS)
    stripes = folders.get(f"{folder}/{STRIPES}", {}).values()
    return Run(
        run_id=run_id_of(folder),
        folder=folder,
        history=history,
        results=_first(files, RESULTS),
        journal=(journal,) if journal else tuple(map(_stripe, stripes)),
        options=_first(files, (OPTIONS,)),
        sweep=sweep,
    )


def _stripe(file: File) -> File:
    return File(f"{STRIPES}/{file.name}", file.size_bytes, file.modified)


def _first(files: Mapping[str, File], names: tuple[str, ...]) -> File | None:
    return next((files[name] for name in names if name in files), None)


def _sweeps(folders: Folders, found: Iterable[str]) -> dict[str, Sweep]:
    """What the indices in these folders, or above a local one, say of runs by folder."""
    with_index = {folder for folder, files in folders.items() if INDEX in files}
    for folder in found:
        if is_local(folder):
            above = list(Path(folder).parents)[:_SWEEP_DEPTH]
            with_index |= {str(parent) for parent in above if (parent / INDEX).is_file()}
    sweeps: dict[str, Sweep] = {}
    for folder in sorted(with_index):
        for entry in _index_entries(folder):
            name = str(entry.get("sweep") or Path(folder).name)
            cell, repetition = entry.get("cell"), entry.get("repetition")
            known = cell if isinstance(cell, dict) else {}
            number = repetition if isinstance(repetition, int) else None
            sweeps[f"{folder}/{entry.get('run')}"] = Sweep(name, known, number)
    return sweeps


def _index_entries(folder: str) -> Iterable[Mapping[str, Any]]:
    """The entries of an index. A killed sweep may leave half a line: that run has no entry yet."""
    file = f"{folder}/{INDEX}"
    local = is_local(folder)
    text = Path(file).read_text() if local else Files(SparkSession.active()).read_text(file)
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            yield entry


def run_id_of(folder: str | Path) -> str:
    """The run's name in the lake: `kafka-20261120T101500.123` for `results/kafka/20261120T101500.123`.

    A folder whose name is no time stands for itself, as stores with a given name do.
    """
    parent, _, own = str(folder).rpartition("/")
    name = f"{parent.rpartition('/')[2]}-{own}" if _TIMESTAMP.match(own) else own
    return re.sub(r"[^\w.-]", "_", name)
