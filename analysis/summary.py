"""The figures of one run of any size, computed by Spark.

`runs.figures` has them without Spark.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analysis.lake import Lake
from analysis.metrics.latency import latency_quantiles
from analysis.metrics.network import messages_by_type, network_statistics
from analysis.metrics.windows import main_phase
from runs.figures import ALL, MAIN, Figures
from runs.operations import Row


def summarise(spark: SparkSession, lake: Lake, run_id: str) -> Figures:
    """The figures of a run that the lake holds."""

    def table(name: str) -> DataFrame:
        return lake.table(spark, name, [run_id])

    operations, messages = table("operations"), table("messages")
    operation_count, duration_ns = _extent(operations)
    phases = {MAIN: main_phase(operations, table("runs")), ALL: operations}
    bad = table("quarantine").groupBy("file", "reason")
    latency = [
        {"phase": phase, **row}
        for phase, its in phases.items()
        for row in _rows(latency_quantiles(its))
    ]
    rows = {
        "latency": latency,
        "network": _rows(network_statistics(messages, operations)),
        "by_type": _rows(messages_by_type(messages, operations)),
        "quarantine": _rows(
            bad.agg(F.count("*").alias("lines"), F.min("line").alias("first_line"))
        ),
    }
    return Figures({}, {"operations": operation_count, "duration_s": duration_ns / 1e9}, rows)


def _extent(operations: DataFrame) -> tuple[int, int]:
    last = F.max(F.greatest("invoked_ns", "completed_ns"))
    (row,) = operations.agg(F.count("*").alias("operations"), last.alias("last")).collect()
    return row.operations, row.last or 0


def _rows(metric: DataFrame) -> list[Row]:
    """A small result as plain rows; of one run, so that its name says nothing."""
    return [row.asDict() for row in metric.drop("run_id").collect()]
