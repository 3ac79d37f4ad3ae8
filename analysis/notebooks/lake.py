"""The lake that a notebook reads."""

import os
from dataclasses import dataclass, fields
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from analysis.hadoop import is_local
from analysis.lake import Lake
from analysis.packed import Packed, is_packed
from analysis.spark import start

LAKE, MASTER = "LEADERLESS_LAKE", "LEADERLESS_MASTER"  # environment variables
REFERENCE = Path(__file__).parents[2] / "results" / "reference"
UNNAMED = "another program"
CONDITIONS = ("engine", "workload", "node_count", "concurrency", "rate_hz", "latency_ms")


@dataclass(frozen=True)
class Tables:
    """Tables of a lake, or of some of its runs.

    `runs` has two more columns to group by: `strategy`, which is never null here, and `weather`: the
    faults that were asked for, in words ("none", "kill", "kill, pause").
    """

    runs: DataFrame
    operations: DataFrame
    messages: DataFrame
    faults: DataFrame
    anomalies: DataFrame

    def where(self, condition: str | Column) -> "Tables":
        """The tables of those runs that a condition on `runs` (such as SQL) holds for."""
        chosen = self.runs.filter(condition)
        names = chosen.select("run_id")
        others = [field.name for field in fields(self) if field.name != "runs"]
        parts = {name: getattr(self, name).join(F.broadcast(names), "run_id") for name in others}
        return Tables(runs=chosen, **parts)

    def alike(self, condition: str) -> "Tables":
        """As `where`, but only the runs under those conditions that most strategies share.

        So no strategy looks quick because it alone also ran on a quicker network.
        """
        chosen = self.where(condition)
        strategies, runs = (
            F.count_distinct("strategy").alias("strategies"),
            F.count("*").alias("runs"),
        )
        counts = chosen.runs.groupBy(*CONDITIONS).agg(strategies, runs)
        most = counts.orderBy(F.desc("strategies"), F.desc("runs"), *CONDITIONS).first()
        equal = [F.col(name).eqNullSafe(most[name]) for name in CONDITIONS if most]
        return chosen.where(reduce(Column.__and__, equal)) if equal else chosen

    def named(self, metric: DataFrame) -> DataFrame:
        """A metric with the strategy and the weather of each run, in front."""
        names = self.runs.select("run_id", "strategy", "weather")
        rest = [F.col(column) for column in metric.columns if column != "run_id"]
        return metric.join(F.broadcast(names), "run_id").select(
            "strategy", "weather", "run_id", *rest
        )

    def grouped(self, table: DataFrame) -> DataFrame:
        """A table in which all runs of a strategy and a weather are one: `run_id` names the group.

        Not for messages: the numbers of calls are unique in their run only.
        """
        names = self.runs.select("run_id", _group().alias("_group"))
        joined = table.join(F.broadcast(names), "run_id").drop("run_id")
        return joined.withColumnRenamed("_group", "run_id")

    def group_named(self, metric: DataFrame) -> DataFrame:
        """As `named`, for a metric of a `grouped` table."""
        names = self.runs.select(_group().alias("run_id"), "strategy", "weather").distinct()
        return metric.join(F.broadcast(names), "run_id").select(
            "strategy", "weather", *(name for name in metric.columns if name != "run_id")
        )


def _group() -> Column:
    return F.concat_ws(" / ", "strategy", "weather")


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
    lake = Packed(folder) if is_local(folder) and is_packed(Path(folder)) else Lake(folder)
    names = [field.name for field in fields(Tables)]
    tables = {name: lake.table(spark, name) for name in names}
    tables["runs"] = tables["runs"].select(
        *(column for column in tables["runs"].columns if column != "strategy"),
        F.coalesce("strategy", F.lit(UNNAMED)).alias("strategy"),
        F.when(F.coalesce(F.size("faults"), F.lit(0)) > 0, F.array_join("faults", ", "))
        .otherwise("none")
        .alias("weather"),
    )
    return Tables(**{name: table.cache() for name, table in tables.items()})
