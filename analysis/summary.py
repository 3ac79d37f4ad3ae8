"""The figures of one run of any size, computed by Spark from its rows in the lake.

`runs.figures` has them without Spark.
"""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from analysis.lake import Lake
from analysis.rows import MAIN
from runs.figures import Figures
from runs.operations import SHARES, Row
from runs.traffic import CLIENT

EXACT = 1_000_000  # of `percentile_approx`: below so many values it errs by none


def quantiles(column: str) -> list[Column]:
    """Aggregates `{column}_p50`, `_p90`, `_p99` and `_max`, each a value that occurred."""
    shares = [
        F.percentile_approx(column, share, EXACT).alias(f"{column}_{name}")
        for name, share in SHARES.items()
    ]
    return [*shares, F.max(column).alias(f"{column}_max")]


def summarise(spark: SparkSession, lake: Lake, run_id: str) -> Figures:
    """The figures of a run that the lake holds."""

    def table(name: str) -> DataFrame:
        return lake.table(spark, name, [run_id])

    operations, messages = table("operations").cache(), table("messages").cache()
    last_ns = F.max(F.coalesce("completed_ns", "invoked_ns"))
    (all_,) = operations.agg(F.count("*").alias("count"), last_ns.alias("last_ns")).collect()
    of_main = operations.filter(F.col("phase") == MAIN).filter("latency_ns is not null")
    latency = of_main.groupBy("f", "outcome").agg(
        F.count("*").alias("operation_count"), *quantiles("latency_ns")
    )
    counts = [
        F.count("*").alias("message_count"),
        F.try_divide(F.count("*"), F.lit(all_["count"])).alias("messages_per_operation"),
    ]
    lost = F.count_if(F.expr("send_count > 0 and recv_count = 0")).alias("lost_count")
    events = [F.sum(f"{name}_count").alias(f"{name}_count") for name in ("send", "recv")]
    is_client = F.col("link") == CLIENT
    scopes = {"all": F.lit(True), "clients": is_client, "servers": ~is_client}
    in_all = {name: messages.filter(test).agg(*events, *counts) for name, test in scopes.items()}
    lines = [F.count("*").alias("lines"), F.min("line").alias("first_line")]
    by_type = messages.groupBy("link", "type").agg(*counts, lost)
    rows = {
        "latency": [{"phase": MAIN, **row} for row in _rows(latency.orderBy("f", "outcome"))],
        "network": []
        if messages.isEmpty()
        else [
            {"scope": name, **row}
            for name, found in in_all.items()
            for row in _rows(found.fillna(0, ["send_count", "recv_count"]))
        ],
        "by_type": _rows(by_type.orderBy("link", F.desc("message_count"), "type")),
        "quarantine": _rows(table("quarantine").groupBy("file", "reason").agg(*lines)),
    }
    duration_s = (all_["last_ns"] or 0) / 1e9
    return Figures({}, {"operations": all_["count"], "duration_s": duration_s}, rows)


def _rows(found: DataFrame) -> list[Row]:
    return [row.asDict() for row in found.collect()]
