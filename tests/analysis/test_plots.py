"""From a lake to a picture: tables and metrics have the columns that plots are fed by."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from analysis.lake import Lake
from analysis.metrics.causes import CAUSES
from analysis.metrics.latency import latency_over_time
from analysis.notebooks import tables
from analysis.notebooks.lake import tables_of
from runs.plots import groups, messages, run, style
from tests.plots.test_pictures import words

pytestmark = [pytest.mark.spark, pytest.mark.slow]
STORE = "duplicates-partition-5-nodes"
WINDOW_NS = 10**9


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


def test_every_cause_has_a_colour() -> None:
    assert tuple(style.CAUSES) == CAUSES


def test_pictures_of_a_run_over_time(spark: SparkSession, stores_lake: Lake) -> None:
    operations, faults = (
        stores_lake.table(spark, name, [STORE]) for name in ("operations", "faults")
    )
    span, shades = run.Span(30 * WINDOW_NS, WINDOW_NS), rows(faults)
    sends = rows(latency_over_time(operations.filter("f = 'send'"), WINDOW_NS))
    panel = run.Panel("the run", sends, shades)
    latency = run.latency_over_time([panel], span, "Latency of send over time")
    assert {"Latency of send over time", "the run", "p99", "partition"} <= words(latency)


def test_pictures_of_groups(spark: SparkSession, stores_lake: Lake) -> None:
    lake = tables_of(spark, str(stores_lake.folder))
    for frame, word in ((tables.types(lake), "cas_ok"), (tables.causes(lake), "conflict")):
        stack = "type" if word == "cas_ok" else "cause"
        picture = messages.messages_per_operation(frame, stack)
        assert {word, "another program"} <= words(picture)  # no store tells its strategy
    figures = tables.figures(lake)
    compared = tables.compared(figures, lake, "cas")
    standings = tables.standings(figures, lake, compared, "another program")
    assert {"baseline"} == set(standings.standing)
    assert {"availability", "another program", "no difference told"} <= words(
        groups.compare(standings, "another program")
    )
    # No store tells its time limit.
    recoveries = tables.watched(tables.recoveries(lake))
    assert any("No fault ended" in word for word in words(groups.recovery_times(recoveries)))
