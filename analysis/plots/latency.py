"""How long operations take."""

import pandas as pd
from matplotlib.figure import Figure

from analysis.plots import style

TITLE = "How many operations take longer than that?"
_KINDS = ("send", "poll")


@style.styled
def latency_curves(curves: pd.DataFrame) -> Figure:
    """The share of operations that took longer, over the latency: a line for each strategy.

    Args:
        curves: `analysis.metrics.curves.latency_curves` by `f`, with `strategy`.
    """
    kinds = [kind for kind in _KINDS if (curves.f == kind).any()]
    if not kinds:
        return style.empty(TITLE, "No send and no poll was acknowledged.")
    figure, (panels,) = style.sheet(TITLE, columns=len(kinds), height=3.4, sharey=True)
    colours = style.colours(curves.strategy)
    for axes, kind in zip(panels, kinds, strict=True):
        for strategy in style.strategies(curves.strategy):
            line = curves[(curves.f == kind) & (curves.strategy == strategy)]
            line = line.sort_values("slower_share")
            axes.plot(
                line.latency_ns / 1e6, line.slower_share, color=colours[strategy], label=strategy
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        style.plain_numbers(axes.xaxis)
        axes.yaxis.set_major_formatter(
            lambda share, _: f"{share:.3%}".rstrip("0%").rstrip(".") + " %"
        )
        axes.set_title(kind)
        axes.set_xlabel("latency, ms")
    panels[0].set_ylabel("share that took longer")
    panels[-1].legend(loc="lower left", fontsize=9)
    return figure
