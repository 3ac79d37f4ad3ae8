"""What a run was like over time: latencies and throughput, with its faults shaded.

All are fed by rows, with the columns that the metrics of a run have: `window_start_ns`, `latency_ns_p50` and
so on for lines; `invoked_ns`, `latency_ns`, `outcome` for dots; `kind`, `started_ns`, `ended_ns` for faults.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from runs.operations import Pause
from runs.plots import style
from runs.plots.picture import (
    SHORTEST_MS,
    WIDTH_INCHES,
    Layout,
    Look,
    Picture,
    Row,
    Table,
    dot_key,
    drawn,
    legend,
    line_key,
    logarithmic,
    nothing,
    panels_of,
    patch_key,
    records,
)
from runs.plots.time_axis import draw_faults, fault_keys, kinds_of, shade, shade_any, shorten

_FAULT_ROW_INCHES = 0.24
_LINE: Look = {"linewidth": 1.4, "marker": ".", "markersize": 3.5}
_LOOKS: dict[str, Look] = {
    "p50": _LINE,
    "p90": _LINE | {"linewidth": 1, "linestyle": "--", "marker": ""},
    "p99": _LINE,
    "max": {"linewidth": 0, "marker": ".", "markersize": 5, "zorder": 1},
}
_QUANTILES = {name: {"color": style.QUANTILES[name], **look} for name, look in _LOOKS.items()}


@dataclass(frozen=True, slots=True)
class Panel:
    """What one panel shows: rows, and the faults of the run that they are of."""

    title: str
    rows: Sequence[Row]
    faults: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """The time that a picture shows, from the start of the run, and the width of its windows."""

    end_ns: int
    window_ns: int = 1
    pause: Pause | None = None  # drawn as a narrow band: nothing happened in it

    @property
    def end_s(self) -> float:
        return max(self.end_ns / 1e9, 1e-3)


@drawn
def latency_raw(panels: Sequence[Panel], span: Span, title: str = "", columns: int = 1) -> Picture:
    """Every operation as a dot: when it was invoked, how long it took, what became of it.

    Args:
        panels: rows with invoked_ns, latency_ns (None: never completed, not drawn), outcome.
        span: the time shown.
        title: above all of it.
        columns: how many panels stand side by side.
    """
    timed = [[row for row in panel.rows if row["latency_ns"] is not None] for panel in panels]
    there = {row["outcome"] for rows in timed for row in rows}
    keys = [
        dot_key(colour, style.OUTCOME_MEANINGS[name])
        for name, colour in style.OUTCOMES.items()
        if name in there
    ]

    def draw(axes: Axes, panel: Panel) -> None:
        _dots(axes, [row for row in panel.rows if row["latency_ns"] is not None])
        _latency_axis(axes)

    return _over_time(panels, span, draw, keys, title=title, columns=columns)


def _dots(axes: Axes, rows: Sequence[Row]) -> None:
    """Many dots are small and let others through; what did not go well stays easy to see."""
    for outcome, colour in style.OUTCOMES.items():
        times = [
            (row["invoked_ns"], row["latency_ns"]) for row in rows if row["outcome"] == outcome
        ]
        points = np.array(times, dtype=np.float64).reshape(-1, 2)
        size = min(max(150 / max(len(points), 1) ** 0.5, 1.2), 4.0)
        look: Look = {"markersize": size if outcome == "ok" else max(size, 2.5), "color": colour}
        latency_ms = np.maximum(points[:, 1] / 1e6, SHORTEST_MS)
        axes.plot(points[:, 0] / 1e9, latency_ms, "o", markeredgewidth=0, alpha=0.6, **look)


@drawn
def latency_over_time(
    panels: Sequence[Panel],
    span: Span,
    title: str = "",
    limits_ms: tuple[float, float] | None = None,
    width_inches: float = WIDTH_INCHES,
    *,
    when: str = "invocation",
) -> Picture:
    """p50, p90, p99 and maximum latency, by the time of invocation.

    Args:
        panels: rows with window_start_ns, latency_ns_p50, _p90, _p99, _max.
        span: the time shown, and the width of the windows.
        title: above all of it.
        limits_ms: of the axis of latencies, where several pictures are compared by eye.
        width_inches: of the picture.
        when: the event that says when a row was.
    """

    def draw(axes: Axes, panel: Panel) -> None:
        for name, look in _QUANTILES.items():
            axes.plot(*_series(panel.rows, f"latency_ns_{name}", span), **look)
        _latency_axis(axes)
        if limits_ms:
            axes.set_ylim(limits_ms)

    keys = [line_key(name, **look) for name, look in _QUANTILES.items()]
    return _over_time(panels, span, draw, keys, title=title, when=when, width_inches=width_inches)


@drawn
def throughput(
    panels: Sequence[Panel],
    span: Span,
    title: str = "",
    *,
    what: str = "operations",
    when: str = "completion",
) -> Picture:
    """Operations completed per second, stacked by outcome, by the time of completion.

    Args:
        panels: rows with outcome, window_start_ns, rate_hz.
        span: the time shown, and the width of the windows.
        title: above all of it.
        what: they are.
        when: the event that says when a row was.
    """
    there = {row["outcome"] for panel in panels for row in panel.rows}
    shown = {name: colour for name, colour in style.OUTCOMES.items() if name in there}
    starts = range(0, span.end_ns + span.window_ns + 1, span.window_ns)

    def draw(axes: Axes, panel: Panel) -> None:
        rates = {(row["outcome"], row["window_start_ns"]): row["rate_hz"] for row in panel.rows}
        stacks = [[rates.get((name, start), 0.0) for start in starts] for name in shown]
        times_s = [start / 1e9 for start in starts]
        if stacks:
            colours = [*shown.values()]
            axes.stackplot(times_s, stacks, colors=colours, step="post", alpha=0.85, linewidth=0)
        axes.set_ylabel(f"{what} / s")

    keys = [patch_key(shown[name], style.OUTCOME_MEANINGS[name], alpha=0.85) for name in shown]
    return _over_time(panels, span, draw, keys, title=title, when=when, sharey=False)


@drawn
def under_faults(operations: Table, faults: Table) -> Picture:
    """What faults do to each operation: a row for each strategy, a column for each weather.

    Args:
        operations: strategy, weather, invoked_ns, latency_ns, outcome, of one run for each pair.
        faults: strategy, weather, kind, started_ns, ended_ns of the same runs.
    """
    title, rows, shades = "Sends and polls under faults", records(operations), records(faults)
    if not rows:
        return nothing(title, "No run in this lake has faults.")
    weathers = sorted({row["weather"] for row in rows})
    cells = [
        (strategy, weather)
        for strategy in style.strategies(row["strategy"] for row in rows)
        for weather in weathers
    ]
    panels = [
        Panel(", ".join(cell), *([r for r in each if _cell(r) == cell] for each in (rows, shades)))
        for cell in cells
    ]
    span = Span(int(max(row["invoked_ns"] for row in rows)))
    return latency_raw(panels, span, title, columns=len(weathers))


def _cell(row: Row) -> tuple[str, str]:
    return row["strategy"], row["weather"]


def _over_time(
    panels: Sequence[Panel],
    span: Span,
    draw: Callable[[Axes, Panel], None],
    keys: Sequence[Artist],
    *,
    title: str,
    columns: int = 1,
    width_inches: float = WIDTH_INCHES,
    when: str = "invocation",
    sharey: bool = True,
) -> Picture:
    """Panels over the same time; several kinds of faults get a panel of their own where all share them."""
    if not panels:
        return nothing(title, "No such operation in these runs.")
    faults = [fault for panel in panels for fault in panel.faults]
    kinds = len(kinds_of(faults))
    apart = kinds > 1 and columns == 1 and all(each.faults == panels[0].faults for each in panels)
    heights = [_FAULT_ROW_INCHES * kinds + 0.25] * apart + [1.9] * -(-len(panels) // columns)
    layout = Layout(columns, heights_inches=heights, width_inches=width_inches, sharex=True)
    picture, all_axes = panels_of(title, len(panels) + apart, layout)
    if apart:
        draw_faults(all_axes.pop(0), panels[0].faults, span.end_s)
    for axes, panel in zip(all_axes, panels, strict=True):
        if sharey and axes is not all_axes[0]:
            axes.sharey(all_axes[0])
        draw(axes, panel)
        axes.set_title(panel.title)
        (shade_any if apart else shade)(axes, panel.faults, span.end_s)
    all_axes[0].set_xlim(0, span.end_s)
    if span.pause:
        start_ns, stop_ns = span.pause
        shorten(all_axes, (start_ns / 1e9, stop_ns / 1e9), span.end_s)
    for at, axes in enumerate(all_axes):
        if at % columns:
            axes.set_ylabel("")
        if at >= len(all_axes) - columns:
            axes.set_xlabel(f"time of {when}, s")
    legend(picture, [*keys, *([] if apart else fault_keys(faults))])
    return picture


def _series(rows: Sequence[Row], column: str, span: Span) -> tuple[list[float], list[float]]:
    """Times in s and values in ms: NaN where windows are missing, so that lines have gaps there."""
    times_s: list[float] = []
    values: list[float] = []
    due_ns = None
    for row in sorted(rows, key=lambda row: int(row["window_start_ns"])):
        start_ns = row["window_start_ns"]
        if due_ns is not None and start_ns > due_ns:
            times_s.append(due_ns / 1e9)
            values.append(math.nan)
        times_s.append(start_ns / 1e9)
        values.append(max(row[column] / 1e6, SHORTEST_MS))
        due_ns = start_ns + span.window_ns
    return times_s, values


def _latency_axis(axes: Axes) -> None:
    logarithmic(axes)
    axes.set_ylabel("latency, ms")


def frequent(counts: dict[str, int], most: int = 4) -> list[str]:
    """Kinds of operations worth a panel, commonest first: those with a twentieth of them all."""
    order = sorted(counts, key=lambda kind: (-counts[kind], kind))
    return [kind for kind in order if counts[kind] * 20 >= sum(counts.values())][:most]
