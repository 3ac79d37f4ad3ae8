"""Finding the runs under a path: a local folder, or a URI that Spark reaches (`s3a://...`, `hdfs://...`).

A `HadoopPath` is wherever Hadoop's FileSystem reaches: a local folder, `hdfs://`, `s3a://`. Spark reads and
writes tables there by itself; this is for the few small files beside them. Configuration and credentials are
those of the Spark session.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

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


_Found = tuple[dict[str, RunFiles], Iterable[str]]  # runs by folder, and folders with an index


def _found_here(path: Path) -> _Found:
    if not path.exists():
        raise AnalysisError(f"{path} does not exist")
    read = {str(run.path): run.files for run in Store(path).runs()}
    runs = {folder: files for folder, files in read.items() if files.history}
    above = {up for folder in runs for up in list(Path(folder).parents)[: sweeps.DEPTH]}
    return runs, sorted(str(up) for up in above if (up / SWEEP_INDEX).is_file())


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
    indices = sorted(folder for folder, found in folders.items() if SWEEP_INDEX in found)
    return {folder: files for folder, files in runs.items() if files.history}, indices


def _sweep_entries(folders: Iterable[str]) -> Iterator[tuple[str, sweeps.Row]]:
    """The folder of each run that an index in these folders names, and what it says of the run."""
    for folder in folders:
        file = f"{folder}/{SWEEP_INDEX}"
        index = Path(file) if is_local(folder) else HadoopPath(SparkSession.active(), file)
        for row in sweeps.parse(index.read_text()):
            yield f"{folder}/{row.run}", replace(row, sweep=row.sweep or Path(folder).name)


def run_id_of(folder: str | Path) -> str:
    """The run's name in the lake: `kafka-20261120T101500.123` for `results/kafka/20261120T101500.123`.

    A folder whose name is no time stands for itself, as stores with a given name do.
    """
    parent, _, own = str(folder).rpartition("/")
    name = f"{parent.rpartition('/')[2]}-{own}" if time_named(own) else own
    return re.sub(r"[^\w.-]", "_", name)


# ---------------------------------------------------------------- hadoop


def is_local(path: str | Path) -> bool:
    """Whether `path` is one of this machine's own, and not a URI such as `s3a://bucket/runs`."""
    return isinstance(path, Path) or not re.match(r"[a-zA-Z][\w+.-]*:/", path)


def location(path: str | Path) -> str:
    """The path as Spark must be told it: a local one stays local even if the default is HDFS.

    Not percent-encoded: Hadoop takes the text after the scheme as it is.
    """
    return f"file://{Path(path).absolute()}" if is_local(path) else str(path).rstrip("/")


class HadoopPath:
    """A file or folder in a file system that a session knows. `path` is as `location` gives it."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._jvm = cast(Any, spark._jvm)
        self._path = self._jvm.org.apache.hadoop.fs.Path(path)
        self._system = self._path.getFileSystem(spark._jsc.hadoopConfiguration())

    def found(self) -> list[tuple[str, int]]:
        """The paths that fit this one, a pattern with `*`; with the Unix time of their last change in ms."""
        found = self._system.globStatus(self._path) or ()
        return [(str(each.getPath()), each.getModificationTime()) for each in found]

    def read_text(self) -> str:
        with closing(self._system.open(self._path)) as stream:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))

    def write(self, content: bytes) -> None:
        """Write a small file, and the folders above it."""
        with closing(self._system.create(self._path, True)) as stream:
            stream.write(bytearray(content))

    def exists(self) -> bool:
        return bool(self._system.exists(self._path))

    def delete(self) -> None:
        """Remove a file or a folder with all that is in it; nothing happens if it is not there."""
        self._system.delete(self._path, True)
