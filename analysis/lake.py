"""The lake: Parquet tables in a folder (local, `hdfs://`, `s3a://`), and a log of commits.

    lake/operations/version=V/run_id=R/part-*.parquet      and so for every table
    lake/_commits/<time>-V.json                            the runs that version V holds
    lake/_staged/V/operations/run_id=R/part-*.parquet      version V while it is written

An ingest writes many runs under one new version, in `_staged`. They become visible together when the file of
their commit appears, in one step; a later commit of a run replaces the earlier. Then the version's folders
move to their place. What a killed ingest leaves is in `_staged`: without a commit `delete_leftovers` removes
it, with one the next ingest moves it. So readers always find whole runs, and twice is once.

Other readers of Parquet need no commits, because they skip `_staged`: they never read a run twice, nor a part
of what was not committed. While a version moves, they may miss tables of its runs (docs/query-the-lake.md).

Not a guarantee: of two ingests of the *same* run at the same time, either may be the one that counts; and a
reader may miss files of a run that is replaced while it reads.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import reduce
from operator import or_
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from analysis.errors import AnalysisError
from analysis.hadoop import Files, location
from analysis.schemas import TABLES
from runs.files import LAKE_COMMITS, LAKE_STAGED

# Part of the fingerprint: raise it when the same files would now give other tables.
TABLES_VERSION = 4
LEFTOVER_AGE_MS = 24 * 3600 * 1000  # what is younger may belong to an ingest that is under way

Write = Callable[[str, DataFrame], None]


@dataclass(frozen=True)
class Held:
    """What the lake holds of one run: where it was read from, and the state of its files then."""

    run_id: str
    source: str
    fingerprint: str


@dataclass(frozen=True)
class Lake:
    """Reads and writes the tables under `folder`, a local path or a URI."""

    folder: str | Path

    def runs(self, spark: SparkSession) -> list[Held]:
        """The runs in the lake, sorted by name."""
        return [held for _, (held, _) in sorted(self._current(spark).items())]

    def table(self, spark: SparkSession, name: str, run_ids: Sequence[str] = ()) -> DataFrame:
        """A table, of some runs or (by default) of all, with the column `run_id` first.

        Raises:
            AnalysisError: the lake holds none of these runs.
        """
        wanted = set(run_ids)
        versions: dict[str, list[str]] = {}
        for run_id, (_, version) in self._current(spark).items():
            if not wanted or run_id in wanted:
                versions.setdefault(version, []).append(run_id)
        if not versions:
            asked = ", ".join(run_ids) or "any run"
            raise AnalysisError(f"the lake {self.folder} does not hold {asked}; ingest it first")
        staged = Files(spark).changed_ms(self._at(LAKE_STAGED)).keys() & versions.keys()
        parts = [self._moved(spark, name, {v: r for v, r in versions.items() if v not in staged})]
        parts += [self._staged(spark, name, version, versions[version]) for version in staged]
        return reduce(DataFrame.unionByName, (part for part in parts if part is not None))

    def _moved(
        self, spark: SparkSession, name: str, versions: dict[str, list[str]]
    ) -> DataFrame | None:
        if not versions:
            return None
        schema = StructType(TABLES[name].fields + _texts("version", "run_id"))
        reader = spark.read.schema(schema).option("basePath", self._at(name))
        read = reader.parquet(*(self._at(name, f"version={version}") for version in versions))
        return read.filter(_held(versions)).select("run_id", *TABLES[name].names)

    def _staged(
        self, spark: SparkSession, name: str, version: str, run_ids: Sequence[str]
    ) -> DataFrame | None:
        """The table of a version that is committed, but was not moved, or not all of it."""
        folder = self._at(LAKE_STAGED, version, name)
        if not Files(spark).exists(folder):
            return self._moved(spark, name, {version: [*run_ids]})
        schema = StructType(TABLES[name].fields + _texts("run_id"))
        read = spark.read.schema(schema).option("basePath", folder).parquet(folder)
        held = read.filter(F.col("run_id").isin([*run_ids]))
        return held.select("run_id", *TABLES[name].names)

    @contextmanager
    def writing(self, spark: SparkSession, runs: Sequence[Held]) -> Iterator[Write]:
        """Gives a function that writes one table of these runs (its frame has `run_id`).

        All of them are committed when the block ends well, and replace what the lake held of them.
        """
        version = uuid.uuid4().hex[:12]

        def write(name: str, frame: DataFrame) -> None:
            columns = [F.col(field.name).cast(field.dataType) for field in TABLES[name]]
            target = frame.select("run_id", *columns).write.partitionBy("run_id")
            target.parquet(self._at(LAKE_STAGED, version, name))

        self.finish(spark)
        replaced = self._current(spark)
        yield write
        commit = {"version": version, "runs": [asdict(held) for held in runs]}
        file = self._at(LAKE_COMMITS, f"{time.time_ns():019d}-{version}.json")
        Files(spark).write_text(file, json.dumps(commit, indent=1) + "\n")
        for held in runs:
            if held.run_id in replaced:
                self._delete_run(spark, replaced[held.run_id][1], held.run_id)
        self._move(spark, version)

    def finish(self, spark: SparkSession) -> None:
        """Do what an ingest that was killed after a commit left undone."""
        staged = Files(spark).changed_ms(self._at(LAKE_STAGED)).keys()
        undone = [version for version in self._committed(spark) if version in staged]
        if undone:
            self._delete_replaced(spark)
        for version in undone:
            self._move(spark, version)

    def _move(self, spark: SparkSession, version: str) -> None:
        """Put the tables of a committed version into their place."""
        files = Files(spark)
        for name in TABLES:
            staged = self._at(LAKE_STAGED, version, name)
            if files.exists(staged):
                files.move(staged, self._at(name, f"version={version}"))
        files.delete(self._at(LAKE_STAGED, version))

    def _delete_replaced(self, spark: SparkSession) -> None:
        current = self._current(spark)
        for version, runs in self._committed(spark).items():
            for held in runs:
                if current[held.run_id][1] != version:
                    self._delete_run(spark, version, held.run_id)

    def delete_leftovers(self, spark: SparkSession, min_age_ms: int = LEFTOVER_AGE_MS) -> None:
        """Remove what no commit names, as killed ingests leave it, unless it is young."""
        files, now_ms = Files(spark), time.time_ns() // 10**6
        committed = {f"version={version}" for _, version in self._current(spark).values()}
        for name in TABLES:
            for version, changed_ms in files.changed_ms(self._at(name)).items():
                if version not in committed and now_ms - changed_ms >= min_age_ms:
                    files.delete(self._at(name, version))
        for version, changed_ms in files.changed_ms(self._at(LAKE_STAGED)).items():
            if f"version={version}" not in committed and now_ms - changed_ms >= min_age_ms:
                files.delete(self._at(LAKE_STAGED, version))

    def _current(self, spark: SparkSession) -> dict[str, tuple[Held, str]]:
        """By name, each run with the version of its latest commit."""
        current: dict[str, tuple[Held, str]] = {}
        for version, runs in self._committed(spark).items():
            current |= {run.run_id: (run, version) for run in runs}
        return current

    def _committed(self, spark: SparkSession) -> dict[str, list[Held]]:
        """The runs of each version, in the order of the commits."""
        files = Files(spark)
        found: dict[str, list[Held]] = {}
        for file in sorted(files.changed_ms(self._at(LAKE_COMMITS))):
            if file.endswith(".json") and not file.startswith("."):
                commit = json.loads(files.read_text(self._at(LAKE_COMMITS, file)))
                found[commit["version"]] = [Held(**run) for run in commit["runs"]]
        return found

    def _delete_run(self, spark: SparkSession, version: str, run_id: str) -> None:
        for name in TABLES:
            Files(spark).delete(self._at(name, f"version={version}", f"run_id={run_id}"))

    def _at(self, *names: str) -> str:
        return "/".join((location(self.folder), *names))


def _texts(*names: str) -> list[StructField]:
    return [StructField(name, StringType()) for name in names]


def _held(versions: dict[str, list[str]]) -> Column:
    """Of all that the versions' folders may hold, the runs that are theirs (a test of partitions)."""
    tests = [
        (F.col("version") == version) & F.col("run_id").isin(run_ids)
        for version, run_ids in versions.items()
    ]
    return reduce(or_, tests)
