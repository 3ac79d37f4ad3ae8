"""How long operations took, and how many there were."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

QUANTILES = {"latency_ns_p50": 0.5, "latency_ns_p90": 0.9, "latency_ns_p99": 0.99}
_ACCURACY = 10_000  # rank error at most 1 in 10 000; exact for fewer values than that


def latency_quantiles(operations: DataFrame) -> DataFrame:
    """Latency quantiles of each kind of operation and each outcome.

    The latency of an operation is the time from its invocation to its completion, as its client saw
    it. A quantile q is the smallest latency such that a share q of them are not above it: always
    one that occurred. Operations without completion (outcome `open`) have none and are left out.

    Returns:
        run_id, f, outcome, operation_count, latency_ns_p50, latency_ns_p90, latency_ns_p99,
        latency_ns_max; ordered by run_id, f, outcome.
    """
    keys = ["run_id", "f", "outcome"]
    completed = operations.filter("latency_ns is not null")
    return completed.groupBy(keys).agg(*_quantiles()).orderBy(keys)


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
    keys = ["run_id", "f", "window_start_ns"]
    completed = operations.filter("latency_ns is not null")
    windowed = completed.withColumn("window_start_ns", _window_start("invoked_ns", window_ns))
    return windowed.groupBy(keys).agg(*_quantiles()).orderBy(keys)


def throughput(operations: DataFrame, window_ns: int) -> DataFrame:
    """Operations completed per second, for each outcome, in windows of time of *completion*.

    Returns:
        run_id, outcome, window_start_ns, operation_count, rate_hz.
    """
    keys = ["run_id", "outcome", "window_start_ns"]
    completed = operations.filter("completed_ns is not null")
    windowed = completed.withColumn("window_start_ns", _window_start("completed_ns", window_ns))
    counted = windowed.groupBy(keys).agg(F.count("*").alias("operation_count"))
    return counted.withColumn("rate_hz", F.col("operation_count") / (window_ns / 1e9)).orderBy(keys)


def _quantiles() -> list[Column]:
    quantiles = [
        F.percentile_approx("latency_ns", share, _ACCURACY).alias(name)
        for name, share in QUANTILES.items()
    ]
    return [
        F.count("*").alias("operation_count"),
        *quantiles,
        F.max("latency_ns").alias("latency_ns_max"),
    ]


def _window_start(time: str, window_ns: int) -> Column:
    return F.col(time) - F.col(time) % F.lit(window_ns).cast("long")
