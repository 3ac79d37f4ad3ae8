"""The order in which offsets were filled: whether messages appeared behind readers.

An offset may be assigned late, but never *shown* late: a reader that polled a message goes on behind
it, and does not come back. docs/why-prefetch-fails.md tells the story.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F


def offset_times(operations: DataFrame) -> DataFrame:
    """Each message that a client has seen, with the times at which it did.

    Args:
        operations: the table.
    Returns:
        program, run_id, key, offset, message (JSON), sent_ns (invocation of its send), acknowledged_ns (its
        completion;
        both null when the send got no answer), first_polled_ns (earliest completion of a poll that
        returned it; null: never).
    """
    ok = operations.filter("outcome = 'ok' and f in ('send', 'poll', 'txn')")
    parts = ok.select(
        "program",
        "run_id",
        "invoked_ns",
        "completed_ns",
        F.explode(F.from_json("completed_value_json", "array<array<string>>")).alias("part"),
    )
    sent = parts.filter(F.col("part")[0] == "send").select(
        "program",
        "run_id",
        F.col("part")[1].alias("key"),
        _pair(F.from_json(F.col("part")[2], "array<string>")),
        F.col("invoked_ns").alias("sent_ns"),
        F.col("completed_ns").alias("acknowledged_ns"),
    )
    by_key = F.from_json(F.col("part")[1], "map<string, array<array<string>>>")
    of_key = parts.filter((F.col("part")[0] == "poll") & (F.size("part") > 1)).select(
        "program", "run_id", "completed_ns", F.explode(by_key).alias("key", "pairs")
    )
    polled = of_key.withColumn("pair", F.explode("pairs")).select(
        "program",
        "run_id",
        "key",
        _pair(F.col("pair")),
        F.col("completed_ns").alias("first_polled_ns"),
    )
    both = sent.unionByName(polled, allowMissingColumns=True)
    met = both.filter("at.offset is not null").groupBy("program", "run_id", "key", "at")
    times = met.agg(*(F.min(name).alias(name) for name in _TIMES))
    return times.select("program", "run_id", "key", "at.offset", "at.message", *_TIMES)


_TIMES = ("sent_ns", "acknowledged_ns", "first_polled_ns")


def _pair(pair: Column) -> Column:
    """Of `[offset, message]`."""
    offset = pair[0].try_cast("long").alias("offset")
    return F.struct(offset, pair[1].alias("message")).alias("at")


def with_late(times: DataFrame) -> DataFrame:
    """`offset_times` with `is_late`: whether the message came to stand behind a reader.

    It did if it was sent after a poll had returned a message of its key at a higher offset: invoked
    after that poll was complete, so that no doubt remains about which was first.
    """
    higher = Window.partitionBy("run_id", "key").orderBy(F.desc("offset"))
    above = higher.rangeBetween(Window.unboundedPreceding, -1)
    passed_ns = F.min("first_polled_ns").over(above)
    return times.withColumn("is_late", F.coalesce(F.col("sent_ns") > passed_ns, F.lit(False)))


def offset_order(times: DataFrame) -> DataFrame:
    """Holes and late messages of each program, over all of its runs.

    Args:
        times: as `offset_times` gives them.
    Returns:
        program, runs, message_count, hole_count (offsets below the highest known of their key at which nobody
        ever saw a message), late_count (messages behind a reader, see `with_late`); ordered by program.
    """
    of_key = with_late(times).groupBy("program", "run_id", "key")
    counted = of_key.agg(
        F.count("*").alias("message_count"),
        (F.max("offset") + 1 - F.countDistinct("offset")).alias("hole_count"),
        F.count_if("is_late").alias("late_count"),
    )
    sums = [F.sum(name).alias(name) for name in ("message_count", "hole_count", "late_count")]
    of_program = counted.groupBy("program")
    return of_program.agg(F.count_distinct("run_id").alias("runs"), *sums).orderBy("program")
