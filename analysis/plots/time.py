"""What a run was like over time, with the faults shaded: a panel for each run."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analysis.metrics import availability as available
from analysis.metrics.lag import poll_lags
from analysis.metrics.latency import latency_over_time as latencies
from analysis.metrics.latency import quantiles, window_start
from analysis.plots import style

WINDOWS = 80  # at most so many points in time, however long the run
_PANEL_INCHES = 2.0
_MOST_PANELS = 8
Rows = Sequence[Mapping[str, Any]]


def latency_over_time(
    operations: DataFrame,
    faults: DataFrame,
    f: str = "send",
    titles: Mapping[str, str] | None = None,
) -> style.Picture:
    """p50, p99 and maximum latency of the operations `f`, by time of invocation.

    Args:
        operations, faults: the tables, of one run or a few (the first eight are drawn).
        f: the kind of operation.
        titles: what to call a run instead of its name.
    """

    def lines(window_ns: int) -> DataFrame:
        return latencies(operations.filter(F.col("f") == f), window_ns)

    def draw(axes: Axes, rows: Rows) -> None:
        for name, look in looks.items():
            axes.plot(*_line(rows, f"latency_ns_{name}", 1e6), **look)
        style.log_ms(axes)

    line = {"linewidth": 1.6, "marker": ".", "markersize": 4}
    dots = {"linewidth": 0, "marker": "o", "fillstyle": "none", "markersize": 5}
    looks = {
        name: {"color": colour, **(dots if name == "max" else line)}
        for name, colour in style.QUANTILES.items()
    }
    handles = [Line2D([], [], label=name, **look) for name, look in looks.items()]
    title = f"Latency of {f} over time"
    return _over_time(
        title, operations, faults, lines=lines, draw=draw, handles=handles, titles=titles
    )


def availability_over_time(
    operations: DataFrame, faults: DataFrame, titles: Mapping[str, str] | None = None
) -> style.Picture:
    """The share of the operations invoked in a window that were acknowledged."""

    def lines(window_ns: int) -> DataFrame:
        return available.availability(operations, window_ns)

    def draw(axes: Axes, rows: Rows) -> None:
        line = _line(rows, "availability", 0.01)
        axes.plot(*line, color=style.COLOURS[0], linewidth=1.6, marker=".", markersize=4)
        axes.set_ylabel("acknowledged, %")

    title, limits = "Availability over time", (-4, 104)
    return _over_time(
        title, operations, faults, lines=lines, draw=draw, handles=[], titles=titles, limits=limits
    )


def lag_over_time(
    operations: DataFrame, faults: DataFrame, titles: Mapping[str, str] | None = None
) -> style.Picture:
    """p99 and maximum realtime lag of polls, by time of invocation."""
    shown = {name: style.QUANTILES[name] for name in ("p99", "max")}

    def lines(window_ns: int) -> DataFrame:
        windowed = poll_lags(operations).withColumn(
            "window_start_ns", window_start("invoked_ns", window_ns)
        )
        keys = ["run_id", "window_start_ns"]
        return windowed.groupBy(keys).agg(*quantiles("lag_ns")).orderBy(keys)

    def draw(axes: Axes, rows: Rows) -> None:
        for name, colour in shown.items():
            axes.plot(*_line(rows, f"lag_ns_{name}", 1e6), color=colour, linewidth=1.6)
        axes.set_yscale("symlog", linthresh=1, linscale=0.5)  # most polls lag by nothing at all
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_ylabel("lag, ms")

    handles = [Line2D([], [], color=colour, label=name) for name, colour in shown.items()]
    return _over_time(
        "Realtime lag of polls",
        operations,
        faults,
        lines=lines,
        draw=draw,
        handles=handles,
        titles=titles,
    )


def _over_time(
    title: str,
    operations: DataFrame,
    faults: DataFrame,
    *,
    lines: Callable[[int], DataFrame],
    draw: Callable[[Axes, Rows], None],
    handles: Sequence[Any],
    titles: Mapping[str, str] | None,
    limits: tuple[float, float] | None = None,
) -> style.Picture:
    end_ns = operations.agg(F.max(F.greatest("invoked_ns", "completed_ns"))).collect()[0][0] or 0
    window_ns = window_width(end_ns)
    runs = {
        run_id: _with_gaps(rows, window_ns) for run_id, rows in _by_run(lines(window_ns)).items()
    }
    if not runs:
        return style.nothing(title, "No such operation in these runs.")
    shown = [*runs][:_MOST_PANELS]
    of_run = _by_run(faults.orderBy("run_id", "started_ns"))
    height_inches = 0.9 + _PANEL_INCHES * len(shown)
    figure, panels = style.picture(title, height_inches, rows=len(shown), sharex=True, sharey=True)
    patches: dict[str, Any] = {}
    for axes, run_id in zip(panels, shown, strict=True):
        draw(axes, runs[run_id])
        style.name(axes, (titles or {}).get(run_id, run_id))
        axes.set_xlim(0, end_ns / 1e9)
        shades = style.shade(axes, of_run.get(run_id, []), end_ns / 1e9)
        patches |= {str(patch.get_label()): patch for patch in shades}
    if limits:
        panels[0].set_ylim(limits)  # theirs all, as they share it
    panels[-1].set_xlabel("time since the start of the run, s")
    style.legend(figure, [*handles, *patches.values()])
    return figure


def _with_gaps(rows: Rows, window_ns: int) -> list[Mapping[str, Any]]:
    """With an empty row wherever windows are missing, so that no line is drawn across."""
    whole: list[Mapping[str, Any]] = []
    for row in rows:
        due_ns = whole[-1]["window_start_ns"] + window_ns if whole else row["window_start_ns"]
        if row["window_start_ns"] > due_ns:
            whole.append({"window_start_ns": due_ns})
        whole.append(row)
    return whole


def _line(rows: Rows, column: str, unit: float) -> tuple[list[float], list[float]]:
    """Times in s, and the column in its unit; not a number where there is none."""
    values = [row[column] / unit if column in row else math.nan for row in rows]
    return [row["window_start_ns"] / 1e9 for row in rows], values


def _by_run(rows: DataFrame) -> dict[str, list[dict[str, Any]]]:
    runs: dict[str, list[dict[str, Any]]] = {}
    for row in rows.collect():
        runs.setdefault(row.run_id, []).append(row.asDict())
    return runs


def window_width(duration_ns: int) -> int:
    """The smallest of 1, 2 or 5 times a power of ten ns that cuts a duration into few windows."""
    least, width_ns = max(duration_ns / WINDOWS, 1), 1
    while width_ns * 10 <= least:
        width_ns *= 10
    return next(nice * width_ns for nice in (1, 2, 5, 10) if nice * width_ns >= least)
