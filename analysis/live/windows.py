"""Records of a stream as windows of time (`runs.live` defines them), for frames and streams alike."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analysis.summary import quantiles

NS_PER_US = 1000


def placed(records: DataFrame) -> DataFrame:
    """Records whose slot is known. Those of a run of JSON have neither that nor a time: no window has them."""
    return records.where("slot is not null")


def with_times(records: DataFrame) -> DataFrame:
    """Records with `seen_ns` and `at_ns`, in ns since 1970.

    Args:
        records: the column appended_at, and perhaps seen_at: when the reader learnt of the record. In a
            micro-batch that is the time of the batch, which a restart keeps.
    """
    if "seen_at" not in records.columns:
        records = records.withColumn("seen_at", F.current_timestamp())
    seen, appended = (F.unix_micros(name) * NS_PER_US for name in ("seen_at", "appended_at"))
    latency = F.when(appended.isNotNull(), F.greatest(seen - appended, F.lit(0)))
    return records.select(
        F.coalesce(appended, seen).alias("at_ns"),
        latency.alias("latency_ns"),
    )


def per_window(records: DataFrame, window_ns: int) -> DataFrame:
    """Each window with its records: the columns `runs.live.COLUMNS`.

    Args:
        records: as of `with_times`.
        window_ns: width of a window.
    """
    start_ns = F.col("at_ns") - F.col("at_ns") % F.lit(window_ns).cast("long")
    return (
        with_times(records)
        .groupBy(start_ns.alias("window_start_ns"))
        .agg(
            F.count("*").alias("records"),
            F.count("latency_ns").alias("timed"),
            *quantiles("latency_ns"),
        )
    )
