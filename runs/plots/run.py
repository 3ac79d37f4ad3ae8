"""What a run was like over time: latencies and throughput, with its faults shaded.

All are fed by rows, with the columns that the figures of a run have: `window_start_ns`, `latency_ns_p50` and
so on for lines; `invoked_ns`, `latency_ns`, `outcome` for dots; `kind`, `started_ns`, `ended_ns` for faults.

On the axis of time faults are shaded, and a long pause is a narrow band. The pictures in the folder of a run
are a handful, each for a question one asks after a verdict.

    latency-raw.png        how long did each operation take, and what became of it?
    latency-quantiles.png  did latency change over time?
    rate.png               did throughput change over time, did operations fail?
    timeline.html          who did what, one after another?
    lamport.svg            which messages make up an operation?

Faults are shaded in each but the last. Everything here only reads a history or a journal, and nothing here
can make a run fail.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator

from runs import operations as of_operations
from runs.faults import injections
from runs.history import Op
from runs.operations import (
    Pause,
    Row,
    Timed,
    Timings,
    long_pause,
    window_width,
)
from runs.plots import style
from runs.plots.lamport import first_messages, lamport_svg
from runs.plots.picture import (
    SHORTEST_MS,
    Look,
    Picture,
    Table,
    legend,
    logarithmic,
    nothing,
    panels_of,
    records,
)
from runs.plots.timeline import Anomalies, timeline_html
from runs.reading import Bad, Budget, journal
from runs.store import Folder

_PANEL_INCHES, _FAULT_ROW_INCHES = 1.9, 0.24
_LINE: Look = {"linewidth": 1.4, "marker": ".", "markersize": 3.5}
_LOOKS: dict[str, Look] = {
    "p50": _LINE,
    "p90": {"linewidth": 1, "linestyle": "--"},
    "p99": _LINE,
    "max": {"linewidth": 0, "marker": ".", "markersize": 5, "zorder": 1},
}


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


def latency_raw(panels: Sequence[Panel], span: Span, title: str = "", columns: int = 1) -> Picture:
    """Every operation as a dot: when it was invoked, how long it took, what became of it.

    Args:
        panels: rows with invoked_ns, latency_ns (None: never completed, not drawn), outcome.
        span: the time shown.
        title: above all of it.
        columns: how many panels stand side by side.
    """

    def draw(axes: Axes, rows: Sequence[Row]) -> None:
        # Many dots are small and let others through; what did not go well stays easy to see.
        for outcome, colour in style.OUTCOMES.items():
            mine = [r for r in rows if r["outcome"] == outcome and r["latency_ns"] is not None]
            size = min(max(150 / max(len(mine), 1) ** 0.5, 1.2 if outcome == "ok" else 2.5), 4.0)
            times_s = [row["invoked_ns"] / 1e9 for row in mine]
            took_ms = [max(row["latency_ns"] / 1e6, SHORTEST_MS) for row in mine]
            axes.plot(
                times_s,
                took_ms,
                "o",
                markersize=size,
                markeredgewidth=0,
                alpha=0.6,
                color=colour,
                label=style.OUTCOME_MEANINGS[outcome] if mine else None,
            )
        logarithmic(axes)
        axes.set_ylabel("latency, ms")

    return _over_time(panels, span, draw, title=title, columns=columns)


def latency_over_time(
    panels: Sequence[Panel],
    span: Span,
    title: str = "",
    limits_ms: tuple[float, float] | None = None,
    *,
    when: str = "invocation",
) -> Picture:
    """p50, p90, p99 and maximum latency, by the time of invocation.

    Args:
        panels: rows with window_start_ns, latency_ns_p50, _p90, _p99, _max.
        span: the time shown, and the width of the windows.
        title: above all of it.
        limits_ms: of the axis of latencies, where several pictures are compared by eye.
        when: the event that says when a row was.
    """

    def draw(axes: Axes, rows: Sequence[Row]) -> None:
        known = {row["window_start_ns"]: row for row in rows}
        starts_ns = range(min(known, default=0), max(known, default=-1) + 1, span.window_ns)
        times_s = [start_ns / 1e9 for start_ns in starts_ns]
        for name, look in _LOOKS.items():
            values = [  # the line has a gap where windows are missing
                max(known[start_ns][f"latency_ns_{name}"] / 1e6, SHORTEST_MS)
                if start_ns in known
                else math.nan
                for start_ns in starts_ns
            ]
            axes.plot(times_s, values, color=style.QUANTILES[name], label=name, **look)
        logarithmic(axes)
        axes.set_ylabel("latency, ms")
        if limits_ms:
            axes.set_ylim(limits_ms)

    return _over_time(panels, span, draw, title=title, when=when)


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
    starts = np.arange(0, span.end_ns + span.window_ns + 1, span.window_ns)

    def draw(axes: Axes, rows: Sequence[Row]) -> None:
        rates = {(row["outcome"], row["window_start_ns"]): row["rate_hz"] for row in rows}
        stacks = [[rates.get((name, start), 0.0) for start in starts] for name in shown]
        if shown:
            axes.stackplot(
                starts / 1e9,
                stacks,
                step="post",
                labels=[style.OUTCOME_MEANINGS[name] for name in shown],
                colors=[*shown.values()],
                alpha=0.85,
                linewidth=0,
            )
        axes.set_ylabel(f"{what} / s")

    return _over_time(panels, span, draw, title=title, when=when, sharey=False)


def under_faults(
    operations: Table, faults: Table, by: str = "strategy", weather: str = "weather"
) -> Picture:
    """What faults do to each operation: a row for each group, a column for each weather.

    Args:
        operations: the columns `by` and `weather`, invoked_ns, latency_ns, outcome, of one run for each pair.
        faults: the same two columns, kind, started_ns, ended_ns of the same runs.
        by: what makes the groups.
        weather: the column that names the kinds of faults.
    """
    title, rows, shades = "Operations under faults", records(operations), records(faults)
    if not rows:
        return nothing(title, "No run in this lake has faults.")
    weathers = sorted({row[weather] for row in rows})
    panels = [
        Panel(
            f"{group}, {kind}",
            *([row for row in each if (row[by], row[weather]) == (group, kind)]
              for each in (rows, shades)),
        )
        for group in style.strategies(row[by] for row in rows)
        for kind in weathers
    ]  # fmt: skip
    span = Span(int(max(row["invoked_ns"] for row in rows)))
    return latency_raw(panels, span, title, columns=len(weathers))


def _over_time(
    panels: Sequence[Panel],
    span: Span,
    draw: Callable[[Axes, Sequence[Row]], None],
    *,
    title: str,
    columns: int = 1,
    when: str = "invocation",
    sharey: bool = True,
) -> Picture:
    """Panels over the same time; several kinds of faults get a panel of their own where all share them."""
    if not panels:
        return nothing(title, "No such operation in these runs.")
    kinds = len(kinds_of([fault for panel in panels for fault in panel.faults]))
    apart = kinds > 1 and columns == 1 and all(each.faults == panels[0].faults for each in panels)
    rows = -(-len(panels) // columns)
    heights = [_FAULT_ROW_INCHES * kinds + 0.25] * apart + [_PANEL_INCHES] * rows
    picture, every = panels_of(title, len(panels) + apart, columns, heights, sharex=True)
    if apart:
        draw_faults(every.pop(0), panels[0].faults, span.end_s)
    for axes, panel in zip(every, panels, strict=True):
        if sharey and axes is not every[0]:
            axes.sharey(every[0])
        draw(axes, panel.rows)
        axes.set_title(panel.title)
        shade(axes, panel.faults, span.end_s, together=apart)
        axes.label_outer()
    every[0].set_xlim(0, span.end_s)
    if span.pause:
        start_ns, stop_ns = span.pause
        shorten(every, (start_ns / 1e9, stop_ns / 1e9), span.end_s)
    for axes in every[-columns:]:
        axes.set_xlabel(f"time of {when}, s")
    legend(picture)
    return picture


def frequent(counts: dict[str, int], most: int = 4) -> list[str]:
    """Kinds of operations worth a panel, commonest first: those with a twentieth of them all."""
    order = sorted(counts, key=lambda kind: (-counts[kind], kind))
    return [kind for kind in order if counts[kind] * 20 >= sum(counts.values())][:most]


# ---------------------------------------------------------------- time_axis

_SHADE, _FAINT = 0.25, 0.13  # the second below a panel that tells overlapping faults apart
_BAND = 0.04  # of the width
_INSTANT_POINTS = 1.5  # the width of a fault that took no time, such as a fence


def kinds_of(faults: Sequence[Row]) -> list[str]:
    """The kinds of these faults: those of the table in its order, others after them."""
    return style.known_first((fault["kind"] for fault in faults), style.FAULTS)


def _in_force(fault: Row, end_s: float) -> tuple[float, float]:
    """From when to when, in s; a fault that never ended lasts to the end."""
    ended_s = end_s if fault["ended_ns"] is None else fault["ended_ns"] / 1e9
    return fault["started_ns"] / 1e9, min(ended_s, end_s)


def shade(axes: Axes, faults: Sequence[Row], end_s: float, *, together: bool = False) -> None:
    """Shade the time in which faults were in force, each in its colour.

    `together`: in one grey, which no time has twice; colours on top of each other are mud.
    """
    until_s = 0.0
    for fault in sorted(faults, key=lambda fault: int(fault["started_ns"])):
        start_s, stop_s = _in_force(fault, end_s)
        kind = fault["kind"]
        look: Look = {"color": style.fault_colour(kind), "alpha": _SHADE, "label": kind}
        if together:
            look = {"color": style.NEUTRAL, "alpha": _FAINT}
            start_s, until_s = max(start_s, until_s), max(stop_s, until_s)
        if start_s < stop_s or not together:
            axes.axvspan(start_s, stop_s, linewidth=0, zorder=0, **look)


def shorten(panels: Sequence[Axes], pause_s: tuple[float, float], end_s: float) -> None:
    """Draw a time in which nothing happened as a narrow band that says how long it was.

    The panels share their time, which goes on behind the band at the same scale.
    """
    start_s, stop_s = pause_s
    band_s = _BAND * (end_s - (stop_s - start_s)) / (1 - _BAND)
    times_s = [0, start_s, stop_s, end_s]
    places = [0, start_s, start_s + band_s, start_s + band_s + end_s - stop_s]
    axis = panels[0].xaxis
    axis.axes.set_xscale(
        "function",
        functions=(
            lambda s: np.interp(s, times_s, places),
            lambda at: np.interp(at, places, times_s),
        ),
    )
    # No ticks in the band, and none close behind it.
    first, second, *_ = MaxNLocator(9, steps=[1, 2, 5, 10]).tick_values(0, places[-1])
    ticks = np.arange(0, end_s, second - first)
    is_apart = (ticks <= start_s) | (ticks >= stop_s + (second - first) / 2)
    axis.set_major_locator(FixedLocator([*ticks[is_apart]]))
    for axes in panels:
        axes.axvspan(
            start_s,
            stop_s,
            facecolor="none",
            edgecolor=style.NEUTRAL,
            hatch="////",
            linewidth=0,
            alpha=0.5,
            zorder=0,
        )
        axes.text(
            (start_s + stop_s) / 2,
            0.5,
            f"no operation for {stop_s - start_s:.3g} s",
            rotation=90,
            ha="center",
            va="center",
            fontsize=10,
            transform=axes.get_xaxis_transform(),
        )


def draw_faults(axes: Axes, faults: Sequence[Row], end_s: float) -> None:
    """A row for each kind of fault, with a bar while it was in force."""
    kinds = kinds_of(faults)
    for fault in faults:
        start_s, stop_s = _in_force(fault, end_s)
        colour = style.fault_colour(fault["kind"])
        axes.barh(
            kinds.index(fault["kind"]),
            stop_s - start_s,
            left=start_s,
            height=0.7,
            color=colour,
            edgecolor=colour,
            linewidth=_INSTANT_POINTS,
        )
    axes.set_yticks(range(len(kinds)), kinds)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(kinds) - 0.5, -0.5)
    axes.grid(visible=False)
    axes.set_title("faults")


# ---------------------------------------------------------------- in the folder of a run

_NAME_CHARACTERS = 19  # a time to its seconds


# A plot of a run: its title, what draws it, its rows, whether rarer kinds of operations have a panel, too.
_PLOTS: dict[
    str,
    tuple[
        str,
        Callable[[Sequence[Panel], Span, str], Picture],
        Callable[[list[Timed], int], list[Row]],
        bool,
    ],
] = {
    "latency-raw.png": (
        "Latency of each operation",
        latency_raw,
        lambda done, _: [each._asdict() for each in done],
        True,
    ),
    "latency-quantiles.png": (
        "Latency over time",
        latency_over_time,
        of_operations.latency_over_time,
        False,
    ),
    "rate.png": ("Rate of completed operations", throughput, of_operations.throughput, True),
}


def _plot(file: str, history: Sequence[Op], name: str) -> bytes:
    """A plot of the table as PNG: a panel for each frequent kind of operation."""
    title, draw, rows_of, has_rest = _PLOTS[file]
    timings = Timings(history)
    done = [each for each in timings if each.outcome != of_operations.OPEN]
    end_ns = history[-1].time if history else 0
    pause = long_pause((each.invoked_ns, each.ended_ns) for each in timings)
    span = Span(end_ns, window_width(end_ns), pause)
    kinds = frequent(Counter(each.f for each in done))
    others = list(dict.fromkeys(each.f for each in done if each.f not in kinds))
    groups = [[kind] for kind in kinds] + ([others] if has_rest and others else [])
    faults = [each.row() for each in injections(history)]
    panels = [
        Panel(
            ", ".join(fs), rows_of([each for each in done if each.f in fs], span.window_ns), faults
        )
        for fs in groups or [[]]  # nothing happened: an empty panel says so
    ]
    return draw(panels, span, f"{title} · {name}").png()


def draw_all(
    run_dir: Path,
    history: Sequence[Op],
    test: Mapping[str, Any],
    anomalies: Anomalies | None = None,
) -> dict[str, Path | Exception]:
    """Draw every picture of a run into `run_dir`.

    `test` is what test.json holds; `anomalies` are the operations that the timeline must show.
    Returns, by file name, the file's path or, for a picture that could not be drawn, the exception.
    Never raises.
    """
    known = (str(test.get(key) or "") for key in ("workload", "started"))
    name = " ".join(each[:_NAME_CHARACTERS] for each in known if each) or "run"

    def lamport() -> str:
        files = Folder(run_dir, run_dir.name).journal
        if not files:
            raise FileNotFoundError(f"{run_dir} holds no journal of messages")
        events = first_messages(journal(files, Bad(), Budget()))
        return lamport_svg(events, f"{name}: the first messages after initialisation")

    pictures: dict[str, Callable[[], str | bytes]] = {
        **{file: partial(_plot, file, history, name) for file in _PLOTS},
        "timeline.html": lambda: timeline_html(history, name, test.get("concurrency"), anomalies),
        "lamport.svg": lamport,
    }
    drawn: dict[str, Path | Exception] = {}
    for file, draw in pictures.items():
        try:
            content = draw()
            drawn[file] = run_dir / file
            (run_dir / file).write_bytes(content.encode() if isinstance(content, str) else content)
        except Exception as error:  # a run's verdict must not depend on whether it can be drawn
            drawn[file] = error
    return drawn
