"""Runs into the lake: each is one task, which reads its files twice and keeps none (`analysis.rows`)."""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StructField, StructType

from analysis.errors import AnalysisError
from analysis.finding import Run
from analysis.hadoop import is_local
from analysis.lake import Lake
from analysis.rows import read, version_of
from analysis.schemas import KEYS, TABLES, TEXT, struct
from runs.traffic import Row

JOB_RUNS = 500  # so that an ingest that is interrupted goes on there
BATCH_ROWS = 2_000
# A run, or a file of a run that no local path leads to.
FOUND = struct(run_id=TEXT, path=TEXT, content=BinaryType())
# A row of one of the tables: the others are null. (`faults` is a key and a table.)
ROW = StructType([*KEYS, *(StructField(f"_{name}", table) for name, table in TABLES.items())])
_LOOK_S = 0.3

Tell = Callable[[int], None]


@dataclass(frozen=True)
class Ingested:
    """What became of one run: `fresh` is false when the lake already held it as it is now."""

    run: Run
    fresh: bool


def ingest(
    spark: SparkSession, lake: Lake, runs: Sequence[Run], tell: Tell = lambda _: None
) -> Iterator[Ingested]:
    """Write all tables of `runs`; each is told when the lake has it.

    Nothing is done about a run that the lake holds, read from the same files, by the same version of
    the tables. A run that changed replaces its former self.

    Args:
        spark: the session.
        lake: made if it is not there.
        runs: from `find_runs`.
        tell: called now and then with the number of runs that have been read.
    Raises:
        AnalysisError: the lake, or another of `runs`, has another run of the same name.
    """
    lake.open(spark)
    held = lake.held(spark)
    _require_distinct(lake, held, runs)
    fresh = [run for run in runs if held.get(run.run_id) != (version_of(run), run.folder)]
    names = {run.run_id for run in fresh}
    yield from (Ingested(run, fresh=False) for run in runs if run.run_id not in names)
    done = len(runs) - len(fresh)
    for start in range(0, len(fresh), JOB_RUNS):
        batch = sorted(fresh[start : start + JOB_RUNS], key=_size_bytes, reverse=True)
        with _told(spark, tell, done + start):
            _write(spark, lake, batch)
        yield from (Ingested(run, fresh=True) for run in batch)
    lake.delete_leftovers(spark, names)


def _require_distinct(lake: Lake, held: Mapping[str, tuple[str, str]], runs: Sequence[Run]) -> None:
    sources = {run_id: source for run_id, (_, source) in held.items()}
    for run in runs:
        if sources.setdefault(run.run_id, run.folder) != run.folder:
            raise AnalysisError(
                f"the lake {lake.folder} already has a run {run.run_id}, read from"
                f" {sources[run.run_id]}\n"
                f"Rename {run.folder}, or ingest it into a lake of its own (--lake)."
            )


def _size_bytes(run: Run) -> int:
    return sum(file.size_bytes for file in run.files)


@contextmanager
def _told(spark: SparkSession, tell: Tell, before: int) -> Iterator[None]:
    """While the block runs, tell how many tasks of its first stage are done, and with them runs."""
    tracker, over = spark.sparkContext.statusTracker(), threading.Event()

    def watch() -> None:
        done = 0
        while not over.wait(_LOOK_S):
            with suppress(Py4JError, OSError):
                stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
                done = max([done, *(each.numCompletedTasks for each in stages if each)])
                tell(before + done)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _write(spark: SparkSession, lake: Lake, runs: Sequence[Run]) -> None:
    by_id = {run.run_id: run for run in runs}
    told = _found(spark, runs).mapInArrow(lambda found: _batches(by_id, found), ROW)
    told.persist(StorageLevel.DISK_ONLY)
    for name in TABLES:  # `runs` is the last: it makes a version count
        its = told.filter(F.col(f"_{name}").isNotNull())
        lake.write(name, its.select(*KEYS.names, f"_{name}.*"))
    told.unpersist()


def _found(spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
    """A row for each run here, each a task; of runs elsewhere the files, those of a run in one task."""
    here = [(run.run_id, None, None) for run in runs if is_local(run.folder)]
    rows = spark.createDataFrame(spark.sparkContext.parallelize(here, len(here) or 1), FOUND)
    away = [run for run in runs if not is_local(run.folder)]
    if not away:
        return rows
    run_ids = {f"{run.folder}/{file.name}": run.run_id for run in away for file in run.files}
    named = spark.createDataFrame([*run_ids.items()], "path string, run_id string")
    files = spark.read.format("binaryFile").load([*run_ids]).join(F.broadcast(named), "path")
    return rows.union(files.select(*FOUND.names).repartition(len(away), "run_id"))


def _batches(runs: Mapping[str, Run], found: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All rows of the runs that were found; files from elsewhere are kept in a folder meanwhile."""
    _pass_over_pandas()
    with TemporaryDirectory(prefix="runs-") as folder:
        places: dict[str, Path] = {}
        for row in (row for batch in found for row in batch.to_pylist()):
            run = runs[row["run_id"]]
            if row["content"] is None:
                places[run.run_id] = Path(run.folder)
            else:
                # Folders above tell the workload and the program.
                place = Path(folder, run.run_id, *run.folder.split("/")[-3:])
                file = place / row["path"].removeprefix(f"{run.folder}/")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(row["content"])
                places[run.run_id] = place
        for run_id, place in places.items():
            yield from _of_run(runs[run_id], place)


def _pass_over_pandas() -> None:
    """Let pyarrow make its first array: it would import pandas for it, which takes 44 MB and a second."""
    if "pandas" not in sys.modules:
        sys.modules["pandas"] = None  # type: ignore[assignment]
        with suppress(ImportError, AttributeError):
            pa.array([None])
        del sys.modules["pandas"]


def _of_run(run: Run, place: Path) -> Iterator[pa.RecordBatch]:
    keys, rows = read(run, place)
    waiting: dict[str, list[Row]] = {name: [] for name in TABLES}
    for name, row in rows:
        waiting[name].append(row)
        if len(waiting[name]) == BATCH_ROWS:
            yield _batch(keys, name, waiting[name])
            waiting[name] = []
    yield from (_batch(keys, name, its) for name, its in waiting.items() if its)


def _batch(keys: Row, name: str, rows: Sequence[Row]) -> pa.RecordBatch:
    schema = to_arrow_schema(ROW)
    columns = [
        pa.array(rows, each.type)
        if each.name == f"_{name}"
        else pa.repeat(pa.scalar(keys.get(each.name), each.type), len(rows))
        for each in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
