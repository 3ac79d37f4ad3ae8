"""What messages are sent for."""

import pandas as pd
from matplotlib.figure import Figure

from analysis.metrics.causes import CAUSES
from analysis.plots import style

TITLE = "Messages between servers for each operation, by what made them necessary"
COLOURS = {
    "commit": "#0072b2",
    "hand-over": "#56b4e9",
    "refresh": "#009e73",
    "conflict": "#e69f00",
    "retry": "#cc3311",
    "other": "#b8bec5",
}


@style.styled
def messages_by_cause(causes: pd.DataFrame) -> Figure:
    """A bar for each strategy, stacked by cause: means over its runs.

    Args:
        causes: strategy, cause, messages_per_operation (`analysis.notebooks.tables.mean_causes`).
    """
    if causes.empty:
        return style.empty(TITLE, "No run recorded its messages.")
    strategies = style.strategies(causes.strategy)[::-1]
    figure, ((axes,),) = style.sheet(TITLE, height=1.1 + 0.42 * len(strategies))
    values = causes.pivot_table(index="strategy", columns="cause", values="messages_per_operation")
    values = values.reindex(strategies).fillna(0.0)
    ends = pd.Series(0.0, index=strategies)
    for cause in sorted(CAUSES, key=list(COLOURS).index):
        if cause in values and values[cause].any():
            axes.barh(strategies, values[cause], left=ends, color=COLOURS[cause], label=cause)
            ends += values[cause]
    for at, end in enumerate(ends):
        axes.annotate(f"{end:.2f}", (end, at), (4, 0), textcoords="offset points", va="center")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.08)
    axes.set_xlabel("messages per operation")
    axes.legend(ncols=6, loc="lower right", bbox_to_anchor=(1, 1), fontsize=9)
    return figure
