"""Plots as inline SVG, from the figures of a run.

Text and axes are drawn in the page's own colour (`currentColor`), so that one picture reads well on
light and on dark. Text stays text: it can be searched, and needs no font in the file.
"""

import io
import math
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from analysis.colours import colours
from pages.figures import Figures, Row

INK = "#010203"  # stands for currentColor, which matplotlib does not know
# As in Lamport diagrams and timelines, a little lighter: they are seen on dark too.
LINKS = {"client": "#2f83c5", "node-store": "#1fa37c", "node-node": "#c9822f"}
OUTCOMES = {"ok": "#2f83c5", "fail": "#d0452b", "info": "#e0a11b", "open": "#8a8f98"}
QUANTILE_LINES = {"latency_ns_p50": "p50", "latency_ns_p99": "p99", "latency_ns_max": "max"}
_COLOURS = {"p50": "#3b82c4", "p99": "#e08a3c", "max": "#8a8f98"}
FAULTS = {
    "partition": "#d9a400",
    "kill": "#d0553f",
    "pause": "#5b78d6",
    "loss": "#b05bd6",
    "duplicate": "#d65b9d",
    "slow": "#3b9ec4",
    "store": "#3fa06a",
    "fence": "#7d6a4f",
}
OTHER_FAULT = "#8a8f98"
_DRAWING = threading.Lock()  # matplotlib's settings are global
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "analysis",  # the same figures give the same page
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "grid.color": INK,
    "grid.alpha": 0.12,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}
WIDTH_INCHES = 9.2
_SHORTEST_MS = 1e-3  # a logarithmic axis has no zero


@dataclass(frozen=True)
class Frame:
    """What several pictures have in common, so that they can be compared by eye."""

    kinds: Sequence[str]
    end_s: float
    limits_ms: tuple[float, float] | None = None
    width_inches: float = WIDTH_INCHES


def frame(runs: Sequence[Figures], width_inches: float = WIDTH_INCHES) -> Frame:
    """The frame into which the latencies of all these runs fit."""
    rows = [row for figures in runs for row in figures.latency_over_time]
    kinds = _kinds(rows)
    rows = [row for row in rows if row["f"] in kinds]
    end_s = max((figures.duration_ns for figures in runs), default=0) / 1e9
    lowest = min((row["latency_ns_p50"] for row in rows), default=0) / 1e6
    highest = max((row["latency_ns_max"] for row in rows), default=0) / 1e6
    limits_ms = (max(lowest, _SHORTEST_MS) / 1.5, max(highest, _SHORTEST_MS) * 1.5)
    return Frame(kinds, end_s, limits_ms, width_inches)


def latency_over_time(figures: Figures, within: Frame | None = None) -> str:
    """A panel for each kind of operation: p50, p99 and maximum, with faults shaded.

    Args:
        figures: of the run.
        within: the frame to draw in; by default one that fits.
    """
    chosen = within or Frame(_kinds(figures.latency_over_time), figures.duration_ns / 1e9)
    kinds = chosen.kinds

    def draw(figure: Figure) -> None:
        panels = figure.subplots(len(kinds), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, kind in zip(panels, kinds, strict=True):
            _latency_panel(axes, figures, kind)
            axes.set_title(kind)
            _shade(axes, figures, chosen.end_s)
        if chosen.limits_ms:
            panels[0].set_ylim(chosen.limits_ms)
        _logarithmic(panels[0].yaxis)
        panels[0].legend(ncols=8, loc="lower right", bbox_to_anchor=(1, 1), fontsize=9)
        panels[-1].set_xlabel("time of invocation, s")

    empty = not kinds or not figures.latency_over_time
    return "" if empty else _svg(draw, 1.7 * len(kinds) + 0.7, chosen.width_inches)


def _logarithmic(axis: Axis) -> None:
    """Few and plain numbers: 0.5, 1, 2 where there are two decades or less, else powers of ten."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())


def _kinds(rows: Sequence[Row]) -> list[str]:
    """Kinds of operations worth a panel, commonest first: those with a twentieth of them all."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["f"]] = counts.get(row["f"], 0) + row["operation_count"]
    most = sorted(counts, key=lambda kind: (-counts[kind], kind))
    return [kind for kind in most if counts[kind] * 20 >= sum(counts.values())][:4]


def _latency_panel(axes: Axes, figures: Figures, kind: str) -> None:
    rows = {row["window_start_ns"]: row for row in figures.latency_over_time if row["f"] == kind}
    starts = _window_starts(figures)
    for column, name in QUANTILE_LINES.items():
        # Windows without operations are gaps in the line, not straight bridges.
        latencies_ms = [
            max(rows[start][column] / 1e6, _SHORTEST_MS) if start in rows else math.nan
            for start in starts
        ]
        axes.plot(
            [start / 1e9 for start in starts],
            latencies_ms,
            label=name,
            color=_COLOURS[name],
            linewidth=0 if name == "max" else 1.4,
            marker=".",
            markersize=5 if name == "max" else 3,
            zorder=1 if name == "max" else 2,
        )
    axes.set_yscale("log")
    axes.set_ylabel("latency, ms")
    axes.grid(axis="y")


def _window_starts(figures: Figures) -> list[int]:
    """Starts of all windows, and the end of the last one."""
    return list(range(0, figures.duration_ns + figures.window_ns + 1, figures.window_ns))


def _shade(axes: Axes, figures: Figures, axis_end_s: float) -> None:
    named = set()
    for fault in figures.faults:
        kind = fault["kind"]
        start_s = fault["started_ns"] / 1e9
        end_s = (figures.duration_ns if fault["ended_ns"] is None else fault["ended_ns"]) / 1e9
        colour = FAULTS.get(kind, OTHER_FAULT)
        label = None if kind in named else kind
        axes.axvspan(start_s, end_s, color=colour, alpha=0.18, linewidth=0, label=label)
        named.add(kind)
    axes.set_xlim(0, max(axis_end_s, 1e-3))


def throughput(figures: Figures) -> str:
    """Operations completed per second, stacked by outcome, with faults shaded."""
    rates: dict[str, dict[int, float]] = {}
    for row in figures.throughput:
        rates.setdefault(row["outcome"], {})[row["window_start_ns"]] = row["rate_hz"]
    starts = _window_starts(figures)
    present = [outcome for outcome in OUTCOMES if outcome in rates]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        stacks = [[rates[outcome].get(start, 0.0) for start in starts] for outcome in present]
        colours = [OUTCOMES[outcome] for outcome in present]
        times_s = [start / 1e9 for start in starts]
        axes.stackplot(times_s, stacks, labels=present, colors=colours, step="post", alpha=0.85)
        _shade(axes, figures, figures.duration_ns / 1e9)
        axes.set_xlabel("time of completion, s")
        axes.set_ylabel("operations per second")
        axes.grid(axis="y")
        axes.legend(ncols=8, loc="lower right", bbox_to_anchor=(1, 1), fontsize=9)

    return _svg(draw, 2.3) if present else ""


def server_messages(figures: Figures) -> str:
    """Server messages per operation by type, longest bar first, coloured by class of link."""
    rows = [row for row in figures.by_type if row["link"] != "client"]
    rows.sort(key=lambda row: row["message_count"])
    return _bars(rows[-20:], [str(row["type"]) for row in rows[-20:]])


def message_classes(figures: Figures) -> str:
    """Messages per operation on each class of link, the clients' too."""
    per_operation = "messages_per_operation"
    totals: list[Row] = [
        {"link": link, per_operation: sum(row[per_operation] or 0 for row in rows)}
        for link in reversed(LINKS)
        if (rows := [row for row in figures.by_type if row["link"] == link])
    ]
    return _bars(totals, [row["link"] for row in totals])


def _bars(rows: Sequence[Row], names: Sequence[str]) -> str:
    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        values = [row["messages_per_operation"] or 0 for row in rows]
        bars = axes.barh(range(len(rows)), values, color=[LINKS[row["link"]] for row in rows])
        axes.bar_label(bars, fmt="%.3f", padding=4)
        axes.set_yticks(range(len(rows)), names)
        axes.tick_params(axis="y", length=0)
        axes.margins(x=0.1)
        axes.set_xlabel("messages per operation")

    return _svg(draw, 0.3 * len(rows) + 0.7) if rows else ""


def _svg(
    draw: Callable[[Figure], None], height_inches: float, width_inches: float = WIDTH_INCHES
) -> str:
    with _DRAWING, mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width_inches, height_inches), layout="constrained")
        draw(figure)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return _inline(out.getvalue())


def _inline(document: str) -> str:
    """An SVG document as an element of a page, as wide as its column."""
    element = document[document.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, count=1, flags=re.DOTALL)
    element = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", element, count=1)
    element = re.sub(r'(<svg[^>]*?) height="[^"]*"', r'\1 role="img"', element, count=1)
    return element.replace(INK, "currentColor")


def dots(rows: Sequence[tuple[str, str, Sequence[float]]], unit: str) -> str:
    """A row for each case: a dot for each repetition, and a bar at the median.

    Args:
        rows: name, strategy (which has a colour of its own), values.
        unit: what the values are.
    The axis is logarithmic where the values span more than a decade.
    """
    every = [value for _, _, values in rows for value in values]
    logarithmic = bool(every) and max(every) > 10 * min(every) > 0
    colour_of = colours(strategy for _, strategy, _ in rows)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for at, (_, strategy, values) in enumerate(reversed(rows)):
            axes.plot(values, [at] * len(values), "o", ms=5, alpha=0.7, color=colour_of[strategy])
            if values:
                axes.plot([median(values)], [at], "|", ms=16, mew=2, color=colour_of[strategy])
        axes.set_yticks(range(len(rows)), [name for name, _, _ in reversed(rows)])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="both")
        axes.set_xlabel(unit)
        if logarithmic:
            axes.set_xscale("log")
            _logarithmic(axes.xaxis)
        else:
            axes.set_xlim(0, 1.05 * max(every) or 1)

    return _svg(draw, 0.28 * len(rows) + 0.7) if every else ""
