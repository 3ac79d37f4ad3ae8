"""How far behind the present polls were: what `runs.lag` defines, for Spark."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from analysis.arrow import arrow_batch, map_parts
from analysis.metrics.latency import quantiles
from analysis.schemas import LONG, TEXT, struct
from runs.lag import BEFORE_ALL, NEVER, Place, Position

_LAGS = struct(run_id=TEXT, process=LONG, node=TEXT, invoked_ns=LONG, lag_ns=LONG)


def poll_lags(operations: DataFrame) -> DataFrame:
    """The lag of each successful poll.

    Offsets are found by key, positions by process, one after the other in the order of completion: no
    machine holds more than one sorted part of a run, and of it only the keys that a process holds.

    Returns:
        run_id, process, node, invoked_ns, lag_ns (0: up to date); in no order.
    """
    told = operations.filter("outcome <> 'fail' and completed_index is not null").select(
        "run_id",
        "process",
        "node",
        "f",
        "outcome",
        "invoked_ns",
        "completed_index",
        "completed_ns",
        _offsets().alias("offsets"),
        F.when(F.col("f") == "assign", F.from_json("completed_value_json", "array<string>")).alias(
            "assigned"
        ),
    )
    expiries = _expiries(told)
    steps = told.filter("outcome = 'ok' and f in ('poll', 'txn', 'assign', 'subscribe')")
    touches = steps.select("*", F.explode_outer(_held_offsets()).alias("key", "offset"))
    with_expiry = touches.join(expiries, ["run_id", "key", "offset"], "left")
    step = ["run_id", "process", "completed_index", "invoked_ns", "node", "f"]
    moves = F.collect_list(
        F.struct("key", "offset", F.coalesce("expires_ns", F.lit(NEVER)).alias("expires_ns"))
    )
    by_process = (
        with_expiry.groupBy(step)
        .agg(F.filter(moves, lambda move: move["key"].isNotNull()).alias("moves"))
        .repartition("run_id", "process")
        .sortWithinPartitions("run_id", "process", "completed_index")
    )
    return map_parts(by_process, _lags, _LAGS)


def realtime_lag(lags: DataFrame) -> DataFrame:
    """Quantiles of the lag of each run's polls.

    Args:
        lags: as `poll_lags` gives them.
    Returns:
        run_id, poll_count, lag_ns_p50, lag_ns_p90, lag_ns_p99, lag_ns_max; ordered by run_id. A quantile
        is a value that occurred, as in `latency_quantiles`.
    """
    aggregates = [F.count("*").alias("poll_count"), *quantiles("lag_ns")]
    return lags.groupBy("run_id").agg(*aggregates).orderBy("run_id")


def _offsets() -> Column:
    """By key, the highest offset that an operation tells of: of polled messages, and of what it sent."""
    parsed = F.from_json("completed_value_json", "array<array<string>>")
    polled = F.flatten(
        F.transform(
            F.filter(parsed, lambda op: (op[0] == "poll") & (F.size(op) > 1)), _polled_offsets
        )
    )
    sent = F.transform(F.filter(parsed, lambda op: op[0] == "send"), _sent_offset)
    known = F.filter(F.concat(polled, sent), lambda pair: pair["offset"].isNotNull())
    is_transaction = F.col("f").isin("send", "poll", "txn")
    return F.when(is_transaction, known)


def _polled_offsets(op: Column) -> Column:
    by_key = F.from_json(op[1], "map<string, array<array<string>>>")
    return F.transform(
        F.map_entries(by_key),
        lambda entry: F.struct(entry["key"].alias("key"), _highest(entry["value"]).alias("offset")),
    )


def _highest(pairs: Column) -> Column:
    offsets = F.transform(pairs, lambda pair: pair[0].cast("long"))
    return F.coalesce(F.array_max(offsets), F.lit(BEFORE_ALL).cast("long"))


def _sent_offset(op: Column) -> Column:
    pair = F.from_json(op[2], "array<string>")
    return F.struct(op[1].alias("key"), pair[0].try_cast("long").alias("offset"))


def _held_offsets() -> Column:
    """What a step does to the positions of its process: {key: offset}; an assign names keys only."""
    start = F.lit(BEFORE_ALL).cast("long")
    assigned = F.transform(
        "assigned", lambda key: F.struct(key.alias("key"), start.alias("offset"))
    )
    pairs = F.when(F.col("f") == "assign", assigned).otherwise(F.col("offsets"))
    # Of a key that a transaction polled twice, the highest.
    return F.aggregate(
        F.coalesce(pairs, F.array().cast("array<struct<key: string, offset: long>>")),
        F.create_map().cast("map<string, long>"),
        lambda held, pair: F.map_zip_with(
            held, F.create_map(pair["key"], pair["offset"]), lambda _, a, b: F.greatest(a, b)
        ),
    )


def _expiries(told: DataFrame) -> DataFrame:
    """run_id, key, offset, expires_ns: when a higher offset of the key was first known; null: never."""
    known = told.select("run_id", "completed_ns", F.inline("offsets").alias("key", "offset"))
    first = (
        known.filter(F.col("offset") > BEFORE_ALL)
        .groupBy("run_id", "key", "offset")
        .agg(F.min("completed_ns").alias("known_ns"))
    )
    start = first.groupBy("run_id", "key").agg(
        F.lit(BEFORE_ALL).cast("long").alias("offset"), F.lit(None).cast("long").alias("known_ns")
    )
    higher = Window.partitionBy("run_id", "key").orderBy(F.desc("offset"))
    before = higher.rowsBetween(Window.unboundedPreceding, -1)
    return first.unionByName(start).select(
        "run_id", "key", "offset", F.min("known_ns").over(before).alias("expires_ns")
    )


def _lags(parts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Walks each process of a sorted part, from one batch of rows to the next."""
    owner, position = None, Position()
    for part in parts:
        lags = []
        for row in part.to_pylist():
            if (row["run_id"], row["process"]) != owner:
                owner, position = (row["run_id"], row["process"]), Position()
            moves = {
                move["key"]: Place(move["offset"], move["expires_ns"]) for move in row["moves"]
            }
            if row["f"] in ("assign", "subscribe"):
                position.assign(moves)
            else:
                position.advance(moves)
                lags.append({**row, "lag_ns": position.lag(row["invoked_ns"])})
        yield arrow_batch(lags, _LAGS)
