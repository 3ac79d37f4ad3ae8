"""The whole job: from a source to a verdict for each of its runs.

*Shares*: the bench's own functions judge those of suspicious keys. A key's share of a history is a history
too: what its transactions said of that key, and the assignments that matter to it. `local_cases` finds in the
share what it finds of that key in the whole.

*Cycles* of dependencies are among the few transactions that can be on one. Every transaction has a place
`phi` in the history: that of its invocation for a send, and that of its completion for any other. Realtime
order leads forward in phi. So does reading, because no transaction reads a message before its send begins. So
every cycle has an edge that leads back. A *stretch* is the union of such edges that overlap, and every
component lies within one. A valid history of Maelstrom's workload has no stretch. The transactions of all
stretches go to the graph functions of the bench.

A stretch can be as long as the history. If there are more than `LIMIT` transactions, only the ends of edges
that lead back are judged, with all transactions that both send and poll. A shortest cycle between
operations that do only one of these needs no others. Then `scc-size` counts only what is judged.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import ceil
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from analysis.checker.access import (
    KEY,
    accesses,
    judged,
    key_facts,
    messages,
    placed,
    stepped,
    unseen_shown,
    worst_poll_by_poll,
)
from analysis.checker.schemas import CASE, decode
from analysis.checker.sources import Ops, Source
from analysis.schemas import map_groups
from runs import edn
from runs.facts import grouped
from runs.history import Op, printable
from runs.keyword import Keyword
from workloads.interface import Result
from workloads.kafka.checker.cases import EMPTY_GRAPH, SHOWN, Case, Cases, condensed
from workloads.kafka.checker.compose import NO_LAG, lag_report, local_cases, verdict
from workloads.kafka.checker.cycles import dependency_graph, graph_cases
from workloads.kafka.checker.logs import logs
from workloads.kafka.checker.observed import TRANSACTIONS, Facts, Key, Message, Transaction
from workloads.kafka.checker.unseen import unseen, unseen_report

OPERATIONS_A_PARTITION = 100_000  # so that what a task sorts fits into its share of 2 GB
# Rows arrive in the order of what they are grouped by; the aggregation that hashes would sort them again.
_STREAMING = ("spark.sql.execution.useObjectHashAggregateExec", "false")

Inspect = Callable[[DataFrame], None]
Errors = dict[int, dict[str, dict[Keyword, Any]]]  # by run and anomaly type


@dataclass(frozen=True)
class RunFacts:
    """A few numbers about a run, which the driver can hold; None where there is no such thing.

    Attributes:
        final: the last successful transaction: `at` and `at_ns`.
        first_acknowledged, last_invoked: places that show whether any transaction precedes another.
        has_edge: whether some transaction polled what another sent.
        backward: how many such edges lead back in phi.
        worst: the worst lag that a poll had: `lag` (ns), `process`, `now` and `key`.
    """

    run: int
    final: Row | None
    first_acknowledged: int | None
    last_invoked: int | None
    has_edge: bool | None
    backward: int | None
    worst: Row | None

    def has_dependencies(self) -> bool:
        """Whether any transaction depends on another."""
        first, last = self.first_acknowledged, self.last_invoked
        return bool(self.has_edge) or (first is not None and last is not None and first < last)

    def worst_lag(self) -> Result:
        """`worst-realtime-lag` as in results.edn."""
        if self.worst is None or self.worst.lag is None:
            return NO_LAG
        worst = self.worst
        return lag_report(worst.lag, worst.now, worst.process, decode(worst.key))


def judge(spark: SparkSession, source: Source, inspect: Inspect | None = None) -> dict[str, Result]:
    """The `:workload` map of results.edn for each run of `source`, by name.

    Verdict, types, counts and lag are those of the bench's `check`. Where a result shows some of many
    cases, or names one of several polls or keys that lag equally, the choice can be another one.

    Args:
        spark: where to do it.
        source: the histories.
        inspect: is called with all cases in keys' shares (`schemas.CASE`), also those that no result shows.
    """
    before = spark.conf.get(_STREAMING[0])
    spark.conf.set(*_STREAMING)
    try:
        return _judged(spark, source, inspect)
    finally:
        spark.conf.set(_STREAMING[0], before or "true")


def _judged(spark: SparkSession, source: Source, inspect: Inspect | None) -> dict[str, Result]:
    least = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    partitions = max(least, ceil(source.operations.count() / OPERATIONS_A_PARTITION))
    in_place = placed(source.operations.repartition(partitions, "run", "process"))
    by_key = accesses(in_place, partitions)
    steps = stepped(judged(messages(by_key.rows)), by_key.rows)
    keys = key_facts(steps)
    if by_key.unsteady:
        keys = keys.join(worst_poll_by_poll(steps, in_place), ["run", "key"], "left")
        keys = keys.withColumn("worst", F.coalesce("exact", "worst"))
    keys = keys.persist()
    try:
        facts = _run_facts(source.operations, keys)
        final_at = {run: each.final["at"] for run, each in facts.items() if each.final}
        found = share_cases(by_key.rows, keys, final_at).persist()
        if inspect:
            inspect(found)
        errors = _errors(spark, source, found)
        unseen = _unseen(keys, found)
        found.unpersist()
        cyclic = cycles(
            source,
            in_place,
            keys,
            has_dependencies={run: each.has_dependencies() for run, each in facts.items()},
            has_backward_edges=any(each.backward for each in facts.values()),
        )
    finally:
        keys.unpersist()
        by_key.persisted.unpersist()
    for run, cases in cyclic.items():
        errors.setdefault(run, {}).update(
            {name: condensed(name, each) for name, each in cases.items()}
        )
    for run, missing in unseen.items():
        if final := facts[run].final:
            errors.setdefault(run, {})["unseen"] = unseen_report(missing, final.at_ns)
    causes = _info_causes(source.operations)
    return {
        name: verdict(
            errors.get(run, {}),
            facts[run].worst_lag() if run in facts else NO_LAG,
            tuple(causes.get(run, ())),
        )
        for run, name in enumerate(source.names)
    }


def _run_facts(operations: DataFrame, keys: DataFrame) -> dict[int, RunFacts]:
    """The facts of each run in `operations` that has an operation of a client."""
    transaction = F.col("f").isin(*sorted(TRANSACTIONS))
    acknowledged = transaction & (F.col("type") == "ok")
    completed = transaction & (F.col("type") != "open")
    of_operations = operations.groupBy("run").agg(
        F.max(F.when(acknowledged, F.struct("at", "at_ns"))).alias("final"),
        F.min(F.when(acknowledged, F.col("at"))).alias("first_acknowledged"),
        F.max(F.when(completed, F.col("invoked_at"))).alias("last_invoked"),
    )
    of_keys = keys.groupBy("run").agg(
        F.max("has_edge").alias("has_edge"),
        F.sum(F.size("backward")).alias("backward"),
        F.max(F.when(F.col("worst").isNotNull(), F.struct("worst.*", "key"))).alias("worst"),
    )
    return {row.run: RunFacts(*row) for row in of_operations.join(of_keys, "run", "left").collect()}


def _errors(spark: SparkSession, source: Source, found: DataFrame) -> Errors:
    """What results.edn says of each type of anomaly in keys' shares."""
    found = found.filter("type <> 'unseen'")
    counts = found.groupBy("run", "type").count().collect()
    if not counts:
        return {}
    in_order = shown(found).orderBy("run", "type", "measure", "key", "number").collect()
    cases = grouped(((row.run, row.type), edn.loads(row.case)) for row in in_order)
    places = {
        (run, op["index"]) for (run, _), each in cases.items() for case in each for op in _ops(case)
    }
    ops = source.ops(spark.createDataFrame(sorted(places), "run int, at long")) if places else {}
    errors: Errors = {}
    for row in counts:
        whole = [_with_whole_ops(each, row.run, ops) for each in cases[row.run, row.type]]
        error = {**condensed(row.type, whole), Keyword("count"): row["count"]}
        errors.setdefault(row.run, {})[row.type] = error
    return errors


def _ops(case: Case) -> Iterator[edn.TaggedMap]:
    """The operations that a case of a share names."""
    for value in case.values():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, edn.TaggedMap):
                yield each


def _with_whole_ops(case: Case, run: int, ops: Mapping[tuple[int, int], Op]) -> Case:
    """The case with whole operations in place of those that say only what they say of the key."""

    def whole(value: Any) -> Any:
        if isinstance(value, list):
            return [whole(each) for each in value]
        if not isinstance(value, edn.TaggedMap):
            return value
        op = ops[run, value["index"]]
        # A send that the end of the history cut off counts as indefinite.
        return replace(op, type="info") if value["type"] == "info" else op

    return {name: whole(value) for name, value in case.items()}


def _unseen(keys: DataFrame, found: DataFrame) -> dict[int, dict[Any, Any]]:
    """Of each run, the unseen messages of each key: how many, and the first of them."""
    unseen: dict[int, dict[Any, Any]] = {}
    for row in found.filter("type = 'unseen'").collect():
        unseen.setdefault(row.run, {})[decode(row.key)] = row.measure, edn.loads(row.case)
    for row in unseen_shown(keys).collect():
        shown = row["count"], list(map(decode, row.messages))
        unseen.setdefault(row.run, {})[decode(row.key)] = shown
    return unseen


def _info_causes(operations: DataFrame) -> dict[int, list[Any]]:
    """The distinct errors of each run's indefinite transactions, in order."""
    transactions = operations.filter(F.col("f").isin(*sorted(TRANSACTIONS)))
    indefinite = transactions.filter(F.col("type") == "info")
    causes = indefinite.groupBy("run", "error").agg(F.min("at").alias("at")).collect()
    in_order = sorted(causes, key=lambda row: row["at"])
    return grouped((row.run, _error(row.error)) for row in in_order)


def _error(text: str | None) -> Any:
    if text is None:
        return None
    return edn.loads(text[1:]) if text[0] == "#" else json.loads(text)


# ---------------------------------------------------------------- shares

_COLUMNS = (
    *("run", "key", "process", "at", "kind", "f", "type", "offsets", "messages"),
    *("invoked_at", "order_epoch", "seen"),
)
_ALL = 1 << 31


def share_cases(accesses: DataFrame, keys: DataFrame, final_at: Mapping[int, int]) -> DataFrame:
    """The cases (`schemas.CASE`) in the shares of suspicious keys.

    `final_at` is the place of each run's last successful transaction. The messages that it polled, and
    that count as unseen nevertheless, come as a case of `unseen` for each key.
    """
    ends = F.create_map(*(F.lit(each) for pair in final_at.items() for each in pair))
    last_only = ~F.col("is_sent") & (F.col("first_polled_at") == ends[F.col("run")])
    chosen = keys.filter(F.col("suspicious") | last_only).select(*KEY)
    shares = accesses.join(chosen, [*KEY], "left_semi").select(*_COLUMNS)
    found = map_groups(shares.groupBy(*KEY), partial(_judge, dict(final_at)), CASE)
    # `precommitted-read` has one case for each transaction, whatever the number of its keys.
    first = F.row_number().over(Window.partitionBy("run", "type", "op").orderBy("key", "number"))
    ranked = found.withColumn("rank", first)
    return ranked.filter("rank = 1 or type <> 'precommitted-read'").drop("rank")


def shown(cases: DataFrame) -> DataFrame:
    """The cases of each type that a result shows."""
    signs = {name: -1 if each.largest else 1 for name, each in SHOWN.items()}
    limits = {name: each.count for name, each in SHOWN.items()}
    first = F.col("measure") * F.coalesce(_by_type(signs), F.lit(1))
    place = F.row_number().over(Window.partitionBy("run", "type").orderBy(first, "key", "number"))
    limit = F.coalesce(_by_type(limits), F.lit(_ALL))
    return cases.withColumn("place", place).filter(F.col("place") <= limit)


def _by_type(numbers: Mapping[str, int]) -> Column:
    return F.create_map(*(F.lit(x) for pair in numbers.items() for x in pair))[F.col("type")]


def _judge(final_at: Mapping[int, int], share: pa.Table) -> Iterator[dict[str, Any]]:
    rows = sorted(share.to_pylist(), key=lambda row: (row["at"], row["kind"]))
    for case in _case_rows(rows, final_at.get(rows[0]["run"])):
        yield dict(zip(CASE.names, case, strict=True))


def _case_rows(rows: list[dict[str, Any]], final_at: int | None) -> Iterator[tuple[Any, ...]]:
    of_key = rows[0]["run"], rows[0]["key"]
    facts = share_of(decode(rows[0]["key"]), rows)
    for anomaly, found in local_cases(facts, logs(facts)).items():
        for number, case in enumerate(found):
            measure = SHOWN[anomaly].measure(case) if anomaly in SHOWN else 0
            op = case["op"].index if "op" in case else None
            yield *of_key, anomaly, measure, number, op, edn.dumps(printable(case))
    final = next((each for each in facts.transactions if each.op.index == final_at), None)
    sent = any(row["kind"] == "send" and row["type"] == "ok" for row in rows)
    for missed in () if sent else unseen(facts, final).values():
        yield *of_key, "unseen", len(missed), 0, final_at, edn.dumps(list(missed))


def share_of(key: Key, rows: list[dict[str, Any]]) -> Facts:
    """The history of one key, from its accesses in order. Operations have their place for an index."""
    lines: list[tuple[int, int, Op]] = []  # place, among those of one place, operation
    pairs: dict[int, int] = {}
    epochs: dict[int, int] = {}
    values: dict[int, list[Any]] = {}
    for row in rows:
        at, process, f, start = row["at"], row["process"], row["f"], row["invoked_at"]
        is_assign = row["kind"] == "assign"
        if is_assign and row["type"] in ("fail", "open"):
            continue
        expected = epochs.get(process, row["order_epoch"] - is_assign) + is_assign
        epochs[process] = row["order_epoch"]
        if row["order_epoch"] != expected:
            lost = Op(-1, 0, "info", process, "assign", [])
            lines.append((at if start is None else start, 0, lost))
        if at in values:
            values[at] += _mops(key, row)
            continue
        values[at] = [key] if is_assign else _mops(key, row)
        value, is_open = values[at], row["type"] == "open"
        if start is not None:
            lines.append((start, 1, Op(start, 0, "invoke", process, f, value if is_open else None)))
        if not is_open:
            lines.append((at, 2, Op(at, 0, row["type"], process, f, value)))
            if start is not None:
                pairs[at] = start
    lines.sort(key=lambda line: line[:2])
    places = {place: number for number, (place, kind, _) in enumerate(lines) if kind}
    return Facts(
        [op for _, _, op in lines],
        frozenset(row["at"] for row in rows if row["seen"]),
        {places[at]: places[start] for at, start in pairs.items()},
    )


def _mops(key: Key, row: Mapping[str, Any]) -> list[Any]:
    pairs = list(map(list, zip(row["offsets"], map(decode, row["messages"]), strict=True)))
    if row["kind"] == "poll":
        return [["poll", {key: pairs}]]
    return [["send", key, pair] for pair in pairs]


# ---------------------------------------------------------------- cycles

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
    """The unions of overlapping edges."""
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
