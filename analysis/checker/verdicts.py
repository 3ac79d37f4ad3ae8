"""The whole job: from a source to a verdict for each of its runs."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import ceil
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from analysis.checker.access import accesses, placed
from analysis.checker.cycles import cycles
from analysis.checker.evidence import judged, messages
from analysis.checker.schemas import decode
from analysis.checker.shares import share_cases, shown
from analysis.checker.sources import Source
from analysis.checker.steps import key_facts, stepped, unseen_shown, worst_poll_by_poll
from runs import edn
from runs.facts import grouped
from runs.history import Keyword, Op
from workloads.interface import Case, Result
from workloads.kafka.checker.cases import condensed
from workloads.kafka.checker.compose import NO_LAG, lag_report, verdict
from workloads.kafka.checker.observed import TRANSACTIONS
from workloads.kafka.checker.unseen import unseen_report

OPERATIONS_A_PARTITION = 100_000  # so that what a task sorts fits into its share of 2 GB
# Rows arrive in the order of what they are grouped by; the aggregation that hashes would sort them again.
_STREAMING = ("spark.sql.execution.useObjectHashAggregateExec", "false")

Inspect = Callable[[DataFrame], None]
Errors = dict[int, dict[str, dict[Keyword, Any]]]  # by run and anomaly type


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
    by_key, persisted, unsteady = accesses(in_place, partitions)
    steps = stepped(judged(messages(by_key)), by_key)
    keys = key_facts(steps)
    if unsteady:
        exact = worst_poll_by_poll(steps, in_place)
        keys = keys.join(exact, ["run", "key"], "left").withColumn(
            "worst", F.coalesce("exact", "worst")
        )
    keys = keys.persist()
    try:
        facts = _run_facts(source.operations, keys)
        final_at = {run: each.final["at"] for run, each in facts.items() if each.final}
        found = share_cases(by_key, keys, final_at).persist()
        if inspect:
            inspect(found)
        errors = _errors(spark, source, found)
        unseen = _unseen(keys, found)
        found.unpersist()
        cyclic = cycles(
            source,
            in_place,
            keys,
            has_dependencies={run: _has_dependencies(each) for run, each in facts.items()},
            has_backward_edges=any(each.backward for each in facts.values()),
        )
    finally:
        keys.unpersist()
        persisted.unpersist()
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
            _worst_lag(facts[run]) if run in facts else NO_LAG,
            tuple(causes.get(run, ())),
        )
        for run, name in enumerate(source.names)
    }


def _run_facts(operations: DataFrame, keys: DataFrame) -> dict[int, Row]:
    """A few numbers about each run in `operations` that has an operation of a client, for the driver.

    Returns rows, null where there is no such thing:
        final: the last successful transaction: `at` and `at_ns`.
        first_acknowledged, last_invoked: places that show whether any transaction precedes another.
        has_edge: whether some transaction polled what another sent.
        backward: how many such edges lead back in phi.
        worst: the worst lag that a poll had: `lag` (ns), `process`, `now` and `key`.
    """
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
    return {row.run: row for row in of_operations.join(of_keys, "run", "left").collect()}


def _has_dependencies(facts: Row) -> bool:
    """Whether any transaction of a run depends on another."""
    first, last = facts.first_acknowledged, facts.last_invoked
    return bool(facts.has_edge) or (first is not None and last is not None and first < last)


def _worst_lag(facts: Row) -> Result:
    """Say the worst lag of a run as results.edn does; 0 without polls."""
    worst = facts.worst
    if worst is None or worst.lag is None:
        return NO_LAG
    return lag_report(worst.lag, worst.now, worst.process, decode(worst.key))


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
    return (
        each
        for value in case.values()
        for each in (value if isinstance(value, list) else [value])
        if isinstance(each, edn.TaggedMap)
    )


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
