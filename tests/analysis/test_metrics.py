"""Metrics: small tables worked out by hand, and the figures that the real tool itself reported."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from analysis.lake import Lake
from analysis.metrics.latency import latency_over_time, latency_quantiles, throughput
from analysis.metrics.network import messages_by_type, network_statistics
from runs import edn
from runs.operations import window_width
from runs.traffic import disagreements

pytestmark = pytest.mark.spark


def operations(spark: SparkSession, *rows: tuple[str, str, str, int, int | None]) -> DataFrame:
    columns = "run_id string, f string, outcome string, invoked_ns long, latency_ns long"
    frame = spark.createDataFrame(list(rows), columns)
    return frame.selectExpr("*", "invoked_ns + latency_ns as completed_ns")


def messages(spark: SparkSession, *rows: tuple[str, str, str, int, int]) -> DataFrame:
    columns = "run_id string, link string, type string, send_count long, recv_count long"
    return spark.createDataFrame(list(rows), columns)


def values(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.collect()]


def test_latency_quantiles_are_values_that_occurred(spark: SparkSession) -> None:
    polls = [("r", "poll", "ok", 0, latency) for latency in range(1, 201)]
    table = operations(
        spark,
        *polls,
        ("r", "poll", "info", 0, 7),
        ("r", "poll", "open", 0, None),
        ("s", "poll", "ok", 0, 3),
    )
    assert values(latency_quantiles(table)) == [
        ("r", "poll", "info", 1, 7, 7, 7, 7),
        ("r", "poll", "ok", 200, 100, 180, 198, 200),
        ("s", "poll", "ok", 1, 3, 3, 3, 3),
    ]


def test_latency_over_time_counts_an_operation_where_it_began(spark: SparkSession) -> None:
    table = operations(
        spark, ("r", "send", "ok", 9, 50), ("r", "send", "ok", 10, 1), ("r", "send", "info", 19, 2)
    )
    assert values(latency_over_time(table, 10)) == [
        ("r", "send", 0, 1, 50, 50, 50, 50),
        ("r", "send", 10, 2, 1, 2, 2, 2),
    ]


def test_throughput_counts_an_operation_where_it_ended(spark: SparkSession) -> None:
    second = 10**9
    table = operations(
        spark,
        ("r", "send", "ok", 0, 1),
        ("r", "poll", "ok", 1, 2),
        ("r", "send", "ok", 5, 2 * second),
        ("r", "send", "open", 5, None),
    )
    assert values(throughput(table, 2 * second)) == [
        ("r", "ok", 0, 2, 1.0),
        ("r", "ok", 2 * second, 1, 0.5),
    ]


def test_network_statistics(spark: SparkSession) -> None:
    invoked = operations(spark, *[("r", "send", "ok", n, 1) for n in range(4)])
    sent = messages(
        spark,
        ("r", "client", "send", 1, 1),
        ("r", "node-store", "cas", 1, 1),
        ("r", "node-node", "fwd", 1, 0),
    )
    assert values(network_statistics(sent, invoked)) == [
        ("r", "all", 3, 2, 3, 0.75),
        ("r", "clients", 1, 1, 1, 0.25),
        ("r", "servers", 2, 1, 2, 0.5),
    ]


def test_network_statistics_without_server_messages_or_operations(spark: SparkSession) -> None:
    sent = messages(spark, ("r", "client", "send", 1, 1))
    assert values(network_statistics(sent, operations(spark))) == [
        ("r", "all", 1, 1, 1, None),
        ("r", "clients", 1, 1, 1, None),
        ("r", "servers", 0, 0, 0, None),
    ]


def test_messages_by_type(spark: SparkSession) -> None:
    invoked = operations(spark, ("r", "send", "ok", 0, 1), ("r", "send", "open", 0, None))
    sent = messages(
        spark,
        ("r", "node-node", "fwd", 1, 0),
        ("r", "node-node", "fwd", 1, 1),
        ("r", "node-store", "cas", 1, 1),
        ("r", "node-node", "ack", 1, 1),
    )
    assert values(messages_by_type(sent, invoked)) == [
        ("r", "node-node", "fwd", 2, 1, 1.0),
        ("r", "node-node", "ack", 1, 0, 0.5),
        ("r", "node-store", "cas", 1, 0, 0.5),
    ]


def test_counts_equal_those_of_the_real_tool(
    spark: SparkSession, stores_lake: Lake, store: Path
) -> None:
    tables = [stores_lake.table(spark, name, [store.name]) for name in ("messages", "operations")]
    found = {row.scope: row for row in network_statistics(*tables).collect()}
    reported = edn.loads_json((store / "results.edn").read_text())["net"]
    for scope in ("all", "clients", "servers"):
        row, theirs = found[scope], reported[scope]
        assert (row.send_count, row.recv_count, row.message_count) == (
            theirs["send-count"],
            theirs["recv-count"],
            theirs["msg-count"],
        )
        if "msgs-per-op" in theirs:  # a 32-bit figure
            assert math.isclose(row.messages_per_operation, theirs["msgs-per-op"], rel_tol=1e-6)
    (run,) = stores_lake.table(spark, "runs", [store.name]).collect()
    assert (
        disagreements(json.loads(run.network_json), [row.asDict() for row in found.values()]) == []
    )


def test_operations_equal_those_of_the_real_tool(
    spark: SparkSession, stores_lake: Lake, store: Path
) -> None:
    table = stores_lake.table(spark, "operations", [store.name])
    found = {
        tuple(row)[:2]: row["count"] for row in table.groupBy("f", "outcome").count().collect()
    }
    stats = edn.loads_json((store / "results.edn").read_text())["stats"]["by-f"]
    for f, counts in stats.items():
        for outcome in ("ok", "fail", "info"):
            assert found.get((f, outcome), 0) == counts[f"{outcome}-count"]


def test_a_differing_count_is_told() -> None:
    row = Row(scope="all", send_count=2, recv_count=2, message_count=2, messages_per_operation=0.5)
    reported = {"all": {"send-count": 3, "recv-count": 2, "msgs-per-op": 0.5}}
    told = ["all send-count: 2 here, 3 in the bench's results"]
    assert disagreements(reported, [row.asDict()]) == told
    assert disagreements({}, [row.asDict()]) == []


@pytest.mark.parametrize(
    ("duration_ns", "width_ns"),
    [(0, 1), (100, 1), (101, 2), (20 * 10**9, 2 * 10**8), (61 * 10**9, 10**9)],
)
def test_windows_are_few_and_round(duration_ns: int, width_ns: int) -> None:
    assert window_width(duration_ns) == width_ns
