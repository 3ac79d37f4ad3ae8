"""What share of the operations succeeded over time, and whether the nodes served alike."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analysis.metrics.latency import with_window
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
    windowed = with_window(judged(operations), "invoked_ns", window_ns)
    counted = windowed.groupBy(keys).agg(
        F.count("*").alias("invoked_count"), F.count_if(F.col("outcome") == "ok").alias("ok_count")
    )
    share = F.col("ok_count") / F.col("invoked_count")
    return counted.withColumn("availability", share).orderBy(keys)


def node_fairness(operations: DataFrame, runs: DataFrame) -> DataFrame:
    """Jain's index over the nodes, of the operations that they acknowledged and of their latency.

    Jain's index of x1..xn is (sum x)^2 / (n * sum x^2): 1 when all are equal, 1/n when one has it all
    [R. Jain, D. Chiu, W. Hawe: A quantitative measure of fairness, 1984]. A node that acknowledged
    nothing counts with 0 operations, and has no latency. Crashes of clients do not count.

    Args:
        operations: the table; rows without `node` are left out.
        runs: the table, for the nodes' names.
    Returns:
        run_id, node_count, ok_count_min and ok_count_max (of a node), jain_operations, jain_latency (of
        the nodes' mean latencies), ordered by run_id; runs that do not tell their nodes have no row.
    """
    served = judged(operations).filter("outcome = 'ok' and node is not null")
    by_node = served.groupBy("run_id", "node").agg(
        F.count("*").alias("ok_count"), F.mean("latency_ns").alias("mean_ns")
    )
    nodes = runs.select("run_id", F.explode("nodes").alias("node"))
    every = nodes.join(by_node, ["run_id", "node"], "left").fillna(0, ["ok_count"])
    indices = every.groupBy("run_id").agg(
        F.count("*").cast("int").alias("node_count"),
        F.min("ok_count").alias("ok_count_min"),
        F.max("ok_count").alias("ok_count_max"),
        _jain("ok_count").alias("jain_operations"),
        _jain("mean_ns").alias("jain_latency"),
    )
    return indices.orderBy("run_id")


def _jain(column: str) -> Column:
    """Null when there is nothing to share."""
    squares = F.count(column) * F.sum(F.pow(column, 2))
    return F.try_divide(F.pow(F.sum(column), 2), squares)
