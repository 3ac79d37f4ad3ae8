"""How soon runs were back after each kind of fault."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from analysis.metrics.comparison import groups_of
from analysis.metrics.recovery import FACTOR, WINDOW_NS
from analysis.metrics.recovery import recovery_times as times_of
from analysis.plots import style
from analysis.plots.groups import natural

_WIDEST = 0.2  # of the column of a group


def recovery_times(
    operations: DataFrame, faults: DataFrame, runs: DataFrame, by: str = "strategy"
) -> style.Picture:
    """One dot for each fault: the time from its end until p99 was back near calm; bars are medians.

    Hollow triangles stand at the end of the watch where that was not seen.

    Args:
        operations, faults, runs: the tables.
        by: the column of runs that makes the groups.
    """
    title = "Time to recover after a fault"
    watched = times_of(operations, faults, runs).filter(F.col("watched_ns") >= WINDOW_NS)
    rows = watched.join(groups_of(runs, by), "run_id").collect()
    if not rows:
        return style.nothing(title, "No fault ended long enough before the next one to be watched.")
    kinds = sorted({row.kind for row in rows})
    groups = sorted({row.group for row in rows}, key=natural)
    colours = style.colours_of(groups)
    figure, (axes,) = style.picture(title, 3.6)
    width = min(0.8 / len(groups), _WIDEST)
    for number, group in enumerate(groups):
        for place, kind in enumerate(kinds):
            mine = [row for row in rows if (row.group, row.kind) == (group, kind)]
            at = place + width * (number - (len(groups) - 1) / 2)
            _column(axes, at, width, mine, colours[group])
    axes.set_xticks(range(len(kinds)), kinds)
    axes.set_ylabel(f"until p99 is within {FACTOR:g}x of calm, s")
    axes.set_ylim(bottom=0)
    dots = [Line2D([], [], color=c, marker="o", linewidth=0, label=g) for g, c in colours.items()]
    unseen = Line2D([], [], color=style.MUTED, marker="^", fillstyle="none", linewidth=0)
    unseen.set_label("not seen in this time")
    style.legend(figure, [*dots, unseen])
    return figure


def _column(axes: Axes, at: float, width: float, rows: Sequence[Row], colour: str) -> None:
    """The dots of one group and kind of fault, a little apart, and their median."""
    spread = [at + width * 0.5 * ((n % 5) / 5 - 0.4) for n in range(len(rows))]
    for x, row in zip(spread, rows, strict=True):
        seen = row.recovery_ns is not None
        seconds = (row.recovery_ns if seen else row.watched_ns) / 1e9
        marker = {"marker": "o"} if seen else {"marker": "^", "fillstyle": "none"}
        axes.plot(x, seconds, color=colour, markersize=6, alpha=0.8, clip_on=False, **marker)
    if rows:
        # What was not seen took longer than was watched: it stands at the upper end.
        ordered = sorted(
            float("inf") if r.recovery_ns is None else r.recovery_ns / 1e9 for r in rows
        )
        middle = ordered[len(ordered) // 2]
        if middle != float("inf"):
            axes.hlines(middle, at - width * 0.4, at + width * 0.4, color=colour, linewidth=2.5)
