"""A history's lines as operations and faults.

Jepsen's rule makes the join simple: a process has one operation at a time, so that what follows an
invocation in the order of its process is its completion, if anything does.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from analysis.ingest.lines import parse
from analysis.schemas.lines import HISTORY_LINE, HISTORY_REQUIRED

NEMESIS = "nemesis"
# What begins a fault and what ends it [jepsen.nemesis.combined; maelstrom.nemesis].
OPENING = {"start-partition": "partition", "kill": "kill", "pause": "pause"}
CLOSING = {"stop-partition": "partition", "start": "kill", "resume": "pause"}


def parse_history(lines: DataFrame) -> DataFrame:
    """Parsed lines; see `lines.parse`."""
    rows = parse(lines, HISTORY_LINE, HISTORY_REQUIRED, type="invoke ok fail info")
    process = F.col("row.process")
    neither = (process != NEMESIS) & process.try_cast("long").isNull()
    reason = F.when(neither, "process is neither a number nor nemesis")
    return rows.withColumn("reason", F.coalesce("reason", reason))


def may_be_nemesis(lines: DataFrame) -> DataFrame:
    """The few lines worth parsing for faults."""
    return lines.filter(F.col("text").contains(NEMESIS))


def paired(history: DataFrame) -> DataFrame:
    """Good lines of clients with the type of the `previous` of their process, and its whole `next`."""
    in_order = Window.partitionBy("process").orderBy("index")
    fields = F.struct(
        "index",
        "time",
        "type",
        F.to_json("value").alias("value"),
        F.to_json("error").alias("error"),
    )
    clients = history.filter(F.col("process") != NEMESIS)
    process = F.col("process").cast("long").alias("process")
    lines = clients.select("file", "line", "text", process, "f", "index", fields.alias("op"))
    return lines.select(
        "*",
        F.lag("op.type").over(in_order).alias("previous"),
        F.lead("op").over(in_order).alias("next"),
    )


def operations(pairs: DataFrame) -> DataFrame:
    """Rows of the operations table from `paired` lines."""
    end = F.when(F.col("next.type") != "invoke", F.col("next"))
    invocations = pairs.filter("op.type = 'invoke'").withColumn("end", end)
    return invocations.select(
        "process",
        "f",
        F.coalesce("end.type", F.lit("open")).alias("outcome"),
        F.col("op.index").alias("invoked_index"),
        F.col("op.time").alias("invoked_ns"),
        F.col("end.index").alias("completed_index"),
        F.col("end.time").alias("completed_ns"),
        (F.col("end.time") - F.col("op.time")).alias("latency_ns"),
        F.col("op.value").alias("invoked_value_json"),
        F.col("end.value").alias("completed_value_json"),
        F.col("end.error").alias("error_json"),
    )


def orphan_reason() -> Column:
    """Of `paired` lines: what is wrong with one that completes nothing, null for the others."""
    invoked = F.coalesce(F.col("previous") == "invoke", F.lit(False))
    orphan = (F.col("op.type") != "invoke") & ~invoked
    return F.when(orphan, "a completion without an invocation")


def faults(history: DataFrame) -> DataFrame:
    """Rows of the faults table from the good lines of a history.

    The nemesis writes two lines for each thing it does, before and after. A fault counts from the
    first line of its beginning to the last line of its end, or to the beginning of the next of its
    kind. The windows run over one partition: a run has tens of such lines, not millions.
    """
    deeds = _deeds(history)
    following = Window.partitionBy("kind").orderBy("before_ns")
    ended = F.lead(F.when(F.col("opens"), F.col("before_ns")).otherwise(F.col("after_ns")))
    return (
        deeds.withColumn("ended_ns", ended.over(following))
        .filter("opens")
        .select(
            "kind",
            F.col("before_ns").alias("started_ns"),
            "ended_ns",
            "target_json",
            "effect_json",
        )
    )


def _deeds(history: DataFrame) -> DataFrame:
    """What the nemesis did, one row for each pair of lines."""
    kinds = F.create_map(*(F.lit(word) for pair in (OPENING | CLOSING).items() for word in pair))
    lines = history.filter((F.col("process") == NEMESIS) & F.col("f").isin([*OPENING, *CLOSING]))
    same = Window.partitionBy("f").orderBy("index")
    numbered = lines.withColumn("pair", F.floor((F.row_number().over(same) - 1) / 2))
    value = F.to_json("value")
    deeds = numbered.groupBy("f", "pair").agg(
        F.min("time").alias("before_ns"),
        F.max("time").alias("after_ns"),
        F.min_by(value, "index").alias("target_json"),
        F.max_by(value, "index").alias("effect_json"),
    )
    return deeds.select(
        "*", kinds[F.col("f")].alias("kind"), F.col("f").isin([*OPENING]).alias("opens")
    )
