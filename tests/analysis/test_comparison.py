"""Runs compared: a difference is told from noise.

The rows of a run in the lake add up to the figures that plain Python computes.
"""

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from analysis import comparison
from analysis.finding import find_runs
from analysis.lake import Lake, ingest
from runs.figures import of_run
from tests.runs.test_figures import run_at
from tests.stores import write_lines

pytestmark = pytest.mark.spark


def figures(spark: SparkSession, **groups: list[float]) -> DataFrame:
    """A figure of runs, whose program is their group."""
    rows = [
        (f"{group}{number}", group, float(value))
        for group, members in groups.items()
        for number, value in enumerate(members)
    ]
    frame = spark.createDataFrame(rows, "run_id string, program string, value double")
    return frame.selectExpr("*", "'kafka' as workload", "'f' as figure")


def test_a_difference_is_told_from_noise(spark: SparkSession) -> None:
    table = figures(
        spark,
        base=[10, 11, 12, 10.5, 11.5],
        better=[5, 6, 5.5, 6.5, 5.2],
        same=[10.2, 11.1, 11.9, 10.4, 11.6],
        worse=[20, 21, 22, 20.5, 21.5],
        few=[1, 2],
        single=[1],
    )
    found = {row.other: row for row in comparison.comparison(table, {"kafka": "base"}).collect()}
    assert {name: row.verdict for name, row in found.items()} == {
        "better": "less",
        "same": "no difference told",
        "worse": "more",
        "few": "too few runs",
        "single": "too few runs",
    }
    better = found["better"]
    assert (better.baseline_runs, better.other_runs) == (5, 5)
    assert better.difference == pytest.approx(5.64 - 11)
    assert better.difference_low < better.difference < better.difference_high < 0
    assert better.p_value == pytest.approx(2 / 252)  # no overlap: the rarest of all arrangements
    assert better.q_value == pytest.approx(better.p_value * 3 / 2)  # two of three are so rare
    assert {row.comparisons for row in found.values()} == {3, None}
    assert found["single"].difference_low is None
    assert comparison.comparison(table, {"kafka": "nobody"}).isEmpty()


def test_means_have_intervals(spark: SparkSession) -> None:
    found = comparison.means(figures(spark, a=[1, 2, 3, 4], b=[7, 7], c=[5]))
    rows = [("kafka", "f", "a", 4, 2.5), ("kafka", "f", "b", 2, 7.0), ("kafka", "f", "c", 1, 5.0)]
    columns = "workload string, figure string, program string, run_count int, mean double"
    means = found.drop("mean_low", "mean_high")
    assertDataFrameEqual(means, spark.createDataFrame(rows, columns), checkRowOrder=True)
    bounds = [(row.mean_low, row.mean_high) for row in found.collect()]
    assert 1 <= bounds[0][0] < 2.5 < bounds[0][1] <= 4
    assert bounds[1:] == [(7.0, 7.0), (None, None)]


def test_noise_is_seldom_called_a_difference_however_much_is_compared() -> None:
    """In about one of twenty families of eight comparisons: uncorrected it were one of three."""
    random = np.random.default_rng(7)
    families = [
        [comparison.compare(*random.lognormal(size=(2, 5))) for _ in range(8)] for _ in range(25)
    ]
    wrong = [
        any(row["verdict"] in ("less", "more") for row in comparison.decided(family))
        for family in families
    ]
    uncorrected = [min(row["p_value"] for row in family) <= 0.05 for family in families]
    assert sum(wrong) <= 2 < sum(uncorrected)


@pytest.mark.parametrize(
    ("p_values", "verdicts"),
    [
        ([0.03], ["more"]),
        ([0.03, 0.5, 0.5], ["no difference told"] * 3),  # 0.03 * 3
        ([0.03, 0.03, 0.5], ["more", "more", "no difference told"]),  # 0.03 * 3 / 2
        ([], []),
    ],
)
def test_a_difference_must_stand_out_more_the_more_is_compared(
    p_values: list[float], verdicts: list[str]
) -> None:
    bounds = {"difference_low": 1.0, "difference_high": 2.0}
    rows = comparison.decided([{"p_value": p_value, **bounds} for p_value in p_values])
    assert [row["verdict"] for row in rows] == verdicts
    assert {row["comparisons"] for row in rows} <= {len(rows)}


# ---------------------------------------------------------------- the lake's rows


def test_the_rows_of_a_run_add_up_to_its_figures(
    spark: SparkSession, stores_lake: Lake, store: Path
) -> None:
    """The store of the real tool, so that EDN and Fressian are read too."""
    found = of_run(run_at(store))
    told = {(row["link"], row["type"]): row["message_count"] for row in found.table("by_type")}
    messages = stores_lake.table(spark, "messages", [store.name]).groupBy("link", "type").count()
    assert {row[:2]: row["count"] for row in messages.collect()} == told
    of_main = {(row["f"], row["outcome"]): row["operation_count"] for row in found.latency()}
    done = stores_lake.table(spark, "operations", [store.name]).filter("phase = 'main'")
    counted = done.filter("latency_ns is not null").groupBy("f", "outcome").count()
    assert {row[:2]: row["count"] for row in counted.collect()} == of_main


def test_a_run_without_operations_is_ingested(spark: SparkSession, tmp_path: Path) -> None:
    message = {"id": 0, "src": "n0", "dest": "n1", "body": {"type": "x"}}
    write_lines(tmp_path / "history.jsonl", [])
    write_lines(
        tmp_path / "net-journal.jsonl", [{"id": 0, "time": 1, "type": "send", "message": message}]
    )
    lake, run = Lake(tmp_path / "lake"), find_runs(tmp_path)[0]
    assert [done.fresh for done in ingest(spark, lake, [run])] == [True]
    assert lake.table(spark, "messages", [run.run_id]).count() == 1
