"""How long operations took, and how many there were: what `runs.operations` defines, for Spark."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from runs.operations import SHARES

# Shares of operations that are slower: 1, 0.79, 0.63, ... 0.001.
SLOWER = tuple(10 ** (-step / 10) for step in range(31))
_ACCURACY = 10_000  # rank error at most 1 in 10 000; exact for fewer values than that


def latency_quantiles(operations: DataFrame, by: Sequence[str] = ("f", "outcome")) -> DataFrame:
    """Latency quantiles of each kind of operation and each outcome, or of other groups.

    Args:
        operations: the table.
        by: columns that make the groups within a run: `f`, `outcome`, `node`, `process`, and `phase` and
            `fault` of `analysis.metrics.windows`.
    Returns:
        run_id, the columns `by`, operation_count, latency_ns_p50, latency_ns_p90, latency_ns_p99,
        latency_ns_max; ordered by run_id and `by`.
    """
    keys = ["run_id", *by]
    completed = operations.filter("latency_ns is not null").groupBy(keys)
    aggregates = [F.count("*").alias("operation_count"), *quantiles("latency_ns")]
    return completed.agg(*aggregates).orderBy(keys)


def latency_over_time(operations: DataFrame, window_ns: int) -> DataFrame:
    """Latency quantiles of each kind of operation in windows of time, by time of *invocation*.

    An operation counts where it began, so that those which a fault made slow are seen at the fault
    and not after it.

    Args:
        operations: the table.
        window_ns: width of a window; windows start at multiples of it.
    Returns:
        run_id, f, window_start_ns and the columns of `latency_quantiles`; windows without
        operations have no row.
    """
    windowed = with_window(operations, "invoked_ns", window_ns)
    return latency_quantiles(windowed, ["f", "window_start_ns"])


def latency_curves(operations: DataFrame, by: Sequence[str] = ("f",)) -> DataFrame:
    """For each of the shares `SLOWER`, the latency that so many acknowledged operations exceed.

    A share that less than one operation of the group makes up has no row: it would only repeat the
    slowest one.

    Args:
        operations: the table.
        by: columns that make the groups within a run.
    Returns:
        run_id, the columns `by`, slower_share, latency_ns; in no order.
    """
    keys = ["run_id", *by]
    acknowledged = operations.filter("outcome = 'ok' and latency_ns is not null")
    quantiles = F.percentile_approx("latency_ns", [1 - share for share in SLOWER], _ACCURACY)
    curves = acknowledged.groupBy(keys).agg(F.count("*").alias("n"), quantiles.alias("quantiles"))
    shares = F.array(*map(F.lit, SLOWER))
    points = curves.select(*keys, "n", F.inline(F.arrays_zip(shares.alias("s"), "quantiles")))
    named = points.toDF(*keys, "n", "slower_share", "latency_ns")
    return named.filter("slower_share * n >= 1").drop("n")


def throughput(operations: DataFrame, window_ns: int) -> DataFrame:
    """Operations completed per second, for each outcome, in windows of time of *completion*.

    Returns:
        run_id, outcome, window_start_ns, operation_count, rate_hz.
    """
    keys = ["run_id", "outcome", "window_start_ns"]
    windowed = with_window(operations, "completed_ns", window_ns).filter("completed_ns is not null")
    counted = windowed.groupBy(keys).agg(F.count("*").alias("operation_count"))
    return counted.withColumn("rate_hz", F.col("operation_count") / (window_ns / 1e9)).orderBy(keys)


def quantiles(column: str) -> list[Column]:
    """Aggregates `{column}_p50`, `_p90`, `_p99` and `_max`, each a value that occurred."""
    shares = [
        F.percentile_approx(column, share, _ACCURACY).alias(f"{column}_{name}")
        for name, share in SHARES.items()
    ]
    return [*shares, F.max(column).alias(f"{column}_max")]


def with_window(operations: DataFrame, time: str, window_ns: int) -> DataFrame:
    """With `window_start_ns`: the multiple of `window_ns` at or before `time`."""
    start_ns = F.col(time) - F.col(time) % F.lit(window_ns).cast("long")
    return operations.withColumn("window_start_ns", start_ns)
