"""The worst realtime lag of each run, from the worst of each key.

The rare cases that the one row a key does not decide are looked up here: polls whose times do not ascend,
several keys that lag equally, and runs in which nothing lags at all.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analysis.checker.processes import IS_OK_POLL
from analysis.checker.runs import RunFacts
from analysis.checker.scalars import decode
from bench.keyword import Keyword
from workloads.kafka.checker.lag import NO_LAG, lag_report, named_key

# A row from which on a process knows a key, if it keeps it.
_LEARNS = (
    "type = 'ok' and (kind = 'poll' or (kind = 'assign' and f = 'assign')"
    " or (kind = 'send' and f = 'txn' and exists(offsets, offset -> offset is not null)))"
)


def poll_by_poll(stepped: DataFrame, placed: DataFrame) -> DataFrame:
    """`worst` of each key of the runs with unsteady processes, from every poll: `run`, `key`, `worst`."""
    unsteady = placed.filter("unsteady").select("run").distinct()
    polls = placed.filter(IS_OK_POLL).select(
        "run", "process", "lag_epoch", F.col("at").alias("poll_at"), "now"
    )
    known = stepped.filter("is_known").join(F.broadcast(unsteady), "run", "left_semi")
    pairs = known.join(polls, ["run", "process", "lag_epoch"]).filter(
        "poll_at >= at and (until is null or poll_at < until)"
    )
    lag = F.greatest(F.coalesce(F.col("now") - F.col("expires"), F.lit(0)), F.lit(0))
    worst = F.struct(lag.alias("lag"), (-F.col("poll_at")).alias("minus_at"), "process", "now")
    return pairs.groupBy("run", "key").agg(F.max(worst).alias("worst"))


def worst_lags(
    facts: Mapping[int, RunFacts], keys: DataFrame, touches: DataFrame, placed: DataFrame
) -> dict[int, dict[Keyword, Any]]:
    """`worst-realtime-lag` of each run."""
    lagging = {run: each.worst for run, each in facts.items() if each.worst and each.worst.lag > 0}
    calm = [run for run, each in facts.items() if each.worst and run not in lagging]
    found = {run: dict(NO_LAG) for run in facts}
    for run, behind in _furthest_behind(lagging, keys).items():
        worst = lagging[run]
        key = behind[0]
        if len(behind) > 1:
            key = named_key(_known_keys(run, worst.process, -worst.minus_at, touches), behind)
        found[run] = lag_report(worst.lag, worst.now, worst.process, key)
    for row in _first_polls(calm, touches, placed):
        order = _known_keys(row.run, row.process, row["at"], touches)
        found[row.run] = lag_report(0, row.now, row.process, named_key(order, order))
    return found


def _furthest_behind(lagging: Mapping[int, Any], keys: DataFrame) -> dict[int, list[Any]]:
    """The keys that lag as much as any at the worst poll."""
    found: dict[int, list[Any]] = {run: [] for run in lagging}
    if lagging:
        largest = keys.groupBy("run").agg(F.max("worst").alias("largest"))
        behind = keys.join(F.broadcast(largest), "run").filter("worst = largest and worst.lag > 0")
        for row in behind.select("run", "key").collect():
            found[row.run].append(decode(row.key))
    return found


def _first_polls(runs: list[int], touches: DataFrame, placed: DataFrame) -> list[Any]:
    """The first poll of each run by a process that knew any key."""
    if not runs:
        return []
    epoch = ["run", "process", "lag_epoch"]
    polls = placed.filter(F.col("run").isin(runs)).filter(IS_OK_POLL)
    learned = touches.filter(F.col("run").isin(runs)).filter(_LEARNS)
    told = learned.filter("kind <> 'assign'").select("run", "at")
    assigned = learned.filter("kind = 'assign'").select(*epoch).distinct()
    after = assigned.join(polls.select(*epoch, "at"), epoch).select("run", "at")
    first = told.union(after).groupBy("run").agg(F.min("at").alias("at"))
    return polls.join(F.broadcast(first), ["run", "at"]).collect()


def _known_keys(run: int, process: int, at: int, touches: DataFrame) -> list[Any]:
    """The keys that a process knew after its poll at `at`, as it came to know them."""
    mine = touches.filter((F.col("run") == run) & (F.col("process") == process))
    until = mine.filter(F.col("at") <= at)
    epoch = until.agg(F.max("lag_epoch").alias("epoch")).first()["epoch"]
    now_known = until.filter((F.col("lag_epoch") == epoch) & F.expr(_LEARNS))
    first = now_known.groupBy("key").agg(F.min(F.struct("at", "kind", "place")).alias("first"))
    return [decode(row.key) for row in first.orderBy("first").collect()]
