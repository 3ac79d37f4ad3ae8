"""The figures of a run that Spark computes are those that plain Python computes."""

import dataclasses
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analysis.lake import Lake
from analysis.summary import summarise
from runs.figures import measure
from tests.runs.test_figures import comparable, run_at

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
