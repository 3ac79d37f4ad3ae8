"""Cycles of dependencies are among the few transactions that can be on one.

Every transaction has a place
`phi` in the history: that of its invocation for a send, and that of its completion for any other. Realtime
order leads forward in phi. So does reading, because no transaction reads a message before its send begins. So
every cycle has an edge that leads back. A *stretch* is the union of such edges that overlap, and every
component lies within one. A valid history of Maelstrom's workload has no stretch. The transactions of all
stretches go to the graph functions of the bench.

A stretch can be as long as the history. If there are more than `LIMIT` transactions, only the ends of edges
that lead back are judged, with all transactions that both send and poll. A shortest cycle between
operations that do only one of these needs no others. Then `scc-size` counts only what is judged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analysis.checker.schemas import decode
from analysis.checker.sources import Ops, Source
from runs.facts import grouped
from workloads.digraph import EMPTY_GRAPH
from workloads.kafka.checker.cases import Cases
from workloads.kafka.checker.cycles import dependency_graph, graph_cases
from workloads.kafka.checker.observed import TRANSACTIONS, Facts, Key, Message, Transaction

LIMIT = 200_000  # transactions that the driver takes at once: about half a gigabyte
_BUCKET = 1 << 16  # places
Stretch = tuple[int, int, int]  # run, first and last place


@dataclass(frozen=True)
class Remainder(Facts):
    """The transactions of all stretches of a run, and the last writers of messages with several writers."""

    last_writers: Mapping[tuple[Key, Message], int] | None = None  # its place in `history`

    @cached_property
    def writers(self) -> dict[Key, dict[Message, Transaction]]:
        found = super().writers
        for (key, message), place in (self.last_writers or {}).items():
            writer = found.get(key, {}).get(message)
            if writer is not None and writer.completed_at != place:
                del found[key][message]
        return found


def cycles(
    source: Source,
    placed: DataFrame,
    keys: DataFrame,
    has_dependencies: Mapping[int, bool],
    has_backward_edges: bool,
) -> dict[int, Cases]:
    """The cases of each run that are cycles, and `empty-transaction-graph`.

    Args:
        source: the histories.
        placed: their operations with `phi` (see `access`).
        keys: see `steps.key_facts`.
        has_dependencies: whether any transaction of a run depends on another.
        has_backward_edges: whether an edge of any run leads back in phi.
    """
    found: dict[int, Cases] = {
        run: {} if any_at_all else {EMPTY_GRAPH: [{}]}
        for run, any_at_all in has_dependencies.items()
    }
    if has_backward_edges:
        for run, remainder in _remainders(source, placed, keys).items():
            graph = dependency_graph(remainder, {}, ww_deps=False)
            found[run] |= grouped(graph_cases(graph, remainder, {}))
    return found


def _remainders(source: Source, placed: DataFrame, keys: DataFrame) -> dict[int, Remainder]:
    backward = keys.select("run", F.explode("backward").alias("edge")).select("run", "edge.*")
    ends = backward.limit(LIMIT).collect()
    stretches = merged([(row.run, row.low, row.high) for row in ends])
    transactions = placed.filter(F.col("f").isin(*sorted(TRANSACTIONS)) & F.col("at").isNotNull())
    members = (
        _within(transactions, stretches).select("run", "at", "invoked_at", "phi", "f").persist()
    )
    if members.count() > LIMIT:
        places = {(row.run, place) for row in ends for place in (row.low, row.high)}
        frame = placed.sparkSession.createDataFrame(sorted(places), "run int, phi long")
        is_end = members.join(F.broadcast(frame), ["run", "phi"], "left_semi")
        members = is_end.union(members.filter("f = 'txn'")).distinct().limit(LIMIT)
    writers = _last_writers(keys)
    chosen = members.collect()
    pairs = [(row.run, each) for row in chosen for each in (row["at"], row.invoked_at)]
    wanted = [pair for pair in pairs if pair[1] is not None]
    ops = source.ops(placed.sparkSession.createDataFrame(wanted, "run int, at long"))
    return {
        run: _remainder(run, [row for row in chosen if row.run == run], ops, writers.get(run, {}))
        for run in sorted({row.run for row in chosen})
    }


def merged(edges: Sequence[Stretch]) -> list[Stretch]:
    """Join edges that overlap, run by run; returns the stretches in order."""
    stretches: list[Stretch] = []
    for run, low, high in sorted(edges):
        if stretches and stretches[-1][0] == run and low <= stretches[-1][2]:
            _, first, last = stretches.pop()
            stretches.append((run, first, max(high, last)))
        else:
            stretches.append((run, low, high))
    return stretches


def _within(transactions: DataFrame, stretches: Sequence[Stretch]) -> DataFrame:
    frame = transactions.sparkSession.createDataFrame(
        list(stretches), "stretch_run int, low long, high long"
    )
    bounds = [F.floor(F.col(end) / _BUCKET) for end in ("low", "high")]
    by_bucket = frame.withColumn("bucket", F.explode(F.sequence(*bounds)))
    same = (F.col("run") == F.col("stretch_run")) & F.col("phi").between(
        F.col("low"), F.col("high")
    )
    bucket = F.floor(F.col("phi") / _BUCKET) == F.col("bucket")
    return transactions.join(F.broadcast(by_bucket), same & bucket, "left_semi")


def _last_writers(keys: DataFrame) -> dict[int, dict[tuple[Key, Message], int]]:
    found: dict[int, dict[tuple[Key, Message], int]] = {}
    rows = keys.filter(F.size("resent") > 0).select("run", "key", F.explode("resent").alias("each"))
    for row in rows.limit(LIMIT).collect():
        found.setdefault(row.run, {})[decode(row.key), decode(row.each.message)] = row.each.writer
    return found


def _remainder(
    run: int, rows: Sequence[Any], ops: Ops, writers: Mapping[tuple[Key, Message], int]
) -> Remainder:
    """The history of the chosen transactions."""
    places = sorted(
        place for row in rows for place in (row["at"], row.invoked_at) if place is not None
    )
    history = [ops[run, place] for place in places]
    number = {place: number for number, place in enumerate(places)}
    pairs = {
        number[row["at"]]: number[row.invoked_at] for row in rows if row.invoked_at is not None
    }
    last_writers = {written: number.get(place, -1) for written, place in writers.items()}
    return Remainder(history, frozenset(), pairs, last_writers)
