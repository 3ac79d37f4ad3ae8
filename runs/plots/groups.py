"""Groups of runs side by side: strategies against a baseline, latency curves, recovery, how cost grows."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from runs.plots import style
from runs.plots.picture import (
    Layout,
    Look,
    Picture,
    Row,
    Table,
    dot_key,
    drawn,
    legend,
    line_key,
    logarithmic,
    nothing,
    panels_of,
    records,
    write_above,
)

_KINDS = ("send", "poll")
SHARES_OF_ALL = ("availability",)  # figures that cannot be above 1
_WIDEST = 0.2  # of the column of a group
_ROW_INCHES = 0.28


@drawn
def compare(means: Table, baseline: str, by: str = "strategy") -> Picture:
    """A panel for each figure: the mean of each group with its 95 % interval, coloured by its standing.

    Grey: no difference that can be told from noise; in brackets: too few runs to tell.

    Args:
        means: figure, the column `by`, mean, mean_low, mean_high, standing (baseline, better, worse or
            None: no difference told), enough_runs; figures in their order.
        baseline: the group that the others are compared with.
        by: what makes the groups.
    """
    title, rows = f"Means with 95 % intervals, against {baseline}", records(means)
    if not rows:
        return nothing(title, f"No run has a {by} and figures.")
    names = list(dict.fromkeys(row["figure"] for row in rows))
    others = style.strategies({row[by] for row in rows} - {baseline})
    groups = [group for group in (baseline, *others) if any(row[by] == group for row in rows)]
    layout = Layout(columns=2, panel_inches=0.5 + _ROW_INCHES * len(groups), sharey=True)
    picture, panels = panels_of(title, len(names), layout)
    for axes, name in zip(panels, names, strict=True):
        for row in rows:
            if row["figure"] == name:
                _mean(axes, groups.index(row[by]), row)
        axes.set_title(name)
        axes.set_yticks(range(len(groups)), groups)
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x")
        _within_bounds(axes, name)
    panels[0].set_ylim(len(groups) - 0.5, -0.8)  # the baseline on top, with room for its number
    looks = style.STANDINGS | {"no difference told": style.NEUTRAL}
    legend(
        picture,
        [line_key(word, color=colour, marker="o", linewidth=3) for word, colour in looks.items()],
    )
    return picture


def _within_bounds(axes: Axes, figure: str) -> None:
    """Room beside the dots, but no axis beyond what is possible: nothing below 0, no share above 1."""
    axes.margins(x=0.12)
    low, high = axes.get_xlim()
    axes.set_xlim(max(low, 0.0), high)
    if figure in SHARES_OF_ALL:
        axes.set_xlim(min(low, 0.9), 1.0)


def _mean(axes: Axes, place: int, row: Row) -> None:
    colour = style.STANDINGS.get(row["standing"] or "", style.NEUTRAL)
    if row["mean_low"] is not None:
        ends = row["mean_low"], row["mean_high"]
        axes.hlines(place, *ends, color=colour, linewidth=3, clip_on=False)
    axes.plot(row["mean"], place, marker="o", color=colour, markersize=6, clip_on=False)
    text = f"{row['mean']:.3g}" if row["enough_runs"] else f"({row['mean']:.3g})"
    write_above(axes, text, (row["mean"], place), 6)


@drawn
def recovery_times(recoveries: Table, by: str = "strategy") -> Picture:
    """One dot for each fault: the time from its end until p99 was back near calm; bars are medians.

    Hollow triangles stand at the end of the watch where that was not seen.

    Args:
        recoveries: the column `by`, kind, watched_ns, recovery_ns (None: not seen while it was watched).
        by: what makes the groups.
    """
    title, rows = "Time to recover after a fault", records(recoveries)
    if not rows:
        return nothing(title, "No fault ended long enough before the next one to be watched.")
    kinds = sorted({row["kind"] for row in rows})
    groups = style.strategies(row[by] for row in rows)
    colours = style.strategy_colours(groups)
    picture, (axes,) = panels_of(title, 1, Layout(panel_inches=2.8))
    width = min(0.8 / len(groups), _WIDEST)
    for number, group in enumerate(groups):
        for place, kind in enumerate(kinds):
            mine = [row for row in rows if (row[by], row["kind"]) == (group, kind)]
            at = place + width * (number - (len(groups) - 1) / 2)
            _recoveries(axes, at, width, mine, colours[group])
    axes.set_xticks(range(len(kinds)), kinds)
    axes.set_ylabel("until p99 is near calm again, s")
    axes.set_ylim(bottom=0)
    unseen = {"color": style.NEUTRAL, "marker": "^", "fillstyle": "none", "linewidth": 0}
    dots = [dot_key(colours[group], group) for group in groups]
    legend(picture, [*dots, line_key("not seen in this time", **unseen)])
    return picture


def _recoveries(axes: Axes, at: float, width: float, rows: Sequence[Row], colour: str) -> None:
    """The dots of one group and kind of fault, a little apart, and their median."""
    for number, row in enumerate(rows):
        seen = row["recovery_ns"] is not None
        seconds = (row["recovery_ns"] if seen else row["watched_ns"]) / 1e9
        shape: Look = {"marker": "o"} if seen else {"marker": "^", "fillstyle": "none"}
        x = at + width * 0.5 * ((number % 5) / 5 - 0.4)
        axes.plot(x, seconds, color=colour, markersize=6, alpha=0.8, clip_on=False, **shape)
    # What was not seen took longer than was watched: it stands at the upper end.
    never = float("inf")
    ranked = sorted(never if r["recovery_ns"] is None else r["recovery_ns"] / 1e9 for r in rows)
    if ranked and ranked[len(ranked) // 2] != never:
        ends = at - width * 0.4, at + width * 0.4
        middle = ranked[len(ranked) // 2]
        axes.hlines(middle, *ends, color=colour, linewidth=2.5, clip_on=False)


@drawn
def latency_curves(curves: Table) -> Picture:
    """The share of operations that took longer, over the latency: a line for each strategy.

    `curves` has strategy, f, slower_share, latency_ns.
    """
    title, rows = "How many operations take longer than that?", records(curves)
    kinds = [kind for kind in _KINDS if any(row["f"] == kind for row in rows)]
    if not kinds:
        return nothing(title, "No send and no poll was acknowledged.")
    layout = Layout(columns=len(kinds), panel_inches=2.8, sharey=True)
    picture, panels = panels_of(title, len(kinds), layout)
    names = style.strategies(row["strategy"] for row in rows)
    colours = style.strategy_colours(names)
    for axes, kind in zip(panels, kinds, strict=True):
        for name in names:
            mine = [row for row in rows if (row["f"], row["strategy"]) == (kind, name)]
            mine.sort(key=lambda row: float(row["slower_share"]))
            latency_ms = [row["latency_ns"] / 1e6 for row in mine]
            shares = [100 * row["slower_share"] for row in mine]
            axes.plot(latency_ms, shares, color=colours[name], clip_on=False)
        logarithmic(axes, "x")
        logarithmic(axes, suffix=" %")
        axes.set_title(kind)
        axes.set_xlabel("latency, ms")
    panels[0].set_ylabel("share that took longer")
    legend(picture, [line_key(name, color=colours[name]) for name in names])
    return picture


@drawn
def filling(times: Table, strategies: Sequence[str]) -> Picture:
    """When each offset of a key was filled: messages by time and offset, those behind a reader in red.

    Args:
        times: strategy, key, offset, sent_ns, first_polled_ns, is_late, of one key of one run for each
            strategy.
        strategies: which, from left to right.
    """
    title, rows = "When each offset of a key was filled", records(times)
    shown = [name for name in strategies if any(row["strategy"] == name for row in rows)]
    if not shown:
        return nothing(title, "Nobody sent or polled a message.")
    picture, panels = panels_of(title, len(shown), Layout(columns=len(shown), panel_inches=2.8))
    for axes, name in zip(panels, shown, strict=True):
        mine = [row for row in rows if row["strategy"] == name]
        _offsets(axes, mine)
        axes.set_title(f"{name}, key {mine[0]['key']}")
    panels[0].set_ylabel("offset")
    dots = [dot_key(*look) for look in _SENT.values()]
    legend(picture, [*dots, line_key("highest offset that a client has read", color=style.NEUTRAL)])
    return picture


_SENT = {False: (style.OUTCOMES["ok"], "sent"), True: (style.ALARM, "sent behind a reader")}


def _offsets(axes: Axes, rows: Sequence[Row]) -> None:
    polled = [row for row in rows if row["first_polled_ns"] is not None]
    polled.sort(key=lambda row: float(row["first_polled_ns"]))
    highest = [max(row["offset"] for row in polled[: at + 1]) for at in range(len(polled))]
    times_s = [row["first_polled_ns"] / 1e9 for row in polled]
    axes.step(times_s, highest, where="post", color=style.NEUTRAL, linewidth=1.2)
    for late, (colour, _) in _SENT.items():
        part = [row for row in rows if row["sent_ns"] is not None and bool(row["is_late"]) == late]
        sent_s = [row["sent_ns"] / 1e9 for row in part]
        look: Look = {"markersize": 5, "markeredgewidth": 0, "color": colour}
        axes.plot(sent_s, [row["offset"] for row in part], "o", **look)
    axes.set_xlabel("time, s")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def dots(rows: Sequence[tuple[str, str, Sequence[float]]], unit: str) -> Picture | None:
    """A row for each case: a dot for each repetition, and a bar at the median; None without values.

    Args:
        rows: name, strategy (which has a colour of its own), values.
        unit: what the values are.
    The axis is logarithmic where the values span more than a decade.
    """
    return _dots(rows, unit) if any(values for _, _, values in rows) else None


@drawn
def _dots(rows: Sequence[tuple[str, str, Sequence[float]]], unit: str) -> Picture:
    every = [value for _, _, values in rows for value in values]
    colours = style.strategy_colours(strategy for _, strategy, _ in rows)
    picture, (axes,) = panels_of("", 1, Layout(panel_inches=_ROW_INCHES * len(rows) + 0.2))
    for at, (_, strategy, values) in enumerate(rows):
        look: Look = {"color": colours[strategy]}
        axes.plot(values, [at] * len(values), "o", markersize=5, alpha=0.7, **look)
        if values:
            axes.plot([median(values)], [at], "|", markersize=16, markeredgewidth=2, **look)
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="both")
    axes.set_xlabel(unit)
    if max(every) > 10 * min(every) > 0:
        logarithmic(axes, "x")
    else:
        axes.set_xlim(0, 1.05 * max(every) or 1)
    return picture


class Line(NamedTuple):
    """A line of a panel: its name, and x with the middle, the lowest and the highest value there."""

    name: str
    points: Sequence[tuple[float, tuple[float, float, float]]]


@drawn
def growth(
    title: str, panels: Mapping[str, Sequence[Line]], label: str, ticks: Sequence[float] | None
) -> Picture:
    """How things grow with one other, side by side: a band shows lowest to highest.

    Args:
        title: above all of it.
        panels: title to lines.
        label: of the axis that all panels share; it is logarithmic.
        ticks: on that axis; None: where they fall.
    """
    layout = Layout(columns=len(panels), panel_inches=2.6, width_inches=11)
    picture, all_axes = panels_of(title, len(panels), layout)
    for axes, (name, lines) in zip(all_axes, panels.items(), strict=True):
        colours = style.colours_of([line.name for line in lines], style.QUANTILES)
        for line in lines:
            _band(axes, line, colours[line.name])
        axes.set_title(name)
        axes.set_xlabel(label)
        logarithmic(axes, "x")
        if ticks is not None:
            axes.set_xticks(ticks, [f"{x:,.0f}".replace(",", " ") for x in ticks])
            axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, axis="both")
        if len(axes.get_legend_handles_labels()[1]) > 1:
            axes.legend()
    return picture


def _band(axes: Axes, line: Line, colour: str) -> None:
    if line.points:
        xs = [x for x, _ in line.points]
        middle, low, high = zip(*(values for _, values in line.points), strict=True)
        axes.plot(xs, middle, marker="o", markersize=4, color=colour, label=line.name)
        axes.fill_between(xs, low, high, color=colour, alpha=0.15, linewidth=0)
