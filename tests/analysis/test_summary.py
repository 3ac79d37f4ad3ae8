"""The figures of a run that Spark computes are those that plain Python computes."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from analysis.lake import Lake
from analysis.summary import summarise
from runs.figures import ALL, Figures, of_run
from tests.runs.test_figures import run_at

pytestmark = pytest.mark.spark


def comparable(figures: Figures) -> dict[str, Any]:
    """What Spark computes exactly, without the order of rows that the definitions leave open."""
    rows = {name: sorted(map(repr, figures.table(name))) for name in ("network", "by_type")}
    counts = {(r["f"], r["outcome"], r["operation_count"]) for r in figures.latency(ALL)}
    return {**rows, "latency": counts, "operations": figures.operations}


def test_plain_figures_are_those_of_spark(
    spark: SparkSession, stores_lake: Lake, store: Path
) -> None:
    """The store of the real tool, so that EDN and Fressian are read too."""
    by_spark = summarise(spark, stores_lake, store.name)
    assert comparable(of_run(run_at(store))) == comparable(by_spark)
