"""One look for all of them."""

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from analysis.colours import ALARM, colours, strategies

__all__ = ["ALARM", "colours", "strategies"]  # part of the look, like what is below

INK, MUTED, GRID = "#1f2933", "#66727f", "#e4e8ec"
GOOD = "#009e73"
SETTINGS = {
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "legend.frameon": False,
    "figure.facecolor": "white",
}
DPI = 130
styled = mpl.rc_context(SETTINGS)  # decorates the functions that draw


def rows(frame: pd.DataFrame, **wanted: str) -> pd.DataFrame:
    """The rows that have these values in these columns."""
    for column, value in wanted.items():
        frame = frame[frame[column] == value]
    return frame


def sheet(
    title: str,
    lines: int = 1,
    columns: int = 1,
    *,
    width: float = 9.0,
    height: float = 3.2,
    **how: object,
) -> tuple[Figure, list[list[Axes]]]:
    """A figure with a title and its axes, lines of columns; sizes in inches.

    It belongs to no window and to no pyplot: a notebook shows the one that a cell returns.
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, weight="bold")
    axes = figure.subplots(lines, columns, squeeze=False, **how)
    for each in axes.flat:
        each.tick_params(length=3)
    return figure, [list(line) for line in axes]


def plain_numbers(axis: Axis) -> None:
    """0.1, 1, 10 on a logarithmic axis."""
    axis.set_major_formatter(lambda value, _: f"{value:g}")


def empty(title: str, why: str) -> Figure:
    """A picture that says why there is none."""
    figure, ((axes,),) = sheet(title, height=1.2)
    axes.set_axis_off()
    axes.text(0, 0.5, why, color=MUTED)
    return figure
