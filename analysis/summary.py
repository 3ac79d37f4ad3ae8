"""The figures of one run of any size, computed by Spark.

`runs.figures.measure` computes the same for runs that fit into memory.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analysis.lake import Lake
from analysis.metrics.latency import latency_over_time, latency_quantiles, throughput
from analysis.metrics.network import messages_by_type, network_statistics
from runs.figures import Figures
from runs.operations import Row, window_width


def summarise(spark: SparkSession, lake: Lake, run_id: str) -> Figures:
    """The figures of a run that the lake holds."""

    def table(name: str) -> DataFrame:
        return lake.table(spark, name, [run_id])

    operations, messages = table("operations"), table("messages")
    operation_count, duration_ns = _extent(operations)
    window_ns = window_width(duration_ns)
    bad = table("quarantine").groupBy("file", "reason")
    return Figures(
        operation_count=operation_count,
        duration_ns=duration_ns,
        window_ns=window_ns,
        latency=_rows(latency_quantiles(operations)),
        latency_over_time=_rows(latency_over_time(operations, window_ns)),
        throughput=_rows(throughput(operations, window_ns)),
        network=_rows(network_statistics(messages, operations)),
        by_type=_rows(messages_by_type(messages, operations)),
        faults=_rows(table("faults").orderBy("started_ns")),
        quarantine=_rows(bad.agg(F.count("*").alias("lines"), F.min("line").alias("first_line"))),
    )


def _extent(operations: DataFrame) -> tuple[int, int]:
    last = F.max(F.greatest("invoked_ns", "completed_ns"))
    (row,) = operations.agg(F.count("*").alias("operations"), last.alias("last")).collect()
    return row.operations, row.last or 0


def _rows(metric: DataFrame) -> list[Row]:
    """A small result as plain rows; of one run, so that its name says nothing."""
    return [row.asDict() for row in metric.drop("run_id").collect()]
