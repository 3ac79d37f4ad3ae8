"""The pass by key and process: whether messages come one index after the other, and how far polls lag.

Order: a message is compared with the one before it in its transaction, and the first of a transaction with
the last of the process's transaction before, unless an assignment in between did not name the key. `skips`
marks each that is not one index further (between sends: not further at all). Only those can be cases
of `int-*`, `poll-skip` and `nonmonotonic-*`.

Lag: a process's knowledge of a key changes only at rows of this table. Between two of them the lag grows
with time, so only the last poll in between can have the greatest: `worst` is its lag, and which poll it is.
This needs polls whose times ascend; `worst_poll_by_poll` looks at every poll of the other runs.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from analysis.checker.access import IS_OK_POLL, KEY
from analysis.checker.evidence import COLUMNS, FOUND, states_offset
from workloads.kafka.checker.unseen import SHOWN_OF_A_KEY

# What a row says, in SQL.
POLLED = "kind = 'poll' and type = 'ok'"
SENT = "kind = 'send' and type in ('ok', 'info')"
ASSIGNED = "kind = 'assign' and type = 'ok' and f = 'assign'"
# After these a process knows an offset of a key.
LEARNT = (
    f"{ASSIGNED} or {POLLED} or kind = 'send' and type = 'ok' and f = 'txn' and offset is not null"
)


def stepped(judged: DataFrame, accesses: DataFrame) -> DataFrame:
    """Messages and assignments with `skips`, and what lag needs; see above."""
    assigns = accesses.filter("kind = 'assign' and type in ('ok', 'info')")
    rows = judged.unionByName(
        assigns.select(*COLUMNS, F.lit(0).alias("number")), allowMissingColumns=True
    )
    return _with_lag(_with_skips(_with_chains(rows)))


def _with_chains(rows: DataFrame) -> DataFrame:
    """Numbers the stretches in which a process held a key, as the checks of order and of lag see it."""
    breaks = rows.select(
        "*",
        _breaks("order_epoch", "kind = 'assign'").alias("order_break"),
        _breaks("lag_epoch", ASSIGNED).alias("lag_break"),
    )
    return breaks.select(
        "*",
        F.sum("order_break").over(_so_far()).alias("order_chain"),
        F.sum("lag_break").over(_so_far()).alias("lag_chain"),
    ).drop("order_break", "lag_break")


def _breaks(epoch: str, names: str) -> Column:
    """1 where the process had lost the key since its previous row: an assignment did not name it."""
    passed = F.col(epoch) - F.lag(epoch).over(_process())
    return F.coalesce(passed != F.expr(names).cast("int"), F.lit(True)).cast("int")


def _with_skips(rows: DataFrame) -> DataFrame:
    here = F.struct("order_chain", "index")
    last_poll = F.last(F.when(F.expr(POLLED), here), ignorenulls=True).over(_before())
    last_send = F.last(F.when(F.expr(SENT), here), ignorenulls=True).over(_before())
    is_first = F.col("number") == 0
    inside = F.col("index") - F.lag("index").over(_process()) != 1
    after_poll = (F.col("kind") == "poll") & (_steps_from(last_poll) != 1)
    after_send = F.expr(SENT) & (_steps_from(last_send) < 1)
    skips = F.when(is_first, after_poll | after_send).otherwise(inside)
    return rows.withColumn("skips", F.col("message").isNotNull() & F.coalesce(skips, F.lit(False)))


def _steps_from(last: Column) -> Column:
    """How many indices further than `last` a row is; null when nothing says so."""
    return F.when(last["order_chain"] == F.col("order_chain"), F.col("index") - last["index"])


def _with_lag(rows: DataFrame) -> DataFrame:
    knows = F.struct("lag_chain", F.coalesce("offset", F.lit(-1)).alias("offset"), "expired")
    state = F.max(F.when(F.expr(LEARNT), knows)).over(_so_far())
    following = F.lead(F.struct("lag_epoch", "before", "at")).over(_process())
    stays = following["lag_epoch"] == F.col("lag_epoch")
    first_known = F.min(F.when(states_offset(), F.struct("at", "at_ns"))).over(
        Window.partitionBy(*KEY)
    )
    with_state = rows.select(
        "*",
        state.alias("state"),
        F.when(stays, following["at"]).alias("until"),
        F.when(stays, following["before"]).otherwise(F.col("last")).alias("poll"),
    ).select(
        *COLUMNS,
        *FOUND,
        "skips",
        "poll",
        "until",
        (F.col("state.lag_chain") == F.col("lag_chain")).alias("is_held"),
        F.when(F.col("state.offset") < 0, first_known["at_ns"])
        .otherwise(F.col("state.expired"))
        .alias("expires"),
    )
    lag = F.when(F.col("is_held") & (F.col("poll.at") >= F.col("at")), _lag(F.col("poll.now")))
    return with_state.withColumn("worst", F.when(lag.isNotNull(), _worst(lag, F.col("poll"))))


def _lag(now: Column) -> Column:
    return F.greatest(now - F.col("expires"), F.lit(0))


def _worst(lag: Column, poll: Column) -> Column:
    """What the greatest of is the worst lag; of several, that of the earliest poll."""
    at, now = (-poll["at"]).alias("minus_at"), poll["now"].alias("now")
    return F.struct(lag.alias("lag"), at, "process", now)


def worst_poll_by_poll(stepped: DataFrame, placed: DataFrame) -> DataFrame:
    """`worst` of each key of the runs with unsteady processes, from every poll: `run`, `key`, `exact`."""
    unsteady = placed.filter("unsteady").select("run").distinct()
    poll = F.struct("at", "now").alias("ok_poll")
    polls = placed.filter(IS_OK_POLL).select("run", "process", "lag_epoch", poll)
    held = stepped.filter("is_held").join(F.broadcast(unsteady), "run", "left_semi")
    pairs = held.join(polls, ["run", "process", "lag_epoch"]).filter(
        "ok_poll.at >= at and (until is null or ok_poll.at < until)"
    )
    ok_poll = F.col("ok_poll")
    return pairs.groupBy(*KEY).agg(F.max(_worst(_lag(ok_poll["now"]), ok_poll)).alias("exact"))


def key_facts(stepped: DataFrame) -> DataFrame:
    """One row for each run and key, from which all verdicts follow.

    suspicious       its share must be looked at by the Python functions
    unseen           the acknowledged messages that were never polled; is_sent: any was acknowledged
    first_polled_at  place of the first successful poll of the key, null if there is none
    worst            the worst lag: lag (ns), minus_at, process, now; null without polls
    has_edge         some transaction polled what another sent
    backward         edges that lead back in phi, as (low, high): phi of the reader, of the writer
    resent           messages sent more than once, with the place of their last writer
    """
    backward = F.struct(F.col("phi").alias("low"), F.col("edge.phi").alias("high"))
    resent = F.struct("message", F.col("resent").alias("writer"))
    return stepped.groupBy(*KEY).agg(
        F.max(F.expr("coalesce(suspect, false) or coalesce(skips, false)")).alias("suspicious"),
        F.collect_set(F.when(F.col("unseen"), F.col("message"))).alias("unseen"),
        F.max(F.expr("kind = 'send' and type = 'ok'")).alias("is_sent"),
        F.min(F.when(F.expr(POLLED), F.col("at"))).alias("first_polled_at"),
        F.max("worst").alias("worst"),
        F.max(F.col("edge").isNotNull()).alias("has_edge"),
        F.collect_set(F.when(F.col("backward"), backward)).alias("backward"),
        F.collect_set(F.when(F.col("resent").isNotNull(), resent)).alias("resent"),
    )


def unseen_shown(keys: DataFrame) -> DataFrame:
    """The number of unseen messages of each key that has any, and the first ones, as the bench orders them."""
    shown = F.transform(
        F.slice(F.sort_array(F.transform("unseen", _natural)), 1, SHOWN_OF_A_KEY),
        lambda each: each["text"],
    )
    return keys.filter(F.size("unseen") > 0).select(
        *KEY, F.size("unseen").alias("count"), shown.alias("messages")
    )


def _natural(text: Column) -> Column:
    """What sorts the texts of messages like `unseen.natural`: by type, then by value."""
    mark = text.substr(1, 1)
    rank = F.when(mark == "#", 0).when(mark == '"', 2).otherwise(1)
    number = F.when(rank == 1, text.try_cast("decimal(38,0)"))
    return F.struct(rank.alias("rank"), number.alias("number"), text.alias("text"))


def _process() -> WindowSpec:
    return Window.partitionBy(*KEY, "process").orderBy("at", "kind", "number")


def _so_far() -> WindowSpec:
    return _process().rowsBetween(Window.unboundedPreceding, 0)


def _before() -> WindowSpec:
    return _process().rowsBetween(Window.unboundedPreceding, -1)
