"""What share of the operations succeeded, over time."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analysis.metrics.latency import window_start
from analysis.metrics.windows import judged


def availability(operations: DataFrame, window_ns: int, by: Sequence[str] = ()) -> DataFrame:
    """The share of operations that were acknowledged, in windows of time of *invocation*.

    An operation counts where it began. Only `ok` is success: a client that waits for an answer that never
    comes has not been served, whatever became of the operation. Crashes of clients do not count.

    Args:
        operations: the table.
        window_ns: width of a window; windows start at multiples of it.
        by: further columns that make groups, such as `node`.
    Returns:
        run_id, the columns `by`, window_start_ns, invoked_count, ok_count, availability (0 to 1);
        windows without invocations have no row. Ordered by the columns in front of the counts.
    """
    keys = ["run_id", *by, "window_start_ns"]
    windowed = judged(operations).withColumn(
        "window_start_ns", window_start("invoked_ns", window_ns)
    )
    counted = windowed.groupBy(keys).agg(
        F.count("*").alias("invoked_count"), F.count_if(F.col("outcome") == "ok").alias("ok_count")
    )
    share = F.col("ok_count") / F.col("invoked_count")
    return counted.withColumn("availability", share).orderBy(keys)
