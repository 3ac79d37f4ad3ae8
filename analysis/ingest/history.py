"""A history's lines as operations and faults.

Jepsen's rule makes the join simple: a process has one operation at a time, so that what follows an
invocation in the order of its process is its completion, if anything does.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from analysis.ingest.lines import parse
from analysis.schemas import HISTORY_LINE, HISTORY_REQUIRED
from runs.faults import HEARD, MUTE, NAMED
from runs.history import NEMESIS

# By operation: the fault that it begins, or ends; the others are start-X and stop-X (see `runs.faults`).
OPENING = {begin: fault for fault, (begin, _) in NAMED.items()}
CLOSING = {end: fault for fault, (_, end) in NAMED.items()}
STARTING, STOPPING = r"^start-(.+)$", r"^stop-(.+)$"


def parse_history(lines: DataFrame) -> DataFrame:
    """Parsed lines; see `lines.parse`."""
    rows = parse(lines, HISTORY_LINE, HISTORY_REQUIRED, type="invoke ok fail info")
    process = F.col("row.process")
    neither = (process != NEMESIS) & process.try_cast("long").isNull()
    reason = F.when(neither, "process is neither a number nor nemesis")
    return rows.withColumn("reason", F.coalesce("reason", reason))


def paired(history: DataFrame) -> DataFrame:
    """Good lines of clients with the type of the `previous` of their process, and its whole `next`."""
    in_order = Window.partitionBy("run_id", "process").orderBy("index")
    fields = F.struct(
        "index",
        "time",
        "type",
        F.to_json("value").alias("value"),
        F.to_json("error").alias("error"),
    )
    clients = history.filter(F.col("process") != NEMESIS)
    process = F.col("process").cast("long").alias("process")
    lines = clients.select(
        "run_id", "file", "line", "text", process, "f", "index", fields.alias("op")
    )
    return lines.select(
        "*",
        F.lag("op.type").over(in_order).alias("previous"),
        F.lead("op").over(in_order).alias("next"),
    )


def operations(pairs: DataFrame, placement: DataFrame) -> DataFrame:
    """Rows of the operations table from `paired` lines.

    Args:
        pairs: the lines.
        placement: run_id, nodes (names, in their order) and concurrency, null when unknown. The bench
            gives worker i the node i mod n, and a process number stays the same modulo the concurrency.
    """
    end = F.when(F.col("next.type") != "invoke", F.col("next"))
    invocations = pairs.filter("op.type = 'invoke'").withColumn("end", end)
    number = F.col("process") % F.col("concurrency") % F.size("nodes")
    return invocations.join(F.broadcast(placement), "run_id", "left").select(
        "run_id",
        "process",
        "f",
        F.coalesce("end.type", F.lit("open")).alias("outcome"),
        F.col("op.index").alias("invoked_index"),
        F.col("op.time").alias("invoked_ns"),
        F.col("nodes")[number.cast("int")].alias("node"),
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
    first line of its beginning to the last line of the next end of its kind: that ends all of its kind
    which are in force (`start` starts every killed node). A run has tens of such lines, not millions.
    """
    following = Window.partitionBy("run_id", "kind").orderBy("before_ns")
    ended = F.first(F.when(~F.col("opens"), F.col("after_ns")), ignorenulls=True)
    return (
        _deeds(history)
        .withColumn("ended_ns", ended.over(following.rowsBetween(1, Window.unboundedFollowing)))
        .filter("opens")
        .select(
            "run_id",
            "kind",
            F.col("before_ns").alias("started_ns"),
            "ended_ns",
            "target_json",
            "effect_json",
        )
        .unionByName(_mute(history))
    )


def _mute(history: DataFrame) -> DataFrame:
    """Mute nodes: one line says that a node is mute, and one that a new process of it is heard."""
    lines = history.filter((F.col("process") == NEMESIS) & F.col("f").isin(MUTE, HEARD))
    node = F.coalesce(F.try_variant_get("value", "$.node", "string"), F.to_json("value"))
    same = Window.partitionBy("run_id", node).orderBy("index")
    heard_ns = F.when(F.lead("f").over(same) == HEARD, F.lead("time").over(same))
    return (
        lines.withColumn("ended_ns", heard_ns)
        .filter(F.col("f") == MUTE)
        .select(
            "run_id",
            F.lit(MUTE).alias("kind"),
            F.col("time").alias("started_ns"),
            "ended_ns",
            F.lit(None).cast("string").alias("target_json"),
            F.to_json("value").alias("effect_json"),
        )
    )


def _deeds(history: DataFrame) -> DataFrame:
    """What the nemesis did, one row for each pair of lines."""
    begins, ends = _kind(OPENING, STARTING), _kind(CLOSING, STOPPING)
    lines = history.filter(F.col("process") == NEMESIS).select(
        "*", F.coalesce(begins, ends).alias("kind"), begins.isNotNull().alias("opens")
    )
    same = Window.partitionBy("run_id", "f").orderBy("index")
    pair = F.floor((F.row_number().over(same) - 1) / 2)
    value = F.to_json("value")
    return (
        lines.filter("kind is not null")
        .withColumn("pair", pair)
        .groupBy("run_id", "f", "kind", "opens", "pair")
        .agg(
            F.min("time").alias("before_ns"),
            F.max("time").alias("after_ns"),
            F.min_by(value, "index").alias("target_json"),
            F.max_by(value, "index").alias("effect_json"),
        )
    )


def _kind(words: dict[str, str], pattern: str) -> Column:
    """The kind of the fault that the operation `f` begins (or ends), null when it does not."""
    named = F.create_map(*(F.lit(word) for pair in words.items() for word in pair))[F.col("f")]
    return F.coalesce(named, F.nullif(F.regexp_extract("f", pattern, 1), F.lit("")))
