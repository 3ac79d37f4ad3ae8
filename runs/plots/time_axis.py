"""The axis of time of a run's plots: when faults were in force, and a long pause as a narrow band."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from runs.plots import style
from runs.plots.picture import Look, Row

_SHADE, _FAINT = 0.25, 0.13  # the second below a panel that tells overlapping faults apart
_BAND = 0.04  # of the width
_INSTANT_POINTS = 1.5  # the width of a fault that took no time, such as a fence


def kinds_of(faults: Sequence[Row]) -> list[str]:
    """The kinds of these faults: those of the table in its order, others after them."""
    there = dict.fromkeys(fault["kind"] for fault in faults)
    known = [kind for kind in style.FAULTS if kind in there]
    return known + [kind for kind in there if kind not in style.FAULTS]


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
    axis.set_major_locator(_Outside(start_s, stop_s, places[-1]))
    for axes in panels:
        look: Look = {"facecolor": "none", "edgecolor": style.NEUTRAL, "hatch": "////"}
        axes.axvspan(start_s, stop_s, linewidth=0, alpha=0.5, zorder=0, **look)
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


class _Outside(MaxNLocator):
    """Ticks before and behind a time that is drawn as a band, none in it and none close behind it."""

    def __init__(self, start: float, stop: float, length: float) -> None:
        super().__init__("auto", steps=[1, 2, 5, 10])
        self._start, self._stop, self._length = start, stop, length

    def tick_values(self, vmin: float, vmax: float) -> Any:
        every = super().tick_values(0, self._length)
        step = every[1] - every[0]
        ticks = np.arange(vmin, vmax, step)
        return ticks[(ticks <= self._start) | (ticks >= self._stop + step / 2)]


def draw_faults(axes: Axes, faults: Sequence[Row], end_s: float) -> None:
    """A row for each kind of fault, with a bar while it was in force."""
    kinds = kinds_of(faults)
    for fault in faults:
        start_s, stop_s = _in_force(fault, end_s)
        colour = style.fault_colour(fault["kind"])
        look: Look = {"color": colour, "edgecolor": colour, "linewidth": _INSTANT_POINTS}
        axes.barh(kinds.index(fault["kind"]), stop_s - start_s, left=start_s, height=0.7, **look)
    axes.set_yticks(range(len(kinds)), kinds)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(kinds) - 0.5, -0.5)
    axes.grid(visible=False)
    axes.set_title("faults")
