"""The lake that a notebook reads."""

import os
from dataclasses import dataclass, fields
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from analysis.lake import Lake
from analysis.spark import ROOT, start

LAKE, MASTER = "LEADERLESS_LAKE", "LEADERLESS_MASTER"  # environment variables
REFERENCE = ROOT / "results" / "reference"
CONDITIONS = ("workload", "engine", "node_count", "concurrency", "rate_hz", "latency_ms")
UNKNOWN: dict[str, bool | float | int | str] = {
    "workload": "an unknown workload",
    "program": "an unnamed program",
}


@dataclass(frozen=True)
class Tables:
    """Tables of a lake, or of some of its runs. In each, `workload` and `program` are never null."""

    runs: DataFrame
    operations: DataFrame
    messages: DataFrame
    faults: DataFrame
    anomalies: DataFrame
    figures: DataFrame

    def where(self, condition: str | Column) -> "Tables":
        """The tables of those runs that a condition on `runs` (such as SQL) holds for."""
        return self._of(self.runs.filter(condition))

    def alike(self, condition: str) -> "Tables":
        """As `where`, but only the runs under those conditions that most programs of a workload share.

        So no program looks quick because it alone also ran on a quicker network.
        """
        chosen = self.runs.filter(condition).alias("run")
        programs, runs = F.count_distinct("program").alias("programs"), F.count("*").alias("runs")
        counts = chosen.groupBy(*CONDITIONS).agg(programs, runs)
        first = Window.partitionBy("workload").orderBy(
            F.desc("programs"), F.desc("runs"), *CONDITIONS
        )
        most = counts.withColumn("place", F.row_number().over(first)).filter("place = 1")
        equal = (F.col(f"run.{name}").eqNullSafe(F.col(f"most.{name}")) for name in CONDITIONS)
        same = reduce(Column.__and__, equal)
        return self._of(chosen.join(most.alias("most"), same, "left_semi"))

    def _of(self, runs: DataFrame) -> "Tables":
        names = F.broadcast(runs.select("run_id"))
        others = [each.name for each in fields(self) if each.name != "runs"]
        return Tables(
            runs,
            **{name: getattr(self, name).join(names, "run_id", "left_semi") for name in others},
        )


def open_lake(folder: str | None = None) -> Tables:
    """The tables of a lake, kept in memory from their first use on; starts Spark.

    Args:
        folder: a lake or a packed one, a path or a URI. By default what the environment variable
            LEADERLESS_LAKE names, else the reference results of this repository.
    The Spark master is that of LEADERLESS_MASTER, by default this machine.
    """
    master = os.environ.get(MASTER, "local[*]")
    spark = SparkSession.getActiveSession() or start(master, brief=True)
    return tables_of(spark, folder or os.environ.get(LAKE) or str(REFERENCE))


def tables_of(spark: SparkSession, folder: str) -> Tables:
    """The tables of a lake, packed or not."""
    lake = Lake(folder)
    names = [each.name for each in fields(Tables)]
    return Tables(*(lake.table(spark, name).fillna(UNKNOWN).cache() for name in names))
