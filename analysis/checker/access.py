"""Operations by process, then by key: what each operation says of each key, and where it stands.

`placed` adds to each operation what follows from the operations of its process:

    phi          a place in the history. What is read from a writer, and what is invoked after an
                 acknowledgement, has a greater one, unless something impossible happened (see `cycles`)
    order_epoch  how many assignments that may have taken effect came before (an assignment counts itself)
    lag_epoch    how many acknowledged assignments
    before       the last successful poll of the process before this operation: place, and time invoked
    last         the last successful poll of the process in this lag_epoch
    unsteady     whether this is a poll that was not invoked later than the one before it

`accesses` has one row for each key that an operation sends to, polls or is assigned. The rest of the job
works on this table, which is partitioned by key and stays on disk.
"""

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F

from analysis.checker.schemas import ASSIGNMENTS

IS_OK_POLL = "type = 'ok' and f in ('poll', 'txn')"
KEY = ("run", "key")


def placed(operations: DataFrame) -> DataFrame:
    """Operations (`schemas.OPERATION`) with the columns above."""
    process = Window.partitionBy("run", "process").orderBy(F.coalesce("at", "invoked_at"))
    up_to_here = process.rowsBetween(Window.unboundedPreceding, 0)
    up_to_previous = process.rowsBetween(Window.unboundedPreceding, -1)
    now = F.coalesce("invoked_ns", "at_ns")
    poll = F.when(F.expr(IS_OK_POLL), F.struct("at", now.alias("now")))
    assigns = F.col("f").isin(*ASSIGNMENTS) & F.col("type").isin("ok", "info")
    phi = F.when(F.col("f") == "send", F.coalesce("invoked_at", F.lit(-1))).otherwise(F.col("at"))
    with_epochs = operations.select(
        *("run", "process", "f", "type", "at", "at_ns", "invoked_at", "parts"),
        now.alias("now"),
        poll.alias("poll"),
        phi.alias("phi"),
        F.sum(assigns.cast("int")).over(up_to_here).alias("order_epoch"),
        F.sum((assigns & (F.col("type") == "ok")).cast("int")).over(up_to_here).alias("lag_epoch"),
        F.last(poll, ignorenulls=True).over(up_to_previous).alias("before"),
    )
    return with_epochs.select(
        "*",
        F.max("poll").over(Window.partitionBy("run", "process", "lag_epoch")).alias("last"),
        F.coalesce(F.col("poll.now") <= F.col("before.now"), F.lit(False)).alias("unsteady"),
    ).drop("poll")


def accesses(placed: DataFrame, partitions: int) -> tuple[DataFrame, DataFrame, bool]:
    """`placed` operations by key, with `seen`: whether a poll shows a send of unknown outcome.

    `at` is that of the invocation where an operation was never completed.

    Returns:
        the table, what the caller unpersists in the end, and whether some process is `unsteady`.
    """
    of_operations, of_accesses = Observation(), Observation()
    watched = placed.observe(of_operations, F.count_if("unsteady").alias("unsteady"))
    at, part = F.coalesce("at", "invoked_at").alias("at"), F.inline("parts")
    rows = watched.select(
        *("run", "process", "f", "type", "at_ns", "invoked_at"),
        *("phi", "order_epoch", "lag_epoch", "before", "last"),
        at,
        part,
    ).observe(of_accesses, F.count_if(_is_doubtful()).alias("doubtful"))
    persisted = rows.repartition(partitions, *KEY).persist(StorageLevel.DISK_ONLY)
    persisted.count()
    doubtful = of_accesses.get["doubtful"]
    seen = _with_seen(persisted) if doubtful else persisted.withColumn("seen", F.lit(False))
    return seen, persisted, of_operations.get["unsteady"] > 0


def _is_doubtful() -> Column:
    """Whether a poll of another key, too, may show that a send of unknown outcome took effect."""
    unanswered = (F.col("kind") == "send") & F.col("type").isin("info", "open")
    return unanswered & (F.col("many") | F.exists("offsets", lambda offset: offset.isNotNull()))


def _with_seen(rows: DataFrame) -> DataFrame:
    message = F.explode("messages").alias("message")
    sent = rows.filter(_is_doubtful()).select("run", "at", "key", message)
    polled = rows.filter("kind = 'poll' and type = 'ok'").select("run", "key", message)
    seen = sent.join(polled, ["run", "key", "message"], "left_semi").select("run", "at").distinct()
    marked = rows.join(seen.withColumn("seen", F.lit(True)), ["run", "at"], "left")
    unanswered = F.col("type").isin("info", "open")
    return marked.withColumn("seen", unanswered & F.coalesce("seen", F.lit(False)))
