"""The worst realtime lag of each run, from the worst of each key.

The rare cases that the one row a key does not decide are looked up here: polls whose times do not ascend,
several keys that lag equally, and runs in which nothing lags at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from analysis.checker.processes import IS_OK_POLL
from analysis.checker.runs import RunFacts
from analysis.checker.scalars import decode
from runs.keyword import Keyword
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


@dataclass(frozen=True)
class _Worst:
    """The poll that lags most, and its keys that do so; None where it is all that its process knew."""

    lag_ns: int
    invoked_ns: int
    process: int
    at: int
    behind: list[Any] | None


def worst_lags(
    facts: Mapping[int, RunFacts], keys: DataFrame, touches: DataFrame, placed: DataFrame
) -> dict[int, dict[Keyword, Any]]:
    """`worst-realtime-lag` of each run."""
    lagging = {run: each.worst for run, each in facts.items() if each.worst and each.worst.lag > 0}
    calm = [run for run, each in facts.items() if each.worst and run not in lagging]
    behind = _furthest_behind(lagging, keys)
    worst = {
        run: _Worst(each.lag, each.now, each.process, -each.minus_at, behind[run])
        for run, each in lagging.items()
    }
    for row in _first_polls(calm, touches, placed):
        worst[row.run] = _Worst(0, row.now, row.process, row["at"], None)
    order = _known_keys(worst, touches)
    found = {run: dict(NO_LAG) for run in facts}
    for run, each in worst.items():
        known = order.get(run) or each.behind or []
        key = named_key(known, known if each.behind is None else each.behind)
        found[run] = lag_report(each.lag_ns, each.invoked_ns, each.process, key)
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


def _known_keys(worst: Mapping[int, _Worst], touches: DataFrame) -> dict[int, list[Any]]:
    """Where several keys could be named: all that the process knew after its poll, as it came to know them."""
    asked = [
        (run, each.process, each.at)
        for run, each in worst.items()
        if each.behind is None or len(each.behind) > 1
    ]
    if not asked:
        return {}
    polls = touches.sparkSession.createDataFrame(asked, "run int, process long, until long")
    mine = touches.join(F.broadcast(polls), ["run", "process"]).filter("at <= until")
    epoch = F.max("lag_epoch").over(Window.partitionBy("run"))
    known = mine.withColumn("epoch", epoch).filter("lag_epoch = epoch").filter(_LEARNS)
    first = known.groupBy("run", "key").agg(F.min(F.struct("at", "kind", "place")).alias("first"))
    found: dict[int, list[Any]] = {}
    for row in first.orderBy("run", "first").collect():
        found.setdefault(row.run, []).append(decode(row.key))
    return found
