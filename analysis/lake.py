"""The lake: Parquet tables in a folder (local, `hdfs://`, `s3a://`), in which each run counts once.

    lake/operations/run_id=R/version=V/part-*.parquet      and so for every table but
    lake/runs/run_id=R/part-*.parquet                      the one row of a run, which names its version

A version is that of the tables and the state of a run's files. Spark overwrites only the folders for which it
has rows (`partitionOverwriteMode=dynamic`), so twice is once. `runs` is written last: until then an ingest
shows nothing. `Lake.table` keeps the rows whose run and version are in `runs`, so it sees neither what a killed
ingest left nor an older version of a run. `delete_leftovers` removes both.

A packed lake has one file for each table, `lake/runs.parquet` and so on.

Not a guarantee: while a run is replaced, readers may miss it; and readers without that join may read more.

An ingest is one task for each run, which reads its files twice and keeps none (`analysis.rows`).

`copy` writes a lake into few files, for reading. A *lean* copy is small enough to be kept beside source code.
Of messages it keeps who sent what to whom, in answer to what: not when, and of their bodies only the code of
an error. Of runs it keeps their settings, but not the options as they were written, and of where they lay
only the last folder: paths of the machine stay private.
"""

import io
import re
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import AnalysisException, PySparkAttributeError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StructField, StructType

from analysis.errors import AnalysisError
from analysis.finding import FoundRun, is_local, location
from analysis.rows import TABLES_VERSION, read, version_of
from analysis.schemas import KEYS, LONG, TABLES, TEXT, struct, whole
from runs.operations import SHARES, Row

LEFTOVER_AGE_MS = 24 * 3600 * 1000  # what is younger may belong to an ingest that is under way
RUN = ["run_id", "version"]
PACKED = "{}.parquet"  # a table of a packed lake
_OF_VERSION = re.compile(r"/(\w+)/run_id=([\w.-]+)/version=([\w.-]+)/[^/]+$")


@dataclass(frozen=True)
class Lake:
    """Reads and writes the tables under `folder`, a local path or a URI."""

    folder: str | Path

    def held(self, spark: SparkSession) -> dict[str, tuple[str, str]]:
        """The version of each run in the lake, and where it was read from. Raises as `table`."""
        rows = self._read(spark, "runs").select(*RUN, "source").collect()
        self._require_version(rows)
        return {row.run_id: (row.version, row.source) for row in rows}

    def _require_version(self, runs: Sequence[Any]) -> None:
        """Raises `AnalysisError` if a row of `runs` is of other tables; those of a lake are all alike."""
        if any(row.version.partition("-")[0] != str(TABLES_VERSION) for row in runs):
            raise AnalysisError(
                f"the lake {self.folder} has tables of another version; ingest again into another folder"
            )

    def table(self, spark: SparkSession, name: str, run_ids: Sequence[str] = ()) -> DataFrame:
        """A table, of some runs or (by default) of all, with the columns `KEYS` first.

        Raises:
            AnalysisError: the lake holds none of these runs, or is of another version.
        """
        runs, table = self._read(spark, "runs"), self._read(spark, name)
        if run_ids:
            runs, table = (each.filter(F.col("run_id").isin(*run_ids)) for each in (runs, table))
        one = runs.select("version").take(1)
        self._require_version(one)
        if not one:
            asked = ", ".join(run_ids) or "any run"
            raise AnalysisError(
                f"there is no lake in {self.folder}, or it does not hold {asked}: ingest that first"
            )
        return table.join(F.broadcast(runs.select(*RUN)), RUN, "left_semi")

    def _read(self, spark: SparkSession, name: str) -> DataFrame:
        """A table as it stands; empty where none was written yet."""
        columns = whole(name)
        for path in (self._at(PACKED.format(name)), self._at(name)):
            # Spark would read a version such as 1e5 as a number: the schema says it is text.
            with _perhaps_absent():
                found = spark.read.schema(columns).parquet(path).select(*columns.names)
                found.columns  # noqa: B018 - a session of Spark Connect looks for the path here
                return found
        return spark.createDataFrame([], columns)

    def write(self, name: str, frame: DataFrame) -> None:
        """Write a table of some runs, in place of what was there of these versions of them."""
        parts = RUN[:1] if name == "runs" else RUN
        columns = [F.col(field.name).cast(field.dataType) for field in whole(name)]
        frame.select(columns).write.mode("overwrite").partitionBy(*parts).option(
            "partitionOverwriteMode", "dynamic"
        ).parquet(self._at(name))

    def delete_leftovers(
        self, spark: SparkSession, replaced: Collection[str], min_age_ms: int = LEFTOVER_AGE_MS
    ) -> None:
        """Remove versions that do not count: those of `replaced` runs, and others unless they are young."""
        held, newest_ms = self.held(spark), dict[tuple[str, ...], int]()
        files = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        changed = F.unix_millis("modificationTime").alias("changed_ms")
        with _perhaps_absent():
            rows = files.load(self._at()).select("path", changed).collect()
            newest_ms = {
                found.groups(): row.changed_ms
                for row in sorted(rows, key=lambda row: row.changed_ms)
                if (found := _OF_VERSION.search(row.path))
            }
        for (name, run_id, version), changed_ms in newest_ms.items():
            counts = run_id in held and held[run_id][0] == version
            is_old = time.time_ns() // 10**6 - changed_ms >= min_age_ms
            if not counts and (run_id in replaced or is_old):
                self._delete(spark, name, run_id, version)

    def _delete(self, spark: SparkSession, name: str, run_id: str, version: str) -> None:
        """Overwrite a version with nothing: so Spark deletes its folder, in any file system."""
        its = spark.read.schema(whole(name)).parquet(self._at(name))
        its.createOrReplaceTempView("leftover")
        nothing = ", ".join(["null"] * (len(its.columns) - len(RUN)))
        spark.sql(
            f"INSERT OVERWRITE leftover PARTITION (run_id = '{run_id}', version = '{version}')"
            f" SELECT {nothing} WHERE false"
        )

    def _at(self, *names: str) -> str:
        return "/".join((location(self.folder), *names))


@contextmanager
def _perhaps_absent() -> Iterator[None]:
    """Leave the block where a path is not there."""
    try:
        yield
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise


# ---------------------------------------------------------------- ingest

JOB_RUNS = 500  # so that an ingest that is interrupted goes on there
BATCH_ROWS = 2_000
# The number of a run, or a file of a run that no local path leads to.
FOUND = struct(id=LONG, path=TEXT, content=BinaryType())
# A row of one of the tables: the others are null. (`faults` is a key and a table.)
ROW = StructType([*KEYS, *(StructField(f"_{name}", table) for name, table in TABLES.items())])
_LOOK_S = 0.3

Tell = Callable[[int], None]


@dataclass(frozen=True)
class Ingested:
    """What became of one run: `fresh` is false when the lake already held it as it is now."""

    run: FoundRun
    fresh: bool


def ingest(
    spark: SparkSession, lake: Lake, runs: Sequence[FoundRun], tell: Tell = lambda _: None
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
    held = lake.held(spark)
    sources = {run_id: source for run_id, (_, source) in held.items()}
    for run in runs:
        if sources.setdefault(run.run_id, run.folder) != run.folder:
            raise AnalysisError(
                f"the lake {lake.folder} already has a run {run.run_id}, read from"
                f" {sources[run.run_id]}\n"
                f"Rename {run.folder}, or ingest it into a lake of its own (--lake)."
            )
    fresh = [run for run in runs if held.get(run.run_id) != (version_of(run), run.folder)]
    names = {run.run_id for run in fresh}
    yield from (Ingested(run, fresh=False) for run in runs if run.run_id not in names)
    for start in range(0, len(fresh), JOB_RUNS):
        batch = sorted(
            fresh[start : start + JOB_RUNS],
            key=lambda run: (is_local(run.folder), sum(f.size_bytes for f in run.files)),
            reverse=True,
        )
        with _told(spark, tell, len(runs) - len(fresh) + start):
            _write(spark, lake, batch)
        yield from (Ingested(run, fresh=True) for run in batch)
    lake.delete_leftovers(spark, names)


@contextmanager
def _told(spark: SparkSession, tell: Tell, before: int) -> Iterator[None]:
    """While the block runs, tell how many tasks of its first stage are done, and with them runs."""
    over = threading.Event()

    def watch() -> None:
        done = 0
        while not over.wait(_LOOK_S):
            # Spark Connect has no tracker.
            with suppress(Py4JError, OSError, PySparkAttributeError):
                tracker = spark.sparkContext.statusTracker()
                stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
                done = max([done, *(each.numCompletedTasks for each in stages if each)])
                tell(before + done)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _write(spark: SparkSession, lake: Lake, runs: Sequence[FoundRun]) -> None:
    told = _found(spark, runs).mapInArrow(lambda found: _batches(runs, found), ROW)
    told.persist(StorageLevel.DISK_ONLY)
    for name in TABLES:  # `runs` is the last: it makes a version count
        its = told.filter(F.col(f"_{name}").isNotNull())
        lake.write(name, its.select(*KEYS.names, f"_{name}.*"))
    told.unpersist()


def _found(spark: SparkSession, runs: Sequence[FoundRun]) -> DataFrame:
    """A row for each run here, each a task; of runs elsewhere the files, those of a run in one task.

    `runs` begins with those that are here.
    """
    count = sum(is_local(run.folder) for run in runs)
    rows = spark.range(0, count, 1, count or 1).select(
        "id", *(F.lit(None).cast(each.dataType).alias(each.name) for each in FOUND.fields[1:])
    )
    away = range(count, len(runs))
    if not away:
        return rows
    numbers = {f"{runs[n].folder}/{file.name}": n for n in away for file in runs[n].files}
    named = spark.createDataFrame([*numbers.items()], "path string, id long")
    files = spark.read.format("binaryFile").load([*numbers]).join(F.broadcast(named), "path")
    return rows.union(files.select(*FOUND.names).repartition(len(away), "id"))


def _batches(runs: Sequence[FoundRun], found: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All rows of the runs that were found; files from elsewhere are kept in a folder meanwhile."""
    _pass_over_pandas()
    with TemporaryDirectory(prefix="runs-") as folder:
        places: dict[int, Path] = {}
        for row in (row for batch in found for row in batch.to_pylist()):
            run = runs[row["id"]]
            if row["content"] is None:
                places[row["id"]] = Path(run.folder)
            else:
                # Folders above tell the workload and the program.
                place = Path(folder, run.run_id, *run.folder.split("/")[-3:])
                file = place / row["path"].removeprefix(f"{run.folder}/")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(row["content"])
                places[row["id"]] = place
        for number, place in places.items():
            yield from _of_run(runs[number], place)


def _pass_over_pandas() -> None:
    """Let pyarrow make its first array: it would import pandas for it, which takes 44 MB and a second."""
    if "pandas" not in sys.modules:
        sys.modules["pandas"] = None  # type: ignore[assignment]
        with suppress(ImportError, AttributeError):
            pa.array([None])
        del sys.modules["pandas"]


def _of_run(run: FoundRun, place: Path) -> Iterator[pa.RecordBatch]:
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


# ---------------------------------------------------------------- packed

# Rows in this order: similar rows stand together and compress well.
_ORDER = {
    "operations": ["run_id", "invoked_index"],
    "messages": ["run_id", "link", "type", "src", "dest", "message_id"],
    "faults": ["run_id", "started_ns", "kind"],
    "anomalies": ["run_id", "type", "number"],
    "figures": ["run_id", "figure", "of"],
    "quarantine": ["run_id", "file", "line"],
    "runs": ["run_id"],
}


def copy(spark: SparkSession, lake: Lake, folder: str | Path, *, lean: bool) -> None:
    """Write the tables of a lake into a folder or URI, in place of those that are there.

    A lean copy goes through this process and into one file a table: the same lake gives the same bytes.

    Raises:
        AnalysisError: a lean copy is to be at a URI; or as `Lake.table`.
    """
    if lean and not is_local(folder):
        raise AnalysisError(
            f"pack writes into a folder here, and {folder} is a URI: pack, then copy"
        )
    for name in TABLES:
        table, at = lake.table(spark, name), f"{location(folder)}/{PACKED.format(name)}"
        if lean:
            columns = [F.col(each.name).cast(each.dataType) for each in whole(name)]
            ordered = _lean(name, table).select(columns).orderBy(*_ORDER[name])
            Path(folder).mkdir(parents=True, exist_ok=True)
            Path(folder, PACKED.format(name)).write_bytes(_parquet(ordered.toArrow()))
        else:
            spread = table.hint("rebalance").sortWithinPartitions(*_ORDER[name])
            spread.write.mode("overwrite").parquet(at)


def _lean(name: str, table: DataFrame) -> DataFrame:
    if name == "runs":
        folder = F.regexp_extract("source", "[^/]*$", 0)
        return table.withColumns({"source": folder, "options_json": F.lit(None)})
    if name != "messages":
        return table
    nothing = {column: F.lit(None) for column in ("sent_ns", "received_ns", "latency_ns")}
    code = F.get_json_object("body_json", "$.code").cast("int")
    error = F.when(F.col("type") == "error", F.to_json(F.struct(code.alias("code"))))
    return table.withColumns(nothing | {"body_json": error})


def _parquet(table: pa.Table) -> bytes:
    """Whole numbers by their differences, all else by a dictionary."""
    numbers = [field.name for field in table.schema if pa.types.is_integer(field.type)]
    others = [field.name for field in table.schema if field.name not in numbers]
    content = io.BytesIO()
    pq.write_table(
        table.replace_schema_metadata(None),
        content,
        compression="zstd",
        compression_level=19,
        use_dictionary=others,
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        write_statistics=False,
        store_schema=False,
    )
    return content.getvalue()


# ---------------------------------------------------------------- quantiles

EXACT = 1_000_000  # of `percentile_approx`: below so many values it errs by none


def quantiles(column: str) -> list[Column]:
    """Aggregates `{column}_p50`, `_p90`, `_p99` and `_max`, each a value that occurred."""
    shares = [
        F.percentile_approx(column, share, EXACT).alias(f"{column}_{name}")
        for name, share in SHARES.items()
    ]
    return [*shares, F.max(column).alias(f"{column}_max")]
