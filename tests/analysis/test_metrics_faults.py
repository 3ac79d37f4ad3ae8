"""Metrics about faults and nodes: small tables worked out by hand, and the real tool's figures."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from analysis.metrics.latency import latency_quantiles
from analysis.metrics.recovery import recovery_times
from analysis.metrics.served import availability, node_fairness
from analysis.metrics.windows import with_fault, with_phase

pytestmark = pytest.mark.spark
MS = 1_000_000


def operations(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    """From (node, f, outcome, invoked_ms, completed_ms) of a run `r`."""
    columns = "node string, f string, outcome string, invoked long, completed long"
    times = (
        f"invoked * {MS} as invoked_ns",
        f"completed * {MS} as completed_ns",
        f"(completed - invoked) * {MS} as latency_ns",
    )
    frame = spark.createDataFrame(list(rows), columns)
    return frame.selectExpr("'r' as run_id", "node", "f", "outcome", *times)


def faults(spark: SparkSession, *rows: tuple[str, int, int | None]) -> DataFrame:
    """From (kind, started_ms, ended_ms)."""
    frame = spark.createDataFrame(list(rows), "kind string, started long, ended long")
    times = (f"started * {MS} as started_ns", f"ended * {MS} as ended_ns")
    return frame.selectExpr("'r' as run_id", "kind", *times)


def runs(spark: SparkSession, time_limit_s: float | None = 1.0) -> DataFrame:
    columns = "run_id string, time_limit_s double, recovery_time_s double, nodes array<string>"
    return spark.createDataFrame([("r", time_limit_s, 10.0, ["n0", "n1"])], columns)


def values(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.select(*columns).collect()]


def test_the_phase_is_that_of_the_invocation(spark: SparkSession) -> None:
    table = operations(
        spark,
        ("n0", "a", "ok", 999, 1500),
        ("n0", "b", "ok", 1000, 1001),
        ("n0", "c", "ok", 11000, 11001),
    )
    assert values(with_phase(table, runs(spark)), "f", "phase") == [
        ("a", "main"),
        ("b", "recovery"),
        ("c", "final"),
    ]
    assert {row.phase for row in with_phase(table, runs(spark, None)).collect()} == {None}


def test_an_operation_meets_the_faults_that_it_overlaps(spark: SparkSession) -> None:
    table = operations(
        spark,
        ("n0", "before", "ok", 0, 9),
        ("n0", "into", "ok", 9, 10),
        ("n0", "both", "ok", 20, 30),
        ("n0", "twice the same", "ok", 40, 60),
        ("n0", "between", "ok", 61, 69),
        ("n0", "never done", "open", 62, None),
        ("n0", "under one without end", "ok", 80, 81),
    )
    table = with_fault(
        table,
        faults(
            spark,
            ("kill", 10, 25),
            ("partition", 25, 28),
            ("slow", 40, 45),
            ("slow", 50, 60),
            ("pause", 70, None),
        ),
    )
    assert values(table, "f", "fault") == [
        ("before", "calm"),
        ("into", "kill"),
        ("both", "several"),
        ("twice the same", "slow"),
        ("between", "calm"),
        ("never done", "pause"),
        ("under one without end", "pause"),
    ]
    assert values(latency_quantiles(table, ["fault"]), "fault", "operation_count")[0] == ("calm", 2)
    calm = with_fault(operations(spark, ("n0", "a", "ok", 0, 1)), faults(spark))
    assert values(calm, "fault") == [("calm",)]


def test_availability_is_of_what_was_invoked(spark: SparkSession) -> None:
    table = operations(
        spark,
        ("n0", "send", "ok", 9, 15),
        ("n0", "send", "info", 8, 5008),
        ("n1", "poll", "fail", 10, 11),
        ("n1", "poll", "ok", 19, 25),
        ("n1", "send", "open", 12, None),
        ("n1", "crash", "info", 12, 13),
        ("n0", "send", "ok", 31, 32),
    )
    columns = ("window_start_ns", "invoked_count", "ok_count", "availability")
    assert values(availability(table, 10 * MS), *columns) == [
        (0, 2, 1, 0.5),
        (10 * MS, 3, 1, 1 / 3),
        (30 * MS, 1, 1, 1.0),
    ]
    of_nodes = availability(table, 100 * MS, ["node"])
    assert values(of_nodes, "node", "availability") == [("n0", 2 / 3), ("n1", 1 / 3)]


def test_recovery_is_the_first_window_near_calm(spark: SparkSession) -> None:
    calm = [("n0", "send", "ok", 10 * n, 10 * n + 4) for n in range(10)]
    table = operations(
        spark,
        *calm,  # p99 is 4 ms in each calm window
        ("n0", "send", "ok", 105, 195),  # during the kill
        ("n0", "send", "ok", 201, 230),  # slow still
        ("n0", "send", "info", 221, 222),  # fast, but not acknowledged
        ("n0", "crash", "info", 241, 242),
        ("n0", "send", "ok", 242, 250),  # 8 ms: twice as long is near
        ("n0", "send", "ok", 262, 300),
        ("n0", "send", "ok", 410, 413),
        ("n0", "send", "ok", 1100, 1101),  # after the main phase
    )
    found = recovery_times(
        table,
        faults(
            spark,
            ("kill", 100, 200),
            ("pause", 300, 350),
            ("slow", 340, 400),
            ("loss", 990, 995),
            ("fence", 2000, None),
        ),
        runs(spark),
        window_ns=20 * MS,
    )
    columns = ("kind", "calm_p99_ns", "watched_ns", "recovery_ns")
    assert values(found, *columns) == [
        ("kill", 4 * MS, 100 * MS, 40 * MS),
        ("pause", 4 * MS, 0, None),  # it ended under another fault
        ("slow", 4 * MS, 590 * MS, 0),
        ("loss", 4 * MS, 5 * MS, None),  # operations stopped before anything could be seen
    ]


def test_fairness_is_one_for_equals_and_one_nth_for_one_that_has_all(spark: SparkSession) -> None:
    even = operations(spark, ("n0", "send", "ok", 0, 1), ("n1", "send", "ok", 0, 3))
    columns = ("node_count", "ok_count_min", "ok_count_max", "jain_operations", "jain_latency")
    assert values(node_fairness(even, runs(spark)), *columns) == [(2, 1, 1, 1.0, 0.8)]
    one = operations(
        spark,
        ("n0", "send", "ok", 0, 1),
        ("n1", "send", "info", 0, 1),
        ("n1", "crash", "info", 0, 1),
        (None, "send", "ok", 0, 1),
    )
    assert values(node_fairness(one, runs(spark)), *columns) == [(2, 0, 1, 0.5, 1.0)]
