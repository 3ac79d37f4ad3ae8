"""The lake: Parquet tables in a folder (local, `hdfs://`, `s3a://`), in which each run counts once.

    lake/operations/run_id=R/version=V/part-*.parquet      and so for every table but
    lake/runs/run_id=R/part-*.parquet                      the one row of a run, which names its version
    lake/_lake.json                                        the version of the tables

A version is the state of a run's files and of the tables. Spark overwrites only the folders for which it has
rows (`partitionOverwriteMode=dynamic`), so twice is once. `runs` is written last: until then an ingest shows
nothing. `Lake.table` keeps the rows whose run and version are in `runs`, so it sees neither what a killed
ingest left nor an older version of a run. `delete_leftovers` removes both.

A packed lake has one file for each table, `lake/runs.parquet` and so on (`analysis.packed`).

Not a guarantee: while a run is replaced, readers may miss it; and readers without that join may read more.
"""

import json
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analysis.errors import AnalysisError
from analysis.hadoop import Files, location
from analysis.rows import TABLES_VERSION
from analysis.schemas import TABLES, whole
from runs.files import LAKE

LEFTOVER_AGE_MS = 24 * 3600 * 1000  # what is younger may belong to an ingest that is under way
RUN = ["run_id", "version"]
PACKED = "{}.parquet"  # a table of a packed lake


@dataclass(frozen=True)
class Lake:
    """Reads and writes the tables under `folder`, a local path or a URI."""

    folder: str | Path

    def open(self, spark: SparkSession) -> None:
        """Make the lake if it is not there. Raises `AnalysisError` if it has tables of another version."""
        files = Files(spark)
        if files.exists(self._at("runs")):
            self._require_version(files)
            return
        self.mark(files)
        for name in TABLES:  # `runs` last: with it the lake is there
            files.make_folder(self._at(name))

    def mark(self, files: Files) -> None:
        """Say in a file of its own which version the tables have."""
        files.write(self._at(LAKE), json.dumps({"tables": TABLES_VERSION}).encode())

    def _require_version(self, files: Files) -> None:
        mark = self._at(LAKE)
        if not any(map(files.exists, (self._at("runs"), self._at(PACKED.format("runs"))))):
            raise AnalysisError(f"there is no lake in {self.folder}; ingest runs into it first")
        found = json.loads(files.read_text(mark))["tables"] if files.exists(mark) else None
        if found != TABLES_VERSION:
            raise AnalysisError(
                f"the lake {self.folder} has tables of another version; ingest again into another folder"
            )

    def held(self, spark: SparkSession) -> dict[str, tuple[str, str]]:
        """The version of each run in the lake, and where it was read from."""
        rows = self._read(spark, "runs").select(*RUN, "source").collect()
        return {row.run_id: (row.version, row.source) for row in rows}

    def table(self, spark: SparkSession, name: str, run_ids: Sequence[str] = ()) -> DataFrame:
        """A table, of some runs or (by default) of all, with the columns `KEYS` first.

        Raises:
            AnalysisError: the lake holds none of these runs, or is of another version.
        """
        self._require_version(Files(spark))
        runs, table = self._read(spark, "runs"), self._read(spark, name)
        if run_ids:
            runs, table = (each.filter(F.col("run_id").isin(*run_ids)) for each in (runs, table))
        if runs.isEmpty():
            asked = ", ".join(run_ids) or "any run"
            raise AnalysisError(f"the lake {self.folder} does not hold {asked}; ingest it first")
        return table.join(F.broadcast(runs.select(*RUN)), RUN, "left_semi")

    def _read(self, spark: SparkSession, name: str) -> DataFrame:
        packed = self._at(PACKED.format(name))
        path = packed if Files(spark).exists(packed) else self._at(name)
        # Spark would read a version such as 1e5 as a number: the schema says it is text.
        return spark.read.schema(whole(name)).parquet(path).select(*whole(name).names)

    def write(self, name: str, frame: DataFrame) -> None:
        """Write a table of some runs, in place of what was there of these versions of them."""
        parts = RUN[:1] if name == "runs" else RUN
        columns = [F.col(field.name).cast(field.dataType) for field in whole(name)]
        writer = frame.select(columns).write.mode("overwrite").partitionBy(*parts)
        writer.option("partitionOverwriteMode", "dynamic").parquet(self._at(name))

    def delete_leftovers(
        self, spark: SparkSession, replaced: Collection[str], min_age_ms: int = LEFTOVER_AGE_MS
    ) -> None:
        """Remove versions that do not count: those of `replaced` runs, and others unless they are young."""
        files, held = Files(spark), self.held(spark)
        for name in TABLES:
            if name == "runs":
                continue
            for path, changed_ms in files.found(self._at(name, "run_id=*", "version=*")):
                run_id, version = (part.partition("=")[2] for part in path.split("/")[-2:])
                counts = run_id in held and held[run_id][0] == version
                is_old = time.time_ns() // 10**6 - changed_ms >= min_age_ms
                if not counts and (run_id in replaced or is_old):
                    files.delete(path)

    def _at(self, *names: str) -> str:
        return "/".join((location(self.folder), *names))
