"""Groups of runs side by side: programs against a baseline, latency curves, recovery, how cost grows.

Messages for each operation are bars by type of one run, and stacked bars of groups of runs.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import inf
from statistics import median
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from runs.operations import Row
from runs.plots import style
from runs.plots.picture import (
    Look,
    Picture,
    Table,
    legend,
    logarithmic,
    nothing,
    panels_of,
    records,
    write_above,
)

_KINDS_MAX = 3
SHARES_OF_ALL = ("ok, of main",)  # figures that cannot be above 1
_ROW_INCHES = 0.28
_SENT = {False: (style.OUTCOMES["ok"], "sent"), True: (style.ALARM, "sent behind a reader")}


def compare(means: Table, baseline: str, by: str = "strategy") -> Picture:
    """A panel for each figure: the mean of each group with its 95 % interval, coloured by its standing.

    Grey: no difference that can be told from noise; in brackets: too few runs to tell.

    Args:
        means: figure, the column `by`, mean, mean_low, mean_high, standing (baseline, better, worse, not
            ranked, or None: no difference told), enough_runs; figures in their order.
        baseline: the group that the others are compared with.
        by: what makes the groups.
    """
    title, rows = f"Means with 95 % intervals, against {baseline}", records(means)
    if not rows:
        return nothing(title, f"No run has a {by} and figures.")
    names = list(dict.fromkeys(row["figure"] for row in rows))
    others = style.strategies({row[by] for row in rows} - {baseline})
    groups = [group for group in (baseline, *others) if any(row[by] == group for row in rows)]
    height = 0.5 + _ROW_INCHES * len(groups)
    picture, panels = panels_of(title, len(names), 2, [height] * -(-len(names) // 2), sharey=True)
    for axes, name in zip(panels, names, strict=True):
        for row in (row for row in rows if row["figure"] == name):
            place, standing = groups.index(row[by]), row["standing"] or "no difference told"
            colour = style.STANDINGS.get(standing, style.NEUTRAL)
            look: Look = {"color": colour, "clip_on": False}
            if row["mean_low"] is not None:
                axes.hlines(place, row["mean_low"], row["mean_high"], linewidth=3, **look)
            axes.plot(row["mean"], place, "o", markersize=6, label=standing, **look)
            text = f"{row['mean']:.3g}" if row["enough_runs"] else f"({row['mean']:.3g})"
            write_above(axes, text, (row["mean"], place), 6)
        axes.set_title(name)
        axes.set_yticks(range(len(groups)), groups)
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x")
        # Room beside the dots, but no axis beyond what is possible: nothing below 0, no share above 1.
        axes.margins(x=0.15)
        low, high = axes.get_xlim()
        axes.set_xlim(*((min(low, 0.9), 1.0) if name in SHARES_OF_ALL else (max(low, 0.0), high)))
    panels[0].set_ylim(len(groups) - 0.5, -0.8)  # the baseline on top, with room for its number
    legend(picture)
    return picture


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
    names = style.strategies(row[by] for row in rows)
    times = [
        (
            f"{kind}, {group}",
            group,
            [r["recovery_ns"] / 1e9 for r in mine if r["recovery_ns"] is not None],
            [r["watched_ns"] / 1e9 for r in mine if r["recovery_ns"] is None],
        )
        for kind in kinds
        for group in names
        if (mine := [row for row in rows if (row["kind"], row[by]) == (kind, group)])
    ]
    return _dots(title, times, "s until p99 is near calm again")


def latency_curves(curves: Table, by: str = "strategy") -> Picture:
    """The share of operations that took longer, over the latency: a line for each group.

    `curves` has the column `by`, f, slower_share, latency_ns.
    """
    title, rows = "How many operations take longer than that?", records(curves)
    kinds = sorted({row["f"] for row in rows}, key=lambda f: (f != "send", f))[:_KINDS_MAX]
    if not kinds:
        return nothing(title, "No operation was acknowledged.")
    picture, panels = panels_of(title, len(kinds), len(kinds), 2.8, sharey=True)
    names = style.strategies(row[by] for row in rows)
    colours = style.strategy_colours(names)
    for axes, kind in zip(panels, kinds, strict=True):
        for name in names:
            mine = sorted(
                (row for row in rows if (row["f"], row[by]) == (kind, name)),
                key=lambda row: float(row["slower_share"]),
            )
            latency_ms = [row["latency_ns"] / 1e6 for row in mine]
            shares = [100 * row["slower_share"] for row in mine]
            axes.plot(latency_ms, shares, color=colours[name], label=name, clip_on=False)
        logarithmic(axes, "x")
        logarithmic(axes, suffix=" %")
        axes.set_title(kind)
        axes.set_xlabel("latency, ms")
    panels[0].set_ylabel("share that took longer")
    legend(picture)
    return picture


def filling(times: Table, strategies: Sequence[str], by: str = "strategy") -> Picture:
    """When each offset of a key was filled: messages by time and offset, those behind a reader in red.

    Args:
        times: the column `by`, key, offset, sent_ns, first_polled_ns, is_late, of one key of one run for
            each group.
        strategies: which groups, from left to right.
        by: what makes the groups.
    """
    title, rows = "When each offset of a key was filled", records(times)
    shown = [name for name in strategies if any(row[by] == name for row in rows)]
    if not shown:
        return nothing(title, "Nobody sent or polled a message.")
    picture, panels = panels_of(title, len(shown), len(shown), 2.8)
    for axes, name in zip(panels, shown, strict=True):
        mine = [row for row in rows if row[by] == name]
        for late, (colour, label) in _SENT.items():
            part = [
                row for row in mine if row["sent_ns"] is not None and bool(row["is_late"]) == late
            ]
            axes.plot(
                [row["sent_ns"] / 1e9 for row in part],
                [row["offset"] for row in part],
                "o",
                markersize=5,
                markeredgewidth=0,
                color=colour,
                label=label,
            )
        polled = sorted(
            (row for row in mine if row["first_polled_ns"] is not None),
            key=lambda row: float(row["first_polled_ns"]),
        )
        axes.step(
            [row["first_polled_ns"] / 1e9 for row in polled],
            list(accumulate((row["offset"] for row in polled), max)),
            where="post",
            linewidth=1.2,
            color=style.NEUTRAL,
            label="highest offset that a client has read",
        )
        axes.set_xlabel("time, s")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.set_title(f"{name}, key {mine[0]['key']}")
    panels[0].set_ylabel("offset")
    legend(picture)
    return picture


def dots(rows: Sequence[tuple[str, str, Sequence[float]]], unit: str) -> Picture | None:
    """A row for each case: a dot for each repetition, and a bar at the median; None without values.

    Args:
        rows: name, strategy (which has a colour of its own), values.
        unit: what the values are.
    The axis is logarithmic where the values span more than a decade.
    """
    found = [(*row, ()) for row in rows]
    return _dots("", found, unit) if any(values for _, _, values in rows) else None


def _dots(
    title: str, rows: Sequence[tuple[str, str, Sequence[float], Sequence[float]]], unit: str
) -> Picture:
    """Draw `dots`. The last values of a row are bounds below what was not seen: hollow, above all others."""
    every = [value for *_, values, bounds in rows for value in (*values, *bounds)]
    colours = style.strategy_colours(strategy for _, strategy, *_ in rows)
    picture, (axes,) = panels_of(title, inches=_ROW_INCHES * len(rows) + 0.2)
    for at, (_, strategy, values, bounds) in enumerate(rows):
        look: Look = {"color": colours[strategy]}
        axes.plot(values, [at] * len(values), "o", markersize=5, alpha=0.7, **look)
        if bounds:
            axes.plot(
                bounds,
                [at] * len(bounds),
                "^",
                markersize=6,
                fillstyle="none",
                label="not seen in this time",
                **look,
            )
        ranked = [*sorted(values), *(inf for _ in bounds)]
        middle = median(ranked) if ranked else inf
        if middle != inf:
            axes.plot([middle], [at], "|", markersize=16, markeredgewidth=2, **look)
    axes.set_yticks(range(len(rows)), [name for name, *_ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="both")
    axes.set_xlabel(unit)
    if max(every) > 10 * min(every) > 0:
        logarithmic(axes, "x")
    else:
        axes.set_xlim(0, 1.05 * max(every) or 1)
    legend(picture)
    return picture


Line = Sequence[tuple[float, tuple[float, float, float]]]  # x: the middle, lowest and highest value


def growth(
    title: str, panels: Mapping[str, Mapping[str, Line]], label: str, ticks: Sequence[float] | None
) -> Picture:
    """How things grow with one other, one below the other: a band shows lowest to highest.

    Args:
        title: above all of it.
        panels: title to lines, by name.
        label: of the axis that all panels share; it is logarithmic.
        ticks: on that axis; None: where they fall.
    """
    picture, all_axes = panels_of(title, len(panels), sharex=True)
    for axes, (name, lines) in zip(all_axes, panels.items(), strict=True):
        colours = style.colours_of([*lines], style.QUANTILES)
        for label_, points in ((each, points) for each, points in lines.items() if points):
            xs, values = zip(*points, strict=True)
            middle, low, high = zip(*values, strict=True)
            colour = colours[label_]
            axes.plot(xs, middle, marker="o", markersize=4, color=colour, label=label_)
            axes.fill_between(xs, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set_title(name)
        logarithmic(axes, "x")
        if ticks is not None:
            axes.set_xticks(ticks, [f"{x:,.0f}".replace(",", " ") for x in ticks])
            axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, axis="both")
        if len(axes.get_legend_handles_labels()[1]) > 1:
            axes.legend()
    all_axes[-1].set_xlabel(label)
    return picture


# ---------------------------------------------------------------- messages

PER_OPERATION = "messages_per_operation"
_MOST_BARS = 20
_MOST_PARTS, _REST = 7, "all others"
_BAR_INCHES = 0.3
_KNOWN = style.LINKS | style.CAUSES | {_REST: style.NEUTRAL}
_PLACES = {part: place for place, part in enumerate(_KNOWN)}


def server_messages(by_type: Sequence[Row]) -> Picture | None:
    """Server messages per operation by type, the longest bar on top, coloured by link; None of none.

    `by_type` has rows with link, type, message_count, messages_per_operation.
    """
    rows = sorted(
        (row for row in by_type if row["link"] != "client"),
        key=lambda row: -int(row["message_count"]),
    )[:_MOST_BARS]
    values = [row[PER_OPERATION] or 0 for row in rows]
    if not any(values):
        return None
    picture, (axes,) = panels_of("", inches=_BAR_INCHES * len(rows))
    places = range(len(rows))
    drawn = axes.barh(places, values, color=[style.LINKS[row["link"]] for row in rows])
    axes.bar_label(drawn, fmt="%.3f", padding=4)
    axes.set_yticks(places, [str(row["type"]) for row in rows])
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)
    axes.margins(x=0.15)
    axes.set_xlabel("messages per operation")
    return picture


def messages_per_operation(means: Table, stack: str, by: str = "strategy") -> Picture:
    """Stacked bars: a bar for each group of runs.

    Args:
        means: the columns `by` and `stack`, and messages_per_operation, the mean over the group's runs.
        stack: what the bars are made of: `link`, `type` or `cause`.
        by: what the groups are called.
    Parts stand in the order of the table of colours, or the largest first; many small ones become one.
    """
    title = f"{'Messages' if stack == 'link' else 'Server messages'} per operation by {by}"
    values: defaultdict[tuple[str, str], float] = defaultdict(float)
    weights: defaultdict[str, float] = defaultdict(float)
    for row in records(means):
        value = row[PER_OPERATION] or 0.0
        values[str(row[by]), str(row[stack])] += value
        weights[str(row[stack])] += value
    if not values:
        return nothing(title, f"No run has a {by} and messages.")
    groups = style.strategies(group for group, _ in values)
    parts = sorted(weights, key=lambda part: (_PLACES.get(part, 0), -weights[part], part))
    layers = {part: np.array([values[group, part] for group in groups]) for part in parts}
    shown = {part: layers[part] for part in parts[:_MOST_PARTS]}
    if rest := parts[_MOST_PARTS:]:
        shown[_REST] = np.sum([layers[part] for part in rest], axis=0)
    return _stacked(title, groups, shown)


def _stacked(title: str, groups: Sequence[str], layers: Mapping[str, Any]) -> Picture:
    colours = style.colours_of([*layers], _KNOWN)
    picture, (axes,) = panels_of(title, inches=3.0)
    bottom = np.zeros(len(groups))
    for part, values in layers.items():
        axes.bar(
            range(len(groups)), values, bottom=bottom, width=0.6, color=colours[part], label=part
        )
        bottom += values
    for place, total in enumerate(bottom):
        write_above(axes, f"{total:.2f}", (place, total), 3)
    two_lines = [name.replace(style.INVALID, f"\n{style.INVALID.strip()}") for name in groups]
    axes.set_xticks(range(len(groups)), two_lines)
    axes.set_ylabel("messages per operation")
    axes.set_ylim(0, bottom.max() * 1.12 or 1)
    legend(picture, beside=True)
    return picture
