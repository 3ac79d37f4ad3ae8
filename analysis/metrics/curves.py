"""Latency as a whole curve, not a few quantiles of it."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

# Shares of operations that are slower: 1, 0.79, 0.63, ... 0.001.
SLOWER = tuple(10 ** (-step / 10) for step in range(31))
_ACCURACY = 10_000


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
