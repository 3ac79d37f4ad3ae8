"""In which order a key's offsets are filled."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from analysis.colours import ALARM
from analysis.plots import style

TITLE = "When each offset of a key was filled"
_SENT = style.COLOURS[0]


def filling(times: pd.DataFrame, strategies: Sequence[str]) -> style.Picture:
    """A panel for each strategy: messages by time and offset, those behind a reader in red.

    Args:
        times: strategy, and the columns of `analysis.metrics.offsets.with_late`, of one key of one run
            for each strategy.
        strategies: which, from left to right.
    """
    shown = [strategy for strategy in strategies if (times.strategy == strategy).any()]
    if not shown:
        return style.nothing(TITLE, "Nobody sent or polled a message.")
    figure, panels = style.picture(TITLE, 3.6, columns=len(shown))
    for axes, strategy in zip(panels, shown, strict=True):
        rows = times[times.strategy == strategy]
        _panel(axes, rows)
        style.name(axes, f"{strategy}, key {rows.key.iloc[0]}")
    panels[0].set_ylabel("offset")
    looks = {"sent": _SENT, "sent behind a reader": ALARM}
    dots = [
        Line2D([], [], color=colour, marker="o", ms=5, lw=0, label=word)
        for word, colour in looks.items()
    ]
    line = Line2D([], [], color=style.MUTED, label="somebody has read so far")
    style.legend(figure, [*dots, line])
    return figure


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    polled = rows[rows.first_polled_ns.notna()].sort_values("first_polled_ns")
    seconds = polled.first_polled_ns / 1e9
    axes.step(seconds, polled.offset.cummax(), where="post", color=style.MUTED, lw=1.2)
    sent = rows[rows.sent_ns.notna()]
    for late, colour in ((False, _SENT), (True, ALARM)):
        part = sent[sent.is_late == late]
        axes.plot(part.sent_ns / 1e9, part.offset, "o", ms=5, mew=0, color=colour)
    axes.set_xlabel("time, s")
