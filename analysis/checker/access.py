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

The pass by key over single messages: what their content could be accused of, and where they lie.

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

The pass by key and process: whether messages come one index after the other, and how far polls lag.

Order: a message is compared with the one before it in its transaction, and the first of a transaction with
the last of the process's transaction before, unless an assignment in between did not name the key. `skips`
marks each that is not one index further (between sends: not further at all). Only those can be cases
of `int-*`, `poll-skip` and `nonmonotonic-*`.

Lag: a process's knowledge of a key changes only at rows of this table. Between two of them the lag grows
with time, so only the last poll in between can have the greatest: `worst` is its lag, and which poll it is.
This needs polls whose times ascend; `worst_poll_by_poll` looks at every poll of the other runs.
"""

from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation, Window, WindowSpec
from pyspark.sql import functions as F

from analysis.checker.schemas import ASSIGNMENTS, recognised, with_parts
from workloads.kafka.checker.observed import MALFORMED
from workloads.kafka.checker.unseen import SHOWN_OF_A_KEY

IS_OK_POLL = "type = 'ok' and f in ('poll', 'txn')"
KEY = ("run", "key")
_OPERATION = ("run", "process", "f", "type", "at", "at_ns", "invoked_at", "value", "parts")
_CARRIED = ("run", "process", "f", "type", "at_ns", "invoked_at")
_PLACED = ("phi", "order_epoch", "lag_epoch", "before", "last")


@dataclass(frozen=True)
class Accesses:
    """The table, what the caller unpersists in the end, and whether some process is `unsteady`."""

    rows: DataFrame
    persisted: DataFrame
    unsteady: bool


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
        *_OPERATION,
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


def accesses(placed: DataFrame, partitions: int) -> Accesses:
    """`placed` operations by key, with `seen`: whether a poll shows a send of unknown outcome.

    `at` is that of the invocation where an operation was never completed.
    """
    rows, counts = _persisted(placed, partitions, irregular=False)
    if counts["irregular"]:
        rows.unpersist()
        rows, counts = _persisted(placed, partitions, irregular=True)
    seen = _with_seen(rows) if counts["doubtful"] else rows.withColumn("seen", F.lit(False))
    return Accesses(seen, rows, counts["unsteady"] > 0)


def _persisted(
    placed: DataFrame, partitions: int, irregular: bool
) -> tuple[DataFrame, dict[str, int]]:
    of_operations, of_accesses = Observation(), Observation()
    watched = recognised(placed).observe(
        of_operations,
        F.count_if("irregular").alias("irregular"),
        F.count_if("unsteady").alias("unsteady"),
    )
    regular, in_python = map(_columns, with_parts(watched))
    rows = regular.unionByName(in_python) if irregular else regular
    rows = rows.observe(of_accesses, F.count_if(_is_doubtful()).alias("doubtful"))
    persisted = rows.repartition(partitions, *KEY).persist(StorageLevel.DISK_ONLY)
    persisted.count()
    return persisted, {**of_operations.get, **of_accesses.get}


def _columns(parts: DataFrame) -> DataFrame:
    return parts.select(*_CARRIED, *_PLACED, F.coalesce("at", "invoked_at").alias("at"), "part.*")


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


# ---------------------------------------------------------------- evidence

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
    known = F.when(_states_offset(), F.struct("at", "at_ns"))
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


def _states_offset() -> Column:
    return F.col("offset").isNotNull() & F.col("type").isin("ok", "info")


def _any(condition: Column) -> Column:
    return F.max(condition).over(_message())


# ---------------------------------------------------------------- steps


def stepped(judged: DataFrame, accesses: DataFrame) -> DataFrame:
    """Messages and assignments with `skips`, and what lag needs; see above."""
    assigns = accesses.filter(_is("assign") & F.col("type").isin("ok", "info"))
    rows = judged.unionByName(
        assigns.select(*COLUMNS, F.lit(0).alias("number")), allowMissingColumns=True
    )
    return _with_lag(_with_skips(_with_chains(rows)))


def _with_chains(rows: DataFrame) -> DataFrame:
    """Numbers the stretches in which a process held a key, as the checks of order and of lag see it."""
    names_for_lag = _is("assign") & _is_ok() & (F.col("f") == "assign")
    breaks = rows.select(
        "*",
        _breaks("order_epoch", _is("assign")).alias("order_break"),
        _breaks("lag_epoch", names_for_lag).alias("lag_break"),
    )
    return breaks.select(
        "*",
        F.sum("order_break").over(_so_far()).alias("order_chain"),
        F.sum("lag_break").over(_so_far()).alias("lag_chain"),
    ).drop("order_break", "lag_break")


def _breaks(epoch: str, names: Column) -> Column:
    """1 where the process had lost the key since its previous row: an assignment did not name it."""
    passed = F.col(epoch) - F.lag(epoch).over(_process())
    return F.coalesce(passed != names.cast("int"), F.lit(True)).cast("int")


def _with_skips(rows: DataFrame) -> DataFrame:
    here = F.struct("order_chain", "index")
    last_poll = F.last(F.when(_is("poll") & _is_ok(), here), ignorenulls=True).over(_before())
    sent = _is("send") & F.col("type").isin("ok", "info")
    last_send = F.last(F.when(sent, here), ignorenulls=True).over(_before())
    is_first = F.col("number") == 0
    inside = F.col("index") - F.lag("index").over(_process()) != 1
    after_poll = _is("poll") & is_first & (_steps_from(last_poll) != 1)
    after_send = sent & is_first & (_steps_from(last_send) < 1)
    skips = F.when(is_first, after_poll | after_send).otherwise(inside)
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
    first_known = F.min(F.when(_states_offset(), F.struct("at", "at_ns"))).over(
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
        F.max(_true("suspect") | _true("skips")).alias("suspicious"),
        F.collect_set(F.when(F.col("unseen"), F.col("message"))).alias("unseen"),
        F.max(_is("send") & _is_ok()).alias("is_sent"),
        F.min(F.when(_is("poll") & _is_ok(), F.col("at"))).alias("first_polled_at"),
        F.max("worst").alias("worst"),
        F.max(F.col("edge").isNotNull()).alias("has_edge"),
        F.collect_set(F.when(_true("backward"), backward)).alias("backward"),
        F.collect_set(F.when(F.col("resent").isNotNull(), resent)).alias("resent"),
    )


def unseen_shown(keys: DataFrame) -> DataFrame:
    """The number of unseen messages of each key that has any, and the first ones, as the bench orders them."""
    sortable = F.transform("unseen", _natural)
    shown = F.transform(
        F.slice(F.sort_array(sortable), 1, SHOWN_OF_A_KEY), lambda each: each["text"]
    )
    missing = keys.filter(F.size("unseen") > 0)
    return missing.select(*KEY, F.size("unseen").alias("count"), shown.alias("messages"))


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


def _is(kind: str) -> Column:
    return F.col("kind") == kind


def _is_ok() -> Column:
    return F.col("type") == "ok"


def _true(column: str) -> Column:
    return F.coalesce(F.col(column), F.lit(False))
