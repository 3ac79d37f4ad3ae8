"""What is known of a whole run: a few numbers, which the driver can hold."""

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analysis.checker.parts import ASSIGNMENTS
from analysis.checker.processes import position
from runs import edn
from workloads.kafka.checker.facts import TRANSACTIONS

_FEW = 8  # Clojure's small maps keep the order of insertion: see `hash_order`


@dataclass
class RunFacts:
    """Of one run: places are null where there is no such operation.

    Attributes:
        processes: number of processes; `first_processes` are they, in order, if there are only a few.
        final: the last successful transaction: place and time.
        first_acknowledged, last_invoked: places that tell whether any transaction precedes another.
        keys_known, keys_polled: how many keys have a log, how many were polled.
        worst: the worst lag that one poll had, as `keys.key_facts`; None if there was none.
    """

    processes: int = 0
    first_processes: tuple[int, ...] = ()
    final_at: int | None = None
    final_ns: int | None = None
    first_acknowledged: int | None = None
    last_invoked: int | None = None
    keys_known: int = 0
    keys_polled: int = 0
    suspicious: int = 0
    backward: int = 0
    has_edge: bool = False
    worst: Any = None

    def has_dependencies(self) -> bool:
        """Whether any transaction depends on another."""
        first, last = self.first_acknowledged, self.last_invoked
        return self.has_edge or (first is not None and last is not None and first < last)

    def process_rank(self, process: int) -> int | None:
        """The rank of a process among a few; None when there are more than a few."""
        return self.first_processes.index(process) if self.processes <= _FEW else None


def run_facts(operations: DataFrame, keys: DataFrame) -> dict[int, RunFacts]:
    """The facts of each run in `operations` that has an operation of a client."""
    facts: dict[int, RunFacts] = {}
    for row in _of_operations(operations).collect():
        processes = tuple(each.process for each in row.first_processes)
        at, at_ns = row.final or (None, None)
        acknowledged, invoked = row.first_acknowledged, row.last_invoked
        facts[row.run] = RunFacts(row.processes, processes, at, at_ns, acknowledged, invoked)
    for row in _of_keys(keys).collect():
        values = {name: value for name, value in row.asDict().items() if name != "run"}
        facts[row.run].__dict__.update(values)
    return facts


def _of_operations(operations: DataFrame) -> DataFrame:
    transaction = F.col("f").isin(*sorted(TRANSACTIONS))
    acknowledged = transaction & (F.col("type") == "ok")
    by_process = operations.groupBy("run", "process").agg(
        F.min(F.coalesce("invoked_at", position())).alias("first"),
        F.max(F.when(acknowledged, F.struct("at", "at_ns"))).alias("final"),
        F.min(F.when(acknowledged, F.col("at"))).alias("first_acknowledged"),
        F.max(F.when(transaction & (F.col("type") != "open"), F.col("invoked_at"))).alias(
            "invoked"
        ),
    )
    in_order = F.array_sort(F.collect_list(F.struct("first", "process")))
    return by_process.groupBy("run").agg(
        F.count("*").cast("int").alias("processes"),
        F.slice(in_order, 1, _FEW).alias("first_processes"),
        F.max("final").alias("final"),
        F.min("first_acknowledged").alias("first_acknowledged"),
        F.max("invoked").alias("last_invoked"),
    )


def _of_keys(keys: DataFrame) -> DataFrame:
    return keys.groupBy("run").agg(
        F.count_if("is_known").alias("keys_known"),
        F.count("first_polled_at").alias("keys_polled"),
        F.count_if("suspicious").alias("suspicious"),
        F.sum(F.size("backward")).alias("backward"),
        F.max("has_edge").alias("has_edge"),
        F.max("worst").alias("worst"),
    )


def info_causes(operations: DataFrame) -> dict[int, list[Any]]:
    """The distinct errors of each run's indefinite transactions, in order."""
    unclear = operations.filter((F.col("type") == "info") & ~F.col("f").isin(*ASSIGNMENTS))
    transactions = unclear.filter(F.col("f").isin(*sorted(TRANSACTIONS)))
    causes = transactions.groupBy("run", "error").agg(F.min("at").alias("at")).collect()
    found: dict[int, list[Any]] = {}
    for row in sorted(causes, key=lambda row: row["at"]):
        found.setdefault(row.run, []).append(_error(row.error))
    return found


def _error(text: str | None) -> Any:
    if text is None:
        return None
    return edn.loads(text[1:]) if text[0] == "#" else json.loads(text)
