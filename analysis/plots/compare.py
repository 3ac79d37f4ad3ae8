"""Groups of runs compared with a baseline: means, their intervals, and what may be said of them."""

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from pyspark.sql import DataFrame, Row

from analysis.metrics.comparison import LESS, MORE, TOO_FEW, comparison, means
from analysis.metrics.runs import BETTER
from analysis.plots import style
from analysis.plots.groups import natural

_COLUMNS = 2
_MUTED, _GOOD, _BAD = style.MUTED, "#0072b2", "#d55e00"


def compare(
    figures: DataFrame, runs: DataFrame, baseline: str, by: str = "strategy"
) -> style.Picture:
    """A panel for each figure: the mean of each group with its 95 % interval.

    Blue: better than the baseline; orange: worse; grey: no difference told from noise, or too few runs to
    tell (in brackets).

    Args:
        figures: as `run_figures` gives them.
        runs: the table.
        baseline: the group that the others are compared with.
        by: the column of runs that makes the groups.
    """
    title = f"Means with 95 % intervals, against {baseline}"
    found = means(figures, runs, by).collect()
    if not found:
        return style.nothing(title, f"No run has a {by} and figures.")
    verdicts = {
        (row.figure, row.other): row.verdict
        for row in comparison(figures, runs, by, baseline).collect()
    }
    names = [name for name in BETTER if any(row.figure == name for row in found)]
    names += sorted({row.figure for row in found} - set(names))
    groups = sorted({row[by] for row in found}, key=lambda name: (name != baseline, natural(name)))
    rows = -(-len(names) // _COLUMNS)
    height_inches = 0.6 + rows * (0.55 + 0.28 * len(groups))
    figure, panels = style.picture(title, height_inches, rows=rows, columns=_COLUMNS, sharey=True)
    for axes, name in zip(panels, names, strict=False):
        of_group = {row[by]: row for row in found if row.figure == name}
        for place, group in enumerate(groups):
            if group in of_group:
                _bar(axes, place, of_group[group], verdicts.get((name, group)), name)
        style.name(axes, name)
        axes.set_yticks(range(len(groups)), groups)
        axes.grid(visible=False)
        axes.grid(visible=True, axis="x")
        axes.margins(x=0.12)
    panels[0].set_ylim(len(groups) - 0.5, -0.8)  # the baseline on top, with room for its number
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    looks = {"baseline": style.INK, "better": _GOOD, "worse": _BAD, "no difference told": _MUTED}
    dots = [
        Line2D([], [], color=colour, marker="o", linewidth=3, label=word)
        for word, colour in looks.items()
    ]
    style.legend(figure, dots)
    return figure


def _bar(axes: Axes, place: int, row: Row, verdict: str | None, name: str) -> None:
    if row.mean_low is not None:
        axes.hlines(place, row.mean_low, row.mean_high, color=_colour(verdict, name), linewidth=3)
    axes.plot(row.mean, place, marker="o", color=_colour(verdict, name), markersize=6)
    text = f"{row.mean:.3g}" if verdict != TOO_FEW else f"({row.mean:.3g})"
    axes.annotate(
        text, (row.mean, place), (0, 6), textcoords="offset points", ha="center", fontsize=8
    )


def _colour(verdict: str | None, name: str) -> str:
    if verdict not in (LESS, MORE) or name not in BETTER:
        return style.INK if verdict is None else _MUTED
    return _GOOD if (verdict == LESS) == (BETTER[name] == "less") else _BAD
