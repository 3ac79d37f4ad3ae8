"""All of it together: from a source to a verdict for each of its runs."""

import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analysis.checker import lag, shares
from analysis.checker.cycles import cycles
from analysis.checker.evidence import judged, sightings
from analysis.checker.keys import key_facts, unseen_shown
from analysis.checker.processes import placed
from analysis.checker.runs import RunFacts, info_causes, run_facts
from analysis.checker.scalars import decode
from analysis.checker.sources import Ops, Source
from analysis.checker.steps import stepped
from analysis.checker.touches import touches
from runs.history import Op
from runs.keyword import Keyword, keywords
from workloads.kafka.checker.cases import Case, Cases, condensed, printable
from workloads.kafka.checker.compose import verdict
from workloads.kafka.checker.lag import NO_LAG
from workloads.kafka.checker.unseen import unseen_report

OPERATIONS_A_PARTITION = 100_000  # so that what a task sorts fits into its share of 2 GB
# Rows arrive in the order of what they are grouped by; the aggregation that hashes would sort them again.
_STREAMING = ("spark.sql.execution.useObjectHashAggregateExec", "false")


Inspect = Callable[[DataFrame], None]


def judge(
    spark: SparkSession, source: Source, inspect: Inspect | None = None
) -> dict[str, dict[Keyword, Any]]:
    """The `:workload` map of results.edn for each run of `source`, by name: what `check` says of it.

    Args:
        spark: where to do it.
        source: the histories.
        inspect: is shown all cases in keys' shares (`schemas.CASE`), also those that no result shows.
    """
    before = spark.conf.get(_STREAMING[0])
    spark.conf.set(*_STREAMING)
    try:
        return _judged(spark, source, inspect)
    finally:
        spark.conf.set(_STREAMING[0], before or "true")


def _judged(
    spark: SparkSession, source: Source, inspect: Inspect | None
) -> dict[str, dict[Keyword, Any]]:
    partitions = _partitions(spark, source.operations)
    by_process = source.operations.repartition(partitions, "run", "process")
    in_place = placed(by_process)
    of_keys = touches(in_place, partitions)
    rows = of_keys.rows
    steps = stepped(judged(sightings(rows)), rows)
    keys = key_facts(steps)
    if of_keys.unsteady:
        exact = lag.poll_by_poll(steps, in_place).withColumnRenamed("worst", "exact")
        keys = keys.join(exact, ["run", "key"], "left").withColumn(
            "worst", F.coalesce("exact", "worst")
        )
    keys = keys.persist()
    try:
        return _verdicts(source, in_place, rows, keys, inspect)
    finally:
        keys.unpersist()
        of_keys.kept.unpersist()


def _partitions(spark: SparkSession, operations: DataFrame) -> int:
    least = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    return max(least, ceil(operations.count() / OPERATIONS_A_PARTITION))


def _verdicts(
    source: Source,
    placed: DataFrame,
    touches: DataFrame,
    keys: DataFrame,
    inspect: Inspect | None,
) -> dict[str, dict[Keyword, Any]]:
    facts = run_facts(source.operations, keys)
    found = shares.cases(touches, keys, facts).persist()
    if inspect:
        inspect(found)
    errors = _errors(source, placed, keys, facts, found)
    found.unpersist()
    lags = lag.worst_lags(facts, keys, touches, placed)
    causes = info_causes(source.operations)
    return {
        name: verdict(errors.get(run, {}), lags.get(run, NO_LAG), tuple(causes.get(run, ())))
        for run, name in enumerate(source.names)
    }


def _errors(
    source: Source,
    placed: DataFrame,
    keys: DataFrame,
    facts: Mapping[int, RunFacts],
    found: DataFrame,
) -> dict[int, dict[str, dict[Keyword, Any]]]:
    counts = {
        (row.run, row.type): row["count"] for row in found.groupBy("run", "type").count().collect()
    }
    chosen: dict[int, Cases] = {}
    for row in shares.shown(found).orderBy("run", "type", "measure", "rank").collect():
        chosen.setdefault(row.run, {}).setdefault(row.type, []).append(pickle.loads(row.case))
    late: dict[int, Any] = {run: each.pop("unseen", []) for run, each in chosen.items()}
    whole = _whole_cases(source, placed.sparkSession, chosen)
    errors = {
        run: {name: _shown(cases, counts[run, name]) for name, cases in each.items()}
        for run, each in whole.items()
    }
    for run, each in cycles(source, placed, keys, facts).items():
        condensed_cycles = {name: condensed(name, cases) for name, cases in each.items()}
        errors.setdefault(run, {}).update(condensed_cycles)
    for run, missing in _unseen(keys, late).items():
        final_ns = facts[run].final_ns
        if missing and final_ns is not None:
            errors.setdefault(run, {})["unseen"] = unseen_report(missing, final_ns)
    return errors


def _shown(cases: list[Case], count: int) -> dict[Keyword, Any]:
    return keywords(count=count, errs=tuple(map(printable, cases)))


def _unseen(keys: DataFrame, late: Mapping[int, Any]) -> dict[int, dict[Any, Any]]:
    """The unseen messages of each key: how many, and the first; `late` has those that shares found."""
    found: dict[int, dict[Any, Any]] = {}
    for run, missing in late.items():
        found[run] = {key: (len(messages), messages) for key, messages in missing}
    for row in unseen_shown(keys).collect():
        messages = row["count"], list(map(decode, row.messages))
        found.setdefault(row.run, {})[decode(row.key)] = messages
    return found


def _whole_cases(
    source: Source, spark: SparkSession, found: Mapping[int, Cases]
) -> dict[int, Cases]:
    """The cases with whole operations in place of the stubs that the shares know."""
    places: set[tuple[int, int]] = set()
    for run, by_type in found.items():
        for value in by_type.values():
            places.update((run, stub) for stub in _stubs(value))
    if not places:
        return dict(found)
    ops = source.ops(spark.createDataFrame(sorted(places), "run int, at long"))
    return {run: _filled(by_type, run, ops) for run, by_type in found.items()}


def _stubs(value: Any) -> set[int]:
    if isinstance(value, Op):
        return {value.index}
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return set()
    return {stub for each in value for stub in _stubs(each)}


def _filled(value: Any, run: int, ops: Ops) -> Any:
    if isinstance(value, Op):
        # A send that the end of the history cut off counts as indefinite.
        whole = ops[run, value.index]
        return replace(whole, type="info") if value.type == "info" else whole
    if isinstance(value, dict):
        return {name: _filled(each, run, ops) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_filled(each, run, ops) for each in value)
    return value
