"""A history's lines as operations and faults.

Jepsen's rule makes the join simple: a process has one operation at a time, so that what follows an
invocation in the order of its process is its completion, if anything does.
"""

import orjson
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from analysis.ingest.lines import parse
from analysis.schemas import FAULTS, HISTORY_LINE, HISTORY_REQUIRED, RUN_ID
from runs.faults import injections
from runs.history import NEMESIS, Op


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
        "node",
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
            An operation names its node itself when that one has left.
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
        F.coalesce("op.node", F.col("nodes")[number.cast("int")]).alias("node"),
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
    """Rows of the faults table from the good lines of a history, by the definition of `runs.faults`.

    A run has tens of lines of the nemesis, not millions, so the driver takes them.
    """
    value = F.to_json("value").alias("value")
    lines = history.filter(F.col("process") == NEMESIS).select(
        "run_id", "index", "time", "f", value
    )
    ops: dict[str, list[Op]] = {}
    for row in sorted(lines.collect(), key=lambda row: int(row["index"])):
        told = None if row.value is None else orjson.loads(row.value)
        op = Op(row["index"], row.time, "info", NEMESIS, row.f, told)
        ops.setdefault(row.run_id, []).append(op)
    rows = [{"run_id": run, **each.row()} for run, its in ops.items() for each in injections(its)]
    return history.sparkSession.createDataFrame(rows, StructType([RUN_ID, *FAULTS]))
