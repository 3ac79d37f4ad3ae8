"""In which order a key's offsets are filled."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.plots import style

TITLE = "One key: when each offset was filled, and how far readers had read by then"


@style.styled
def filling(times: pd.DataFrame, strategies: Sequence[str]) -> Figure:
    """A panel for each strategy: messages by time and offset, those behind a reader in red.

    Args:
        times: strategy, and the columns of `analysis.metrics.offsets.with_late`, of one key of one run
            for each strategy.
        strategies: which, from left to right.
    """
    shown = [strategy for strategy in strategies if (times.strategy == strategy).any()]
    if not shown:
        return style.empty(TITLE, "Nobody sent or polled a message.")
    figure, (panels,) = style.sheet(TITLE, columns=len(shown), height=3.6)
    for axes, strategy in zip(panels, shown, strict=True):
        rows = times[times.strategy == strategy]
        _panel(axes, rows)
        axes.set_title(f"{strategy}, key {rows.key.iloc[0]}")
    panels[0].set_ylabel("offset")
    panels[0].legend(loc="upper left", fontsize=9)
    return figure


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    polled = rows[rows.first_polled_ns.notna()].sort_values("first_polled_ns")
    read = polled.offset.cummax()
    axes.step(
        polled.first_polled_ns / 1e9,
        read,
        where="post",
        color=style.MUTED,
        lw=1.2,
        label="read up to",
    )
    sent = rows[rows.acknowledged_ns.notna()]
    for late, colour, label in (
        (False, "#0072b2", "sent"),
        (True, style.ALARM, "sent behind a reader"),
    ):
        part = sent[sent.is_late == late]
        axes.plot(part.sent_ns / 1e9, part.offset, "o", ms=5, mew=0, color=colour, label=label)
    axes.set_xlabel("time, s")
