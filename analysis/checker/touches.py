"""Operations by key: one row for each key that an operation sends to, polls or is assigned.

This is the table that the rest of the job works on, partitioned by key and kept on disk.
"""

from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from analysis.checker.parts import recognised, with_parts
from analysis.checker.processes import ADDED

_OPERATION = ("run", "process", "f", "type", "at_ns", "invoked_at")
_PLACED = tuple(column for column in ADDED if column != "unsteady")
KEY = ("run", "key")


@dataclass(frozen=True)
class Touches:
    """The table, what the caller unpersists in the end, and whether some process is `unsteady`."""

    rows: DataFrame
    kept: DataFrame
    unsteady: bool


def touches(placed: DataFrame, partitions: int) -> Touches:
    """`placed` operations by key, with `seen`: whether a send that nobody answered was seen anywhere.

    `at` is that of the invocation where an operation was never completed.
    """
    rows, counts = _kept(placed, partitions, irregular=False)
    if counts["irregular"]:
        rows.unpersist()
        rows, counts = _kept(placed, partitions, irregular=True)
    seen = _with_seen(rows) if counts["doubtful"] else rows.withColumn("seen", F.lit(False))
    return Touches(seen, rows, counts["unsteady"] > 0)


def _kept(placed: DataFrame, partitions: int, irregular: bool) -> tuple[DataFrame, dict[str, int]]:
    of_operations, of_touches = Observation(), Observation()
    watched = recognised(placed).observe(
        of_operations,
        F.count_if("irregular").alias("irregular"),
        F.count_if("unsteady").alias("unsteady"),
    )
    regular, in_python = map(_columns, with_parts(watched))
    rows = regular.unionByName(in_python) if irregular else regular
    rows = rows.observe(of_touches, F.count_if(_is_doubtful()).alias("doubtful"))
    kept = rows.repartition(partitions, *KEY).persist(StorageLevel.DISK_ONLY)
    kept.count()
    return kept, {**of_operations.get, **of_touches.get}


def _columns(parts: DataFrame) -> DataFrame:
    return parts.select(*_OPERATION, *_PLACED, F.coalesce("at", "invoked_at").alias("at"), "part.*")


def _is_doubtful() -> Column:
    """Whether the key alone does not tell if an unanswered send took effect: another key may show it."""
    unanswered = (F.col("kind") == "send") & F.col("type").isin("info", "open")
    tells_offset = F.exists("offsets", lambda offset: offset.isNotNull())
    return unanswered & (F.col("many") | tells_offset)


def _with_seen(rows: DataFrame) -> DataFrame:
    message = F.explode("messages").alias("message")
    sent = rows.filter(_is_doubtful()).select("run", "at", "key", message)
    polled = rows.filter("kind = 'poll' and type = 'ok'").select("run", "key", message)
    seen = sent.join(polled, ["run", "key", "message"], "left_semi").select("run", "at").distinct()
    marked = rows.join(seen.withColumn("seen", F.lit(True)), ["run", "at"], "left")
    unanswered = F.col("type").isin("info", "open")
    return marked.withColumn("seen", unanswered & F.coalesce("seen", F.lit(False)))
