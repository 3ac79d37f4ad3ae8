"""Latency and rate over time, as PNG.

matplotlib's object interface without pyplot: no display, no global state, nothing left behind.
Histories become arrays once, so that 100 000 operations take about a second a picture.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from plots import style
from plots.spans import spans
from runs.faults.injections import Injection, injections
from runs.faults.names import FAULTS
from runs.history import Op

Floats = NDArray[np.float64]

# Drawn in this order; 95 % is dashed, so that 99 % shows through where they are the same operation.
_QUANTILES = (1.0, 0.99, 0.95, 0.5)
_QUANTILE_NAMES = ("slowest", "99 %", "95 %", "median")
_QUANTILE_LINES = ("-", "-", "--", "-")
_WINDOWS = 50  # steps of a line over the whole run
_PANELS = 4
_PANEL_INCHES = 2.1
_ROW_INCHES = 0.24  # of a kind of fault
_SHORTEST_MS = 1e-3  # a logarithmic axis has no zero


@dataclass(frozen=True, slots=True)
class _Points:
    """Completed operations of one `f` and type."""

    time_s: Floats  # of the invocation
    end_s: Floats  # of the completion
    latency_ms: Floats


_Table = dict[tuple[str, str], _Points]


def draw_latency_raw(path: Path, history: Sequence[Op], name: str) -> None:
    """Every operation as a dot: when it was invoked, how long it took, what became of it."""
    table = _table(history)
    panels = _panels(table)
    sheet = _Sheet(f"Latency of each operation · {name}", len(panels), history)
    for axes, fs in zip(sheet.axes, panels, strict=False):
        for kind in style.TYPE_COLOURS:
            points = _select(table, fs, kind)
            axes.plot(points.time_s, points.latency_ms, "o", **_dots(len(points.time_s), kind))
        _latency_axis(axes, fs)
    kinds = [kind for kind in style.TYPE_COLOURS if any(key[1] == kind for key in table)]
    sheet.save(path, [_dot(style.TYPE_COLOURS[kind], style.TYPE_MEANINGS[kind]) for kind in kinds])


def draw_latency_quantiles(path: Path, history: Sequence[Op], name: str) -> None:
    """Quantiles of the latency of completed operations, by the time of their invocation."""
    table = _table(history)
    panels = _frequent(table)
    sheet = _Sheet(f"Latency over time · {name}", len(panels), history)
    for axes, f in zip(sheet.axes, panels, strict=False):
        middle_s, latency_ms = _quantiles(_select(table, [f]), sheet.end_s)
        looks = zip(_QUANTILE_LINES, style.QUANTILE_COLOURS, strict=True)
        for row, (line, colour) in zip(latency_ms, looks, strict=True):
            axes.plot(middle_s, row, line, marker=".", ms=3, lw=1.4, color=colour)
        _latency_axis(axes, [f])
    legend = zip(style.QUANTILE_COLOURS, _QUANTILE_NAMES, _QUANTILE_LINES, strict=True)
    sheet.save(path, [_line(*entry) for entry in legend])


def draw_rate(path: Path, history: Sequence[Op], name: str) -> None:
    """Completed operations a second, by `f`; a panel for each of ok, fail and info."""
    table = _table(history)
    kinds = [kind for kind in style.TYPE_COLOURS if any(key[1] == kind for key in table)]
    fs = _by_frequency(table)
    colours = {f: style.SERIES_COLOURS[i % len(style.SERIES_COLOURS)] for i, f in enumerate(fs)}
    sheet = _Sheet(f"Rate of completed operations · {name}", len(kinds), history)
    for axes, kind in zip(sheet.axes, kinds, strict=False):
        for f in fs:
            if (f, kind) in table:
                middle_s, rate = _rates(table[f, kind].end_s, sheet.end_s)
                axes.plot(middle_s, rate, lw=1.5, color=colours[f])
        axes.set_ylim(bottom=0)
        axes.set_ylabel("operations / s")
        _panel_title(axes, style.TYPE_MEANINGS[kind])
    sheet.save(path, [_line(colours[f], f) for f in fs])


def _dots(count: int, kind: str) -> dict[str, Any]:
    """Many dots are small and let others through; what did not go well stays easy to see."""
    size = min(max(150 / max(count, 1) ** 0.5, 1.2), 4.0)
    if kind != "ok":
        size = max(size, 2.5)
    return {"ms": size, "mew": 0, "alpha": 0.6, "color": style.TYPE_COLOURS[kind]}


def _table(history: Sequence[Op]) -> _Table:
    """Completed operations as arrays, by `f` and type."""
    times: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for span in spans(history):
        if span.completed:
            row = (span.invoked.time, span.completed.time)
            times.setdefault((span.invoked.f, span.type), []).append(row)
    return {key: _points(np.array(rows, dtype=np.float64)) for key, rows in times.items()}


def _points(times_ns: Floats) -> _Points:
    start, end = times_ns[:, 0], times_ns[:, 1]
    return _Points(start / 1e9, end / 1e9, np.maximum((end - start) / 1e6, _SHORTEST_MS))


def _select(table: _Table, fs: Sequence[str], kind: str | None = None) -> _Points:
    """All points of these functions (and this type)."""
    chosen = [p for (f, k), p in table.items() if f in fs and kind in (None, k)]
    names = ("time_s", "end_s", "latency_ms")
    columns = [np.concatenate([getattr(p, name) for p in chosen] or [[]]) for name in names]
    return _Points(*columns)


def _by_frequency(table: _Table) -> list[str]:
    counts: Counter[str] = Counter()
    for (f, _), points in table.items():
        counts[f] += len(points.time_s)
    return [f for f, _ in counts.most_common()]


def _frequent(table: _Table) -> list[str]:
    """Functions worth a panel of their own, the most frequent first."""
    fs = _by_frequency(table)
    total = sum(len(points.time_s) for points in table.values())
    return [f for f in fs if len(_select(table, [f]).time_s) >= total / 20][:_PANELS]


def _panels(table: _Table) -> list[list[str]]:
    """What each panel shows: one frequent function, or in the last panel all the rest."""
    frequent = _frequent(table)
    rest = [f for f in _by_frequency(table) if f not in frequent]
    return [[f] for f in frequent] + ([rest] if rest else [])


def _quantiles(points: _Points, end_s: float) -> tuple[Floats, Floats]:
    """Middles of the windows, and a row of latencies for each quantile: NaN where none began."""
    window_s = end_s / _WINDOWS
    latency_ms: Floats = np.full((len(_QUANTILES), _WINDOWS), np.nan)
    window = np.minimum(points.time_s / window_s, _WINDOWS - 1).astype(np.int64)
    order = np.argsort(window, kind="stable")
    numbers, starts = np.unique(window[order], return_index=True)
    for number, group in zip(numbers, np.split(points.latency_ms[order], starts[1:]), strict=False):
        # Each quantile is the latency of a real operation, hence "lower".
        latency_ms[:, number] = np.quantile(group, _QUANTILES, method="lower")
    middle_s: Floats = (np.arange(_WINDOWS, dtype=np.float64) + 0.5) * window_s
    return middle_s, latency_ms


def _rates(end_s: Floats, last_s: float) -> tuple[Floats, Floats]:
    counts, edges = np.histogram(end_s, bins=_WINDOWS, range=(0, last_s))
    middle_s: Floats = (edges[:-1] + edges[1:]) / 2
    rate: Floats = counts * (_WINDOWS / last_s)
    return middle_s, rate


class _Sheet:
    """A figure of stacked panels that share their time axis, with faults shaded.

    Several kinds of faults overlap: they get a panel of their own on top, with a row for each kind.
    """

    def __init__(self, title: str, panels: int, history: Sequence[Op]) -> None:
        self._injected = injections(history)
        kinds = dict.fromkeys((*FAULTS, *(each.fault for each in self._injected)))
        self._kinds = [kind for kind in kinds if any(e.fault == kind for e in self._injected)]
        self.end_s = max((history[-1].time / 1e9 if history else 0.0), 1e-3)
        # Nothing happened: one empty panel, so that there is a picture that says so.
        heights = [_PANEL_INCHES] * max(panels, 1)
        if len(self._kinds) > 1:
            heights.insert(0, _ROW_INCHES * len(self._kinds))
        self.figure = Figure(
            figsize=(10, 1.3 + sum(heights)), layout=ConstrainedLayoutEngine(h_pad=0.08)
        )
        self.figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=style.INK, weight="bold")
        grid = self.figure.subplots(len(heights), sharex=True, squeeze=False, height_ratios=heights)
        rows: list[Axes] = list(grid[:, 0])
        if len(self._kinds) > 1:
            _draw_faults(rows.pop(0), self._injected, self._kinds)
        self.axes = rows
        for axes in self.axes:
            _plain(axes)
            _shade(axes, self._injected, 0.5 if len(self._kinds) == 1 else 0.2)
        self.axes[-1].set_xlim(0, self.end_s)
        self.axes[-1].set_xlabel("time since the start of the run (s)")

    def save(self, path: Path, legend: Sequence[Any]) -> None:
        shades = [
            Patch(color=style.fault_colour(kind), label=f"{kind} active") for kind in self._kinds
        ]
        entries = [*legend, *shades]
        if entries:
            self.figure.legend(
                handles=entries, loc="outside lower left", ncols=6, frameon=False, fontsize=9
            )
        self.figure.savefig(path, dpi=100)


def _draw_faults(axes: Axes, injected: Sequence[Injection], kinds: Sequence[str]) -> None:
    """A row for each kind of fault, the first on top, with a bar while it is in force."""
    _plain(axes)
    for each in injected:
        start_s, end_s = each.start_ns / 1e9, each.end_ns / 1e9
        colour = style.fault_colour(each.fault)
        axes.barh(kinds.index(each.fault), end_s - start_s, left=start_s, height=0.8, color=colour)
    axes.set_yticks(range(len(kinds)), kinds)
    axes.invert_yaxis()
    _panel_title(axes, "faults")


def _plain(axes: Axes) -> None:
    axes.grid(color=style.GRID, lw=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=style.MUTED, labelsize=9, length=3)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(style.MUTED)


def _shade(axes: Axes, injected: Sequence[Injection], alpha: float) -> None:
    for each in injected:
        colour = style.fault_colour(each.fault)
        axes.axvspan(each.start_ns / 1e9, each.end_ns / 1e9, color=colour, alpha=alpha, lw=0)


def _panel_title(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=10, color=style.INK)


def _latency_axis(axes: Axes, fs: Sequence[str]) -> None:
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    # Two decades or less would leave a power of ten or two to read from.
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel("latency (ms)")
    _panel_title(axes, ", ".join(fs))


def _dot(colour: str, label: str) -> Line2D:
    return Line2D([], [], ls="none", marker="o", ms=5, color=colour, label=label)


def _line(colour: str, label: str, line: str = "-") -> Line2D:
    return Line2D([], [], ls=line, lw=2, color=colour, label=label)
