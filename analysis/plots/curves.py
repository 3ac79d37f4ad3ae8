"""Latency as a whole curve."""

import pandas as pd
from matplotlib.lines import Line2D

from analysis.colours import colours, strategies
from analysis.plots import style

TITLE = "How many operations take longer than that?"
_KINDS = ("send", "poll")


def latency_curves(curves: pd.DataFrame) -> style.Picture:
    """The share of operations that took longer, over the latency: a line for each strategy.

    Args:
        curves: `analysis.metrics.curves.latency_curves` by `f`, with `strategy`.
    """
    kinds = [kind for kind in _KINDS if (curves.f == kind).any()]
    if not kinds:
        return style.nothing(TITLE, "No send and no poll was acknowledged.")
    figure, panels = style.picture(TITLE, 3.6, columns=len(kinds), sharey=True)
    names, colour_of = strategies(curves.strategy), colours(curves.strategy)
    for axes, kind in zip(panels, kinds, strict=True):
        for strategy in names:
            line = curves[(curves.f == kind) & (curves.strategy == strategy)]
            line = line.sort_values("slower_share")
            axes.plot(line.latency_ns / 1e6, line.slower_share, color=colour_of[strategy])
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        style.name(axes, kind)
        axes.set_xlabel("latency, ms")
    panels[0].set_ylabel("share that took longer")
    style.legend(figure, [Line2D([], [], color=colour_of[name], label=name) for name in names])
    return figure
