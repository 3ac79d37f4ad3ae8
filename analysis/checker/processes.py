"""The pass by process: where each operation stands among those of its process.

Adds to the operations:

    phi          a place in the history; what is read from a writer or acknowledged before an invocation is
                 followed by a greater one, unless something impossible happened (see `cycles`)
    order_epoch  how many assignments that may have taken effect came before (an assignment counts itself)
    lag_epoch    how many acknowledged assignments
    before       the last successful poll of the process before this operation: place, and time invoked
    last         the last successful poll of the process in this lag_epoch
    unsteady     whether this is a poll that was not invoked later than the one before it
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from analysis.checker.parts import ASSIGNMENTS

IS_OK_POLL = "type = 'ok' and f in ('poll', 'txn')"
_FIELDS = ("process", "f", "type", "at", "at_ns", "invoked_at", "value", "parts")
ADDED = ("phi", "order_epoch", "lag_epoch", "before", "last", "unsteady")


def placed(operations: DataFrame) -> DataFrame:
    """Operations with what is known of their process; see above."""
    process = Window.partitionBy("run", "process")
    up_to_here = process.orderBy(position()).rowsBetween(Window.unboundedPreceding, 0)
    up_to_previous = process.orderBy(position()).rowsBetween(Window.unboundedPreceding, -1)
    poll = F.when(F.expr(IS_OK_POLL), F.struct("at", now().alias("now")))
    assigns = F.col("f").isin(*ASSIGNMENTS) & F.col("type").isin("ok", "info")
    acknowledged = assigns & (F.col("type") == "ok")
    with_epochs = operations.select(
        "run",
        *_FIELDS,
        now().alias("now"),
        poll.alias("poll"),
        _phi().alias("phi"),
        F.sum(assigns.cast("int")).over(up_to_here).alias("order_epoch"),
        F.sum(acknowledged.cast("int")).over(up_to_here).alias("lag_epoch"),
        F.last(poll, ignorenulls=True).over(up_to_previous).alias("before"),
    )
    epoch = Window.partitionBy("run", "process", "lag_epoch")
    return with_epochs.select(
        "*",
        F.max("poll").over(epoch).alias("last"),
        F.coalesce(F.col("poll.now") <= F.col("before.now"), F.lit(False)).alias("unsteady"),
    ).drop("poll")


def position() -> Column:
    """Where an operation stands in the order of its history."""
    return F.coalesce("at", "invoked_at")


def now() -> Column:
    """The time that counts for a poll: that of its invocation."""
    return F.coalesce("invoked_ns", "at_ns")


def _phi() -> Column:
    send = F.coalesce("invoked_at", F.lit(-1))
    return F.when(F.col("f") == "send", send).otherwise(F.col("at"))
