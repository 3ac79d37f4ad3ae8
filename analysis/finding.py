"""Finding the runs under a path: a local folder, or a URI that Spark reaches (`s3a://...`, `hdfs://...`).

Spark lists and reads what is at a URI, with its own configuration and credentials.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from analysis.errors import AnalysisError
from runs import sweeps
from runs.files import LATEST, STRIPES, SWEEP_INDEX, File, RunFiles, is_read
from runs.store import Store, time_named


@dataclass(frozen=True)
class FoundRun:
    """One run with a history: where it is (an absolute local path, or a URI) and its files.

    `sweep` is what the index of its sweep says of it. `program` is what ran, for runs whose files and sweep
    do not say it.
    """

    run_id: str
    folder: str
    files: RunFiles
    sweep: sweeps.Row | None = field(default=None, hash=False)
    program: str | None = None

    @property
    def cell(self) -> Mapping[str, Any] | None:
        """What its sweep says of it, or else whoever reads it in."""
        named = {"program": self.program} if self.program else None
        return self.sweep.cell if self.sweep else named

    @property
    def history(self) -> File:
        assert self.files.history, "found by its history"
        return self.files.history

    def fingerprint(self) -> str:
        """Changes when a file that is read changes, or what the sweep says of the run."""
        cell = self.sweep and (self.sweep.sweep, self.sweep.cell, self.sweep.repetition)
        facts = f"{self.files.fingerprint()} {cell} {self.program}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]


def find_runs(path: str | Path, program: str | None = None) -> list[FoundRun]:
    """The runs with a history at or below `path`, sorted by folder; links (`latest`) count once.

    For a URI there must be an active Spark session. `program`: see `FoundRun`.

    Raises:
        AnalysisError: there is nothing, or no run, at `path`.
    """
    runs, indices = _found_here(Path(path)) if is_local(path) else _found_by_spark(str(path))
    if not runs:
        raise AnalysisError(
            f"{path} holds no run: there is no history.jsonl or history.edn in it or below it"
        )
    of_sweep = dict(_sweep_entries(indices))
    return [
        FoundRun(run_id_of(folder), folder, files, of_sweep.get(folder), program)
        for folder, files in sorted(runs.items())
    ]


# Runs by folder; folders with an index, and its text.
_Found = tuple[dict[str, RunFiles], Iterable[tuple[str, str]]]


def _found_here(path: Path) -> _Found:
    if not path.exists():
        raise AnalysisError(f"{path} does not exist")
    read = {str(run.path): run.files for run in Store(path).runs()}
    runs = {folder: files for folder, files in read.items() if files.history}
    above = {up for folder in runs for up in list(Path(folder).parents)[: sweeps.DEPTH]}
    indices = (up / SWEEP_INDEX for up in sorted(above))
    return runs, [(str(each.parent), each.read_text()) for each in indices if each.is_file()]


def _found_by_spark(uri: str) -> _Found:
    """Let Spark list what is at a URI: large trees in parallel, without opening a file."""
    files = SparkSession.active().read.format("binaryFile").option("recursiveFileLookup", "true")
    try:
        rows = files.load(uri).select("path", "length", "modificationTime").collect()
    except Exception as error:  # whatever its file system raises, as a Java exception
        raise AnalysisError(f"{uri} cannot be listed: {error}") from error
    folders: dict[str, dict[str, File]] = defaultdict(dict)
    for row in rows:
        folder, _, name = row.path.rpartition("/")
        if is_read(name) and LATEST not in folder.split("/"):
            owner, _, last = folder.rpartition("/")
            if last == STRIPES:
                folder, name = owner, f"{STRIPES}/{name}"
            folders[folder][name] = File(name, row.length, str(row.modificationTime))
    runs = {folder: RunFiles.among(found) for folder, found in folders.items()}
    paths = [f"{each}/{SWEEP_INDEX}" for each in sorted(folders) if SWEEP_INDEX in folders[each]]
    texts = files.load(paths).select("path", "content").collect() if paths else ()
    return {folder: its for folder, its in runs.items() if its.history}, [
        (row.path.rpartition("/")[0], row.content.decode()) for row in texts
    ]


def _sweep_entries(indices: Iterable[tuple[str, str]]) -> Iterator[tuple[str, sweeps.Row]]:
    """The folder of each run that an index names, and what it says of the run."""
    return (
        (f"{folder}/{row.run}", replace(row, sweep=row.sweep or Path(folder).name))
        for folder, text in indices
        for row in sweeps.parse(text)
    )


def run_id_of(folder: str | Path) -> str:
    """The run's name in the lake: `kafka-20261120T101500.123` for `results/kafka/20261120T101500.123`.

    A folder whose name is no time stands for itself, as stores with a given name do.
    """
    parent, _, own = str(folder).rpartition("/")
    name = f"{parent.rpartition('/')[2]}-{own}" if time_named(own) else own
    return re.sub(r"[^\w.-]", "_", name)


# ---------------------------------------------------------------- places


def is_local(path: str | Path) -> bool:
    """Whether `path` is one of this machine's own, and not a URI such as `s3a://bucket/runs`."""
    return isinstance(path, Path) or not re.match(r"[a-zA-Z][\w+.-]*:/", path)


def location(path: str | Path) -> str:
    """The path as Spark must be told it: a local one stays local even if the default is HDFS.

    Not percent-encoded: Hadoop takes the text after the scheme as it is.
    """
    return f"file://{Path(path).absolute()}" if is_local(path) else str(path).rstrip("/")
