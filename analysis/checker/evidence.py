"""The pass by key over single messages: what their content could be accused of, and where they lie.

`messages` has a row for each message that a transaction sent or polled, and one for each empty poll.
`judged` adds what all rows of a key say together:

    index      the message's index in its log; null when that is unknown
    suspect    whether the key could show an anomaly of content (a superset; see below)
    unseen     whether this is an acknowledged send of a message that was never polled
    edge       of a poll: the writer, when it is another transaction that was completed
    backward   whether that edge leads back in phi: it might be on a cycle
    expired    when the row's offset was first known not to be the highest of its key (ns)
    resent     the message's last writer, if it has several

In a key without a suspect row every message has one offset and every offset one message. Every polled
message has a writer, and none whose send failed. Every message that must be in the log was polled by
those who polled a later one. No offset is malformed. So `duplicate`, `inconsistent-offsets`,
`malformed-offset`, `no-writer-of-value`, `G1a`, `precommitted-read` and `lost-write` have no case in that key.
Indices of other keys mean nothing.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from workloads.kafka.checker.observed import MALFORMED

COLUMNS = (
    *("run", "key", "process", "at", "at_ns", "kind", "f", "type", "phi", "seen"),
    *("order_epoch", "lag_epoch", "before", "last"),
)
FOUND = (
    *("number", "offset", "message", "unseen", "edge", "resent"),
    *("backward", "index", "suspect", "expired"),
)


def messages(accesses: DataFrame) -> DataFrame:
    """One row for each message that a transaction sent or polled, and one for each empty run."""
    rows = accesses.filter("kind <> 'assign'").select(
        *COLUMNS, F.posexplode_outer(F.arrays_zip("offsets", "messages")).alias("number", "pair")
    )
    return rows.select(
        *COLUMNS,
        F.coalesce("number", F.lit(0)).alias("number"),
        F.col("pair.offsets").alias("offset"),
        F.col("pair.messages").alias("message"),
    )


def judged(messages: DataFrame) -> DataFrame:
    """Messages with what all rows of their key say; see above."""
    return _with_logs(_with_writers(messages))


def _with_writers(rows: DataFrame) -> DataFrame:
    is_poll, is_send = F.col("kind") == "poll", F.col("kind") == "send"
    is_malformed = F.col("offset") == MALFORMED
    rows = rows.withColumns(
        {"malformed": is_malformed, "offset": F.when(~is_malformed, F.col("offset"))}
    )
    completed_send = is_send & (F.col("type") != "open")
    rows = rows.withColumn("in_log", is_poll | _committed())
    located = F.when(F.col("in_log"), F.col("offset"))
    of_message = rows.select(
        "*",
        F.max(located).over(_message()).alias("high"),
        F.min(located).over(_message()).alias("low"),
        _any(is_poll & (F.col("type") == "ok")).alias("polled"),
        F.max(F.when(completed_send, F.struct("at", "phi"))).over(_message()).alias("writer"),
        F.min(F.when(completed_send, F.col("at"))).over(_message()).alias("first_writer"),
        _any(is_send & (F.col("type") == "open")).alias("cut_off"),
        _any(is_send & (F.col("type") == "fail")).alias("failed"),
        _any(is_send & (F.col("f") == "txn")).alias("in_txn"),
    )
    has_writer = F.col("writer").isNotNull() | (F.col("cut_off") & F.col("polled"))
    poll_suspect = ~has_writer | F.col("failed") | (F.col("in_txn") & (F.col("f") == "txn"))
    suspect = (
        F.coalesce("malformed", F.lit(False))
        | (F.col("low") != F.col("high"))
        | (F.col("offset").isNotNull() & ~F.col("in_log"))
        | (is_poll & poll_suspect)
    )
    edge = is_poll & (F.col("writer.at") != F.col("at"))
    known = F.col("message").isNotNull()
    several = completed_send & (F.col("writer.at") != F.col("first_writer"))
    return of_message.select(
        *COLUMNS,
        "number",
        "offset",
        "message",
        "polled",
        F.coalesce("offset", F.when(known, F.col("high"))).alias("effective"),
        (known & F.coalesce(suspect, F.lit(False))).alias("suspect"),
        (is_send & _committed() & F.col("high").isNotNull() & ~F.col("polled")).alias("unread"),
        (is_send & (F.col("type") == "ok") & ~F.col("polled")).alias("unseen"),
        F.when(known & edge, F.col("writer")).alias("edge"),
        F.when(known & several, F.col("writer.at")).alias("resent"),
    )


def _with_logs(rows: DataFrame) -> DataFrame:
    known = F.when(states_offset(), F.struct("at", "at_ns"))
    beyond = _log().rangeBetween(Window.unboundedPreceding, -1)
    read_from_here = F.max(F.coalesce("polled", F.lit(False))).over(
        _log().rangeBetween(Window.unboundedPreceding, 0)
    )
    clash = (F.lag("effective").over(_log()) == F.col("effective")) & (
        F.lag("message").over(_log()) != F.col("message")
    )
    return rows.select(
        *COLUMNS,
        "number",
        "offset",
        "message",
        "unseen",
        "edge",
        "resent",
        F.coalesce(F.col("edge.phi") > F.col("phi"), F.lit(False)).alias("backward"),
        F.when(F.col("effective").isNotNull(), -F.dense_rank().over(_log())).alias("index"),
        (
            F.col("suspect") | F.coalesce(clash, F.lit(False)) | (F.col("unread") & read_from_here)
        ).alias("suspect"),
        F.min(known).over(beyond)["at_ns"].alias("expired"),
    )


def _message() -> WindowSpec:
    return Window.partitionBy("run", "key", "message")


def _log() -> WindowSpec:
    return Window.partitionBy("run", "key").orderBy(F.desc("effective"))


def _committed() -> Column:
    """Whether a send must have taken effect: acknowledged, or of unknown outcome and seen."""
    return (F.col("type") == "ok") | ((F.col("type") == "info") & F.col("seen"))


def states_offset() -> Column:
    """Whether a row says of an offset that it exists."""
    return F.col("offset").isNotNull() & F.col("type").isin("ok", "info")


def _any(condition: Column) -> Column:
    return F.max(condition).over(_message())
