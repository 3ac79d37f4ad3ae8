"""The pass by key and process: whether messages come one index after the other, and how far polls lag.

Order: a sighting is compared with the one before it in its transaction, and the first of a transaction with
the last of the process's transaction before, unless an assignment in between did not name the key. `skips`
tells of each that is not one index further (between sends: not further at all); only those can be cases
of `int-*`, `poll-skip` and `nonmonotonic-*`.

Lag: a process's knowledge of a key changes at rows of this table only. Between two of them the lag grows
with time, so that only the last poll in between can have the greatest: `worst` is its lag, and which it is.
That needs polls whose times ascend; `unsteady` processes are looked at poll by poll (see `lag`).
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from analysis.checker.evidence import COLUMNS

_FOUND = (
    "offset",
    "message",
    "unseen",
    "edge",
    "resent",
    "backward",
    "suspect",
    "index",
    "expired",
)


def stepped(judged: DataFrame, touches: DataFrame) -> DataFrame:
    """Sightings and assignments with `skips`, and what lag needs; see above."""
    assigns = touches.filter(_is("assign") & F.col("type").isin("ok", "info"))
    rows = judged.unionByName(
        assigns.select(*COLUMNS, F.lit(0).alias("number")), allowMissingColumns=True
    )
    return _with_lag(_with_skips(_with_chains(rows)))


def _with_chains(rows: DataFrame) -> DataFrame:
    """Numbers the stretches in which a process kept a key, as the checks of order and of lag see it."""
    keeps_lag = _is("assign") & _is_ok() & (F.col("f") == "assign")
    breaks = rows.select(
        "*",
        _breaks("order_epoch", _is("assign")).alias("order_break"),
        _breaks("lag_epoch", keeps_lag).alias("lag_break"),
    )
    return breaks.select(
        "*",
        F.sum("order_break").over(_so_far()).alias("order_chain"),
        F.sum("lag_break").over(_so_far()).alias("lag_chain"),
    ).drop("order_break", "lag_break")


def _breaks(epoch: str, keeps: Column) -> Column:
    """1 where the process had lost the key since its previous row: an assignment did not name it."""
    passed = F.col(epoch) - F.lag(epoch).over(_process())
    return F.coalesce(passed != keeps.cast("int"), F.lit(True)).cast("int")


def _with_skips(rows: DataFrame) -> DataFrame:
    here = F.struct("order_chain", "index")
    last_poll = F.last(F.when(_is("poll") & _is_ok(), here), ignorenulls=True).over(_before())
    sent = _is("send") & F.col("type").isin("ok", "info")
    last_send = F.last(F.when(sent, here), ignorenulls=True).over(_before())
    inside = F.col("index") - F.lag("index").over(_process()) != 1
    after_poll = _is("poll") & _is_first() & (_steps_from(last_poll) != 1)
    after_send = sent & _is_first() & (_steps_from(last_send) < 1)
    skips = F.when(_is_first(), after_poll | after_send).otherwise(inside)
    return rows.withColumn("skips", F.col("message").isNotNull() & F.coalesce(skips, F.lit(False)))


def _steps_from(last: Column) -> Column:
    """How many indices further than `last` a row is; null when nothing says so."""
    return F.when(last["order_chain"] == F.col("order_chain"), F.col("index") - last["index"])


def _with_lag(rows: DataFrame) -> DataFrame:
    knows = F.struct("lag_chain", F.coalesce("offset", F.lit(-1)).alias("offset"), "expired")
    assigned = _is("assign") & _is_ok() & (F.col("f") == "assign")
    in_txn = _is("send") & _is_ok() & (F.col("f") == "txn") & F.col("offset").isNotNull()
    state = F.max(F.when(assigned | (_is("poll") & _is_ok()) | in_txn, knows)).over(_so_far())
    following = F.lead(F.struct("lag_epoch", "before", "at")).over(_process())
    stays = following["lag_epoch"] == F.col("lag_epoch")
    tells = F.col("offset").isNotNull() & F.col("type").isin("ok", "info")
    first_known = F.min(F.when(tells, F.struct("at", "at_ns"))).over(
        Window.partitionBy("run", "key")
    )
    with_state = rows.select(
        "*",
        state.alias("state"),
        F.when(stays, following["at"]).alias("until"),
        F.when(stays, following["before"]).otherwise(F.col("last")).alias("poll"),
    ).select(
        *COLUMNS,
        *_FOUND,
        "number",
        "skips",
        "poll",
        "until",
        (F.col("state.lag_chain") == F.col("lag_chain")).alias("is_known"),
        F.when(F.col("state.offset") < 0, first_known["at_ns"])
        .otherwise(F.col("state.expired"))
        .alias("expires"),
    )
    lag = F.when(
        F.col("is_known") & (F.col("poll.at") >= F.col("at")),
        F.greatest(F.col("poll.now") - F.col("expires"), F.lit(0)),
    )
    worst = F.struct(lag.alias("lag"), (-F.col("poll.at")).alias("minus_at"), "process", "poll.now")
    return with_state.withColumn("worst", F.when(lag.isNotNull(), worst))


def _process() -> WindowSpec:
    return Window.partitionBy("run", "key", "process").orderBy("at", "kind", "number")


def _so_far() -> WindowSpec:
    return _process().rowsBetween(Window.unboundedPreceding, 0)


def _before() -> WindowSpec:
    return _process().rowsBetween(Window.unboundedPreceding, -1)


def _is(kind: str) -> Column:
    return F.col("kind") == kind


def _is_ok() -> Column:
    return F.col("type") == "ok"


def _is_first() -> Column:
    """Whether a sighting is the first of its transaction."""
    return F.col("number") == 0
