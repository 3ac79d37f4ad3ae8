"""Causes of messages, and runs compared."""

from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from analysis.lake import Lake
from analysis.metrics import comparison
from analysis.metrics.causes import message_causes
from analysis.metrics.key_figures import BETTER, run_figures
from analysis.metrics.network import network_statistics

pytestmark = pytest.mark.spark


def messages(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    """From (src, dest, type, rpc_id, in_reply_to, code, arrived)."""
    columns = "src string, dest string, type string, rpc_id long, in_reply_to long, code int, arrived long"
    link = (
        "case when src like 'c%' or dest like 'c%' then 'client'"
        " when src = 'lin-kv' or dest = 'lin-kv' then 'node-store' else 'node-node' end as link"
    )
    body = "to_json(struct(type, code)) as body_json"
    return spark.createDataFrame(list(rows), columns).selectExpr(
        "'r' as run_id", "*", link, body, "1L as send_count", "arrived as recv_count"
    )


def test_each_server_message_has_one_cause(spark: SparkSession) -> None:
    rows = (
        ("c1", "n0", "send", 1, None, None, 1),
        ("n0", "lin-kv", "cas", 1, None, None, 1),
        ("lin-kv", "n0", "error", None, 1, 22, 1),
        ("n0", "lin-kv", "read", 2, None, None, 1),
        ("lin-kv", "n0", "read_ok", None, 2, None, 1),
        ("n0", "lin-kv", "cas", 3, None, None, 1),
        ("lin-kv", "n0", "cas_ok", None, 3, None, 1),
        ("n1", "n0", "hand_over", 1, None, None, 1),
        ("n0", "n1", "hand_over_ok", None, 1, None, 1),
        ("n1", "n0", "hand_over", 2, None, None, 0),  # lost
        ("n1", "n0", "hand_over", 3, None, None, 1),
        ("n0", "n1", "hand_over_ok", None, 3, None, 0),  # its answer was lost
        ("n1", "n0", "share", None, None, None, 1),
        ("n1", "lin-kv", "cas", 9, None, None, 1),
        ("lin-kv", "n1", "error", None, 9, 20, 1),
        ("n1", "n0", "send", 10, None, None, 1),
        ("n0", "n1", "send_ok", 4, 10, None, 1),  # an answer with an id of its own
    )
    sent = messages(spark, *rows)
    invoked = spark.createDataFrame([("r",), ("r",)], "run_id string")
    found = {row.cause: row for row in message_causes(sent, invoked).collect()}
    assert {cause: row.message_count for cause, row in found.items()} == {
        "commit": 2,
        "conflict": 2,
        "hand-over": 4,
        "other": 3,
        "refresh": 2,
        "retry": 3,
    }
    assert found["retry"].messages_per_operation == 1.5


def test_causes_add_up_to_the_server_messages(spark: SparkSession, stores_lake: Lake) -> None:
    sent, invoked = (stores_lake.table(spark, name) for name in ("messages", "operations"))
    network = network_statistics(sent, invoked).filter("scope = 'servers' and message_count > 0")
    causes = message_causes(sent, invoked).groupBy("run_id").sum("message_count")
    expected = {row.run_id: row.message_count for row in network.collect()}
    assert dict(map(tuple, causes.collect())) == expected


def test_figures_of_runs(spark: SparkSession, stores_lake: Lake) -> None:
    tables = [stores_lake.table(spark, name) for name in ("operations", "messages", "runs")]
    found = {(row.run_id, row.figure): row.value for row in run_figures(*tables).collect()}
    assert {figure for _, figure in found} == {*BETTER} - {"acknowledged operations per second"}
    store = "valid-3-nodes"
    assert found[store, "server messages per operation"] == pytest.approx(882 / 491)
    assert found[store, "availability"] == 1.0
    assert found[store, "conflicts per operation"] == 0.0


def figures(spark: SparkSession, **groups: list[float]) -> tuple[DataFrame, DataFrame]:
    """A figure of runs, and the runs, whose strategy is their group."""
    rows = [
        (f"{group}{number}", group, float(value))
        for group, members in groups.items()
        for number, value in enumerate(members)
    ]
    frame = spark.createDataFrame(rows, "run_id string, strategy string, value double")
    return frame.selectExpr("run_id", "'f' as figure", "value"), frame.select("run_id", "strategy")


def test_a_difference_is_told_from_noise(spark: SparkSession) -> None:
    table, runs = figures(
        spark,
        base=[10, 11, 12, 10.5, 11.5],
        better=[5, 6, 5.5, 6.5, 5.2],
        same=[10.2, 11.1, 11.9, 10.4, 11.6],
        worse=[20, 21, 22, 20.5, 21.5],
        few=[1, 2],
        single=[1],
    )
    found = {
        row.other: row for row in comparison.comparison(table, runs, "strategy", "base").collect()
    }
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
    assert found["single"].difference_low is None
    absent = comparison.comparison(table, runs, "strategy", "nobody")
    assert absent.isEmpty()


def test_means_have_intervals(spark: SparkSession) -> None:
    table, runs = figures(spark, a=[1, 2, 3, 4], b=[7, 7], c=[5])
    rows = {row.strategy: row for row in comparison.means(table, runs, "strategy").collect()}
    assert (rows["a"].run_count, rows["a"].mean) == (4, 2.5)
    assert 1 <= rows["a"].mean_low < 2.5 < rows["a"].mean_high <= 4
    assert (rows["b"].mean_low, rows["b"].mean_high) == (7.0, 7.0)
    assert (rows["c"].mean_low, rows["c"].mean_high) == (None, None)


def test_noise_is_seldom_called_a_difference() -> None:
    """Two series of the same thing: the verdict errs in about one of twenty cases, as it says."""
    random = np.random.default_rng(7)
    trials = 200
    wrong = sum(
        comparison.compare(*random.lognormal(size=(2, 5)))["verdict"] in ("less", "more")
        for _ in range(trials)
    )
    assert wrong <= trials * 0.08
