"""The figures of a run that Spark computes are those that plain Python computes."""

import dataclasses
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analysis.lake import Lake
from analysis.metrics.causes import message_causes
from analysis.metrics.lag import poll_lags
from analysis.summary import summarise
from runs import messages, reading
from runs.figures import measure
from runs.history import find_history, read_history
from runs.operations import operations
from tests.runs.test_figures import comparable, run_at
from workloads.kafka.checker.lag import polls
from workloads.kafka.checker.observed import Facts, client_operations

pytestmark = pytest.mark.spark


def test_plain_figures_are_those_of_spark(
    spark: SparkSession, stores_lake: Lake, store: Path
) -> None:
    """The store of the real tool, so that EDN and Fressian are read too."""
    plain = measure(run_at(store))
    by_spark = summarise(spark, stores_lake, store.name)
    for faults in (plain.faults, by_spark.faults):
        for row in faults:
            row["target_json"], row["effect_json"] = "", ""  # blanks in JSON differ
            row.pop("targets", None)
    shared = plain.faults[0].keys() if plain.faults else ()
    by_spark = dataclasses.replace(
        by_spark, faults=[{name: row[name] for name in shared} for row in by_spark.faults]
    )
    assert comparable(plain) == comparable(by_spark)


def test_plain_causes_are_those_of_spark(
    spark: SparkSession, stores_lake: Lake, store: Path
) -> None:
    sent = messages.messages(reading.journal(run_at(store).journal, reading.Bad()))
    count = len(operations(read_history(find_history(store))))
    tables = (stores_lake.table(spark, name, [store.name]) for name in ("messages", "operations"))
    by_spark = message_causes(*tables).drop("run_id").collect()
    assert messages.message_causes(sent, count) == [row.asDict() for row in by_spark]


def test_plain_lags_are_those_of_spark(spark: SparkSession, stores_lake: Lake, store: Path) -> None:
    facts = Facts(client_operations(read_history(find_history(store))))
    plain = [(op.process, now_ns, position.lag(now_ns)) for op, now_ns, position in polls(facts)]
    by_spark = poll_lags(stores_lake.table(spark, "operations", [store.name]))
    assert sorted(plain) == sorted(
        map(tuple, by_spark.select("process", "invoked_ns", "lag_ns").collect())
    )
