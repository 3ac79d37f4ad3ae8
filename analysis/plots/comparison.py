"""Whether strategies differ."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.metrics.comparison import LESS, MORE
from analysis.plots import style

TITLE = "Compared with {}: difference of the means, and its 95 % interval"


@style.styled
def differences(compared: pd.DataFrame, better: dict[str, str]) -> Figure:
    """A panel for each figure, in it an interval for each strategy: what lies on 0 is no difference.

    Args:
        compared: rows of `analysis.metrics.comparison.comparison`.
        better: of each figure whether `less` or `more` of it is better, as
            `analysis.metrics.runs.BETTER` has it.
    """
    figures = [figure for figure in better if (compared.figure == figure).any()]
    if not figures:
        return style.empty(TITLE.format("a baseline"), "There are no two strategies to compare.")
    others = style.strategies(compared.other)[::-1]
    rows = -(-len(figures) // 2)
    title = TITLE.format(compared.baseline.iloc[0])
    figure, panels = style.sheet(
        title, rows, 2, height=0.5 + rows * (0.65 + 0.25 * len(others)), sharey=True
    )
    spare = [axes for row in panels for axes in row]
    for name in figures:
        axes = spare.pop(0)
        rows_of = compared[compared.figure == name].set_index("other")
        for at, other in enumerate(others):
            if other in rows_of.index:
                _interval(axes, at, rows_of.loc[other], good=better[name])
        axes.axvline(0, color=style.INK, lw=0.8)
        axes.set_yticks(range(len(others)), others)
        axes.set_ylim(-0.6, len(others) - 0.4)
        axes.margins(x=0.1)
        axes.set_title(f"{name} ({better[name]} is better)", fontsize=9)
    for axes in spare:
        axes.set_axis_off()
    return figure


def _interval(axes: Axes, at: int, row: pd.Series, good: str) -> None:
    is_told = row.verdict in (LESS, MORE)
    colour = (style.GOOD if row.verdict == good else style.ALARM) if is_told else style.MUTED
    axes.plot([row.difference_low, row.difference_high], [at, at], color=colour, lw=2.5)
    axes.plot([row.difference], [at], "o", ms=5, color=colour)
