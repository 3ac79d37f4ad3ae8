"""The figures of a run that Spark computes are those that plain Python computes."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from analysis.finding import find_run
from analysis.lake import Lake, ingest, summarise
from runs.figures import Figures, of_run
from tests.runs.test_figures import run_at
from tests.stores import write_lines

pytestmark = pytest.mark.spark


def comparable(figures: Figures) -> dict[str, Any]:
    """All that is printed, without the order of rows that the definitions leave open."""
    tables = {**figures.rows, "latency": figures.latency()}
    rows = {
        name: sorted(str(sorted(row.items(), key=str)) for row in tables[name])
        for name in ("latency", "network", "by_type")
    }
    return {**rows, "operations": figures.operations, "duration_ns": figures.duration_ns}


def test_plain_figures_are_those_of_spark(
    spark: SparkSession, stores_lake: Lake, store: Path
) -> None:
    """The store of the real tool, so that EDN and Fressian are read too."""
    by_spark = summarise(spark, stores_lake, store.name)
    assert comparable(of_run(run_at(store))) == comparable(by_spark)


def test_a_run_without_operations_has_figures(spark: SparkSession, tmp_path: Path) -> None:
    message = {"id": 0, "src": "n0", "dest": "n1", "body": {"type": "x"}}
    write_lines(tmp_path / "history.jsonl", [])
    event = {"id": 0, "time": 1, "type": "send", "message": message}
    write_lines(tmp_path / "net-journal.jsonl", [event])
    lake, run = Lake(tmp_path / "lake"), find_run(tmp_path)
    assert [done.fresh for done in ingest(spark, lake, [run])] == [True]
    assert comparable(summarise(spark, lake, run.run_id)) == comparable(of_run(run_at(tmp_path)))
