"""Pictures say what they show, in the same colours on every surface; one of nothing says why."""

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from runs.plots import groups, messages, run, style
from runs.plots.picture import Picture, records

SECOND = 1_000_000_000
SPAN = run.Span(3 * SECOND, SECOND)
PARTITION = {"kind": "partition", "started_ns": SECOND, "ended_ns": 2 * SECOND}
KILL = {"kind": "kill", "started_ns": 2 * SECOND, "ended_ns": None}


def window(second: int, **values: float | str) -> dict[str, Any]:
    return {"window_start_ns": second * SECOND, **values}


def quantiles(ms: float) -> dict[str, float]:
    return {f"latency_ns_{name}": ms * 1e6 for name in style.QUANTILES}


def operation(outcome: str, ms: float | None) -> dict[str, Any]:
    return {
        "f": "send",
        "outcome": outcome,
        "invoked_ns": SECOND,
        "latency_ns": None if ms is None else int(ms * 1e6),
    }


LATENCIES = [window(0, **quantiles(1)), window(1, **quantiles(100)), window(3, **quantiles(0))]
RATES = [window(0, outcome="ok", rate_hz=10.0), window(2, outcome="fail", rate_hz=3.0)]


def words(picture: Picture) -> set[str]:
    """What is written in a picture."""
    picture.canvas.draw()
    texts: list[Any] = picture.findobj(lambda each: hasattr(each, "get_text"))
    return {text.get_text() for text in texts} - {""}


def over_time(*faults: dict[str, Any]) -> Picture:
    return run.latency_over_time([run.Panel("send", LATENCIES, faults)], SPAN, "Latency")


OVER_TIME: dict[str, Callable[..., Picture]] = {
    "latency": lambda faults: over_time(*faults),
    "raw": lambda faults: run.latency_raw([run.Panel("", [operation("ok", 1)], faults)], SPAN),
    "throughput": lambda faults: run.throughput([run.Panel("", RATES, faults)], SPAN),
}


@pytest.mark.parametrize("name", OVER_TIME)
def test_a_fault_has_its_one_colour_in_every_picture(name: str) -> None:
    svg = OVER_TIME[name]([KILL | {"kind": kind} for kind in style.FAULTS]).svg()
    assert [kind for kind, colour in style.FAULTS.items() if colour not in svg] == []


def test_a_picture_of_a_run_over_time() -> None:
    picture = over_time(PARTITION)
    assert {"Latency", "send", "p50", "p90", "p99", "max", "partition", "latency, ms"} <= words(
        picture
    )
    assert picture._repr_png_().startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize("surface", [Picture.png, Picture.svg, Picture.svg_document])
def test_the_same_figures_give_the_same_picture(surface: Callable[[Picture], object]) -> None:
    assert surface(over_time(PARTITION, KILL)) == surface(over_time(PARTITION, KILL))


def test_inside_a_page_a_picture_has_the_colour_of_its_text_and_no_ground() -> None:
    svg, document = over_time(PARTITION).svg(), over_time(PARTITION).svg_document()
    assert svg.startswith("<svg")
    assert "currentColor" in svg
    assert style.INK not in svg
    assert ">latency, ms<" in svg  # text stays text
    assert style.INK in document
    assert "currentColor" not in document


def test_a_pause_is_a_narrow_band_that_says_how_long_it_was() -> None:
    rows = [window(second, **quantiles(1)) for second in (0, 4, 14)]
    span = run.Span(15 * SECOND, SECOND, (5 * SECOND, 13 * SECOND))
    picture = run.latency_over_time([run.Panel("send", rows, [KILL, PARTITION])], span)
    assert "no operation for 8 s" in words(picture)
    for axes in picture.axes:  # faults and latencies
        drawn = [axes.transData.transform((s, 1))[0] for s in (0, 5, 13, 15)]
        before, band, behind = np.diff(drawn)
        assert band < 0.06 * (before + band + behind)
        assert before / behind == pytest.approx(5 / 2)  # one scale
    ticks = picture.axes[-1].get_xticks()
    assert {0.0, 2.0, 4.0} <= {*ticks}
    assert not [tick for tick in ticks if 5 < tick < 13]


def test_a_page_has_each_picture_for_a_telephone_too() -> None:
    svg = over_time(PARTITION).svg()
    looks = re.findall(r'class="(wide|narrow)"[^>]* viewBox="0 0 ([0-9.]+)', svg)
    assert [look for look, _ in looks] == ["wide", "narrow"]
    wide, narrow = (float(width) for _, width in looks)
    assert narrow < 0.5 * wide  # so letters keep their size on a narrow screen
    identifiers = re.findall(r'<(?:clipPath|path|symbol) id="(\w+)"', svg)
    assert len({*identifiers}) == len(identifiers)  # none is taken from a picture that is not shown


def test_several_kinds_of_faults_get_a_panel_of_their_own() -> None:
    assert len(over_time(PARTITION).axes) == 1
    several = over_time(KILL, PARTITION)
    assert len(several.axes) == 2
    assert [label.get_text() for label in several.axes[0].get_yticklabels()] == [
        "partition",
        "kill",
    ]


def test_below_lanes_of_faults_the_ground_has_one_grey() -> None:
    overlapping = KILL | {"started_ns": SECOND // 2}
    lanes, axes = over_time(overlapping, PARTITION, KILL | {"kind": "pause"}).axes
    assert {patch.get_facecolor()[:3] for patch in axes.patches} == {to_rgb(style.NEUTRAL)}
    assert len(axes.patches) == 1  # no time is shaded twice
    assert len(lanes.patches) == 3


def test_a_fault_that_took_no_time_is_seen() -> None:
    fence = {"kind": "fence", "started_ns": SECOND, "ended_ns": SECOND}
    lanes, _ = over_time(fence, KILL).axes
    assert all(bar.get_linewidth() > 1 for bar in lanes.patches)


def test_windows_without_operations_are_gaps_and_not_bridged() -> None:
    (axes,) = over_time().axes
    times_s, values = map(np.asarray, axes.lines[0].get_data())
    assert [*times_s] == [0, 1, 2, 3]
    assert [math.isnan(value) for value in values] == [False, False, True, False]
    assert values[-1] > 0  # a logarithmic axis has no zero


def test_what_never_completed_has_no_dot_and_no_entry_in_the_legend() -> None:
    rows = [operation("ok", 1.0), operation("info", 5.0), operation("open", None)]
    written = words(run.latency_raw([run.Panel("send", rows)], SPAN))
    assert {"ok", "info (outcome unknown)"} <= written
    assert not written & {"fail", "open (never completed)"}


def test_throughput_is_stacked_by_outcome() -> None:
    picture = run.throughput([run.Panel("send", RATES)], SPAN)
    assert {"ok", "fail", "operations / s", "time of completion, s"} <= words(picture)
    assert len(picture.axes[0].collections) == 2


def test_strategies_and_weathers_are_rows_and_columns() -> None:
    there = [("cas", "kill"), ("leaderless", "kill"), ("cas", "pause")]
    rows = pd.DataFrame(
        {"strategy": strategy, "weather": weather, **operation("ok", 1)}
        for strategy, weather in there
    )
    faults = [{"strategy": "cas", "weather": "pause", **KILL, "ended_ns": math.nan}]
    picture = run.under_faults(rows, pd.DataFrame(faults))
    titles = [axes.get_title(loc="left") for axes in picture.axes]
    assert titles == ["leaderless, kill", "leaderless, pause", "cas, kill", "cas, pause"]
    assert "kill" in words(picture)
    assert run.frequent({"send": 50, "poll": 50, "assign": 4}) == ["poll", "send"]


@pytest.mark.parametrize("stack", messages.STACKS)
def test_messages_are_stacked_by(stack: str) -> None:
    parts = {"link": ["client", "node-store"], "cause": ["conflict", "commit"]}.get(
        stack, [f"type-{number}" for number in range(9)]
    )
    rows = [
        {"strategy": "cas", stack: part, "messages_per_operation": value}
        for value, part in enumerate(parts, start=1)
    ]
    picture = messages.messages_per_operation(rows, stack)
    shown = [text.get_text() for text in picture.legends[0].get_texts()]
    assert {"cas", f"{sum(range(len(parts) + 1)):.2f}"} <= words(picture)
    if stack == "type":
        assert shown == ["all others", *(f"type-{number}" for number in range(2, 9))]
    else:
        assert shown == {"link": ["client", "node-store"], "cause": ["conflict", "commit"]}[stack]


def test_bars_of_messages_have_the_colours_of_their_links() -> None:
    by_type = [
        {"link": "client", "type": "send", "message_count": 9, "messages_per_operation": 2.0},
        {"link": "node-store", "type": "cas", "message_count": 3, "messages_per_operation": 0.5},
        {"link": "node-store", "type": "read", "message_count": 4, "messages_per_operation": None},
    ]
    types, classes = messages.server_messages(by_type), messages.message_classes(by_type)
    assert types
    assert classes
    assert [label.get_text() for label in types.axes[0].get_yticklabels()] == ["read", "cas"]
    assert {"node-store", "client", "2.000", "0.500"} <= words(classes)
    assert style.LINKS["node-store"] in types.svg()
    assert messages.server_messages(by_type[:1]) is None
    assert messages.message_classes([]) is None


def test_a_wrong_stack_is_refused() -> None:
    with pytest.raises(ValueError, match="stack is one of link, type, cause"):
        messages.messages_per_operation([], stack="colour")


def mean(strategy: str, standing: str | None, enough: bool = True) -> dict[str, Any]:
    bounds = {"mean": 2.0, "mean_low": 1.0, "mean_high": math.nan if standing is None else 3.0}
    bounds["mean_low"] = math.nan if standing is None else 1.0
    names = {"figure": "availability", "strategy": strategy}
    return {**names, **bounds, "standing": standing, "enough_runs": enough}


def test_groups_are_compared_with_the_baseline_on_top() -> None:
    rows = [mean("leaderless", "worse"), mean("cas", "baseline"), mean("other", None, enough=False)]
    picture = groups.compare(pd.DataFrame(rows), "cas")
    labels = [label.get_text() for label in picture.axes[0].get_yticklabels()]
    assert labels == ["cas", "leaderless", "other"]
    assert {"availability", "2", "(2)", "no difference told", "better"} <= words(picture)


def test_no_axis_goes_beyond_what_is_possible() -> None:
    rows = [
        mean("cas", "baseline") | {"figure": figure, "mean": m, "mean_low": m, "mean_high": m}
        for figure, m in (("availability", 1.0), ("conflicts per operation", 0.0))
    ]
    share, count = groups.compare(rows, "cas").axes
    assert share.get_xlim()[1] == 1
    assert count.get_xlim()[0] == 0
    sent = {"strategy": "cas", "key": "7", "first_polled_ns": None, "is_late": False}
    messages_ = [sent | {"offset": offset, "sent_ns": offset} for offset in (0, 1)]
    (axes,) = groups.filling(messages_, ["cas"]).axes
    low, high = axes.get_ylim()
    assert [tick for tick in axes.get_yticks() if low <= tick <= high] == [0, 1]


def test_recoveries_that_were_not_seen_are_hollow() -> None:
    rows = [
        {"strategy": "cas", "kind": "kill", "watched_ns": SECOND, "recovery_ns": recovered}
        for recovered in (SECOND // 2, math.nan)
    ]
    picture = groups.recovery_times(pd.DataFrame(rows))
    assert {"cas", "kill", "not seen in this time"} <= words(picture)
    assert [line.get_fillstyle() for line in picture.axes[0].lines] == ["full", "none"]


def test_curves_are_logarithmic_and_named() -> None:
    curve = [
        {"strategy": "cas", "f": "poll", "slower_share": s, "latency_ns": 1e6 / s} for s in (1, 0.1)
    ]
    assert {"poll", "cas", "share that took longer"} <= words(groups.latency_curves(curve))


def test_messages_behind_a_reader_are_red() -> None:
    row = {
        "strategy": "prefetch",
        "key": "7",
        "offset": 1,
        "sent_ns": 5,
        "first_polled_ns": math.nan,
    }
    picture = groups.filling(pd.DataFrame([row | {"is_late": True}]), ("leader", "prefetch"))
    assert {"prefetch, key 7", "sent behind a reader"} <= words(picture)
    assert style.ALARM in picture.svg()


def test_dots_have_a_median_and_a_logarithmic_axis_where_they_span_a_decade() -> None:
    narrow = groups.dots([("a cell", "cas", [1.0, 2.0, 9.0])], "ms")
    wide = groups.dots([("a cell", "cas", [1.0, 2.0, 90.0])], "ms")
    assert narrow
    assert wide
    assert [p.axes[0].get_xscale() for p in (narrow, wide)] == ["linear", "log"]
    assert np.asarray(wide.axes[0].lines[1].get_xdata())[0] == 2.0
    assert groups.dots([("a cell", "cas", [])], "ms") is None


@pytest.mark.parametrize(
    ("picture", "reason"),
    [
        (lambda: run.latency_over_time([], SPAN, "Latency"), "No such operation in these runs."),
        (lambda: run.under_faults([], []), "No run in this lake has faults."),
        (
            lambda: messages.messages_per_operation([], "link"),
            "No run has a strategy and messages.",
        ),
        (lambda: groups.compare([], "cas"), "No run has a strategy and figures."),
        (
            lambda: groups.recovery_times([]),
            "No fault ended long enough before the next one to be watched.",
        ),
        (lambda: groups.latency_curves([]), "No send and no poll was acknowledged."),
        (lambda: groups.filling([], ("cas",)), "Nobody sent or polled a message."),
    ],
)
def test_a_picture_of_nothing_says_why(picture: Callable[[], Picture], reason: str) -> None:
    assert reason in words(picture())


def test_rows_of_a_frame_have_none_for_what_is_no_number() -> None:
    assert records(pd.DataFrame({"a": [1.5, math.nan]})) == [{"a": 1.5}, {"a": None}]
    assert records([{"a": "x"}]) == [{"a": "x"}]
    assert dataclasses.replace(SPAN, end_ns=0).end_s > 0  # an axis has some length
