"""Pictures: each is drawn from a lake, says what it shows, and says so when there is nothing to show."""

import pytest
from pyspark.sql import SparkSession

from analysis import plots
from analysis.lake import Lake
from analysis.metrics.runs import run_figures
from analysis.plots.groups import natural
from analysis.plots.time import WINDOWS, window_width

pytestmark = pytest.mark.spark
PNG = b"\x89PNG\r\n\x1a\n"
STORE = "duplicates-partition-5-nodes"


def words(picture: plots.Picture) -> set[str]:
    """What is written in a picture."""
    picture.canvas.draw()
    texts = {text.get_text() for text in picture.findobj(lambda each: hasattr(each, "get_text"))}
    return {text for text in texts if text}


def test_pictures_of_a_run_over_time(spark: SparkSession, stores_lake: Lake) -> None:
    operations, faults = (
        stores_lake.table(spark, name, [STORE]) for name in ("operations", "faults")
    )
    latency = plots.latency_over_time(operations, faults, titles={STORE: "the run"})
    assert {"Latency of send over time", "the run", "p99", "partition"} <= words(latency)
    assert latency._repr_png_().startswith(PNG)
    assert (
        latency.png()
        == plots.latency_over_time(operations, faults, titles={STORE: "the run"}).png()
    ), "the same tables give the same picture"
    available = words(plots.availability_over_time(operations, faults))
    assert {STORE, "acknowledged, %"} <= available
    nothing = plots.latency_over_time(operations, faults, f="absent")
    assert "No such operation in these runs." in words(nothing)


@pytest.mark.slow
def test_pictures_of_groups(spark: SparkSession, stores_lake: Lake) -> None:
    names = ("operations", "messages", "faults", "runs")
    operations, messages, faults, runs = (stores_lake.table(spark, name) for name in names)
    by_engine = words(plots.latency_quantiles(operations, runs, by="engine"))
    assert {"send", "poll", "jepsen", "median"} <= by_engine
    expected = {"link": "node-store", "type": "cas_ok", "cause": "conflict"}
    for stack, word in expected.items():
        picture = plots.messages_per_operation(messages, operations, runs, by="run_id", stack=stack)
        assert {word, STORE} <= words(picture)
    with pytest.raises(ValueError, match="stack is one of link, type, cause"):
        plots.messages_per_operation(messages, operations, runs, stack="colour")
    figures = run_figures(operations, messages, runs)
    compared = words(plots.compare(figures, runs, "valid-3-nodes", by="run_id"))
    assert {"availability", "valid-3-nodes", STORE, "no difference told"} <= compared
    # No store tells its time limit, and none its strategy.
    assert any(
        "No fault ended" in text for text in words(plots.recovery_times(operations, faults, runs))
    )
    assert any(
        "No run has a strategy" in text for text in words(plots.compare(figures, runs, "cas"))
    )


def test_windows_are_few_and_round() -> None:
    assert window_width(0) == 1
    assert window_width(WINDOWS * 10**9) == 10**9
    assert window_width(WINDOWS * 10**9 + 1) == 2 * 10**9
    assert window_width(WINDOWS * 6 * 10**9) == 10 * 10**9


def test_groups_stand_in_natural_order() -> None:
    assert sorted(["10", "cas", "9", "1.5"], key=natural) == ["1.5", "9", "10", "cas"]
