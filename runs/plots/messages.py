"""Messages for each operation: of one run as bars by type or link, of groups of runs as stacked bars."""

from collections.abc import Mapping, Sequence

import numpy as np

from runs.plots import style
from runs.plots.picture import (
    Look,
    Picture,
    Row,
    Table,
    legend,
    nothing,
    panels_of,
    records,
    write_above,
)

PER_OPERATION = "messages_per_operation"
STACKS = ("link", "type", "cause")
_MOST_BARS = 20
_MOST_PARTS, _REST = 7, "all others"
_BAR_INCHES = 0.3
_KNOWN = style.LINKS | style.CAUSES | {_REST: style.NEUTRAL}
_PLACES = {part: place for place, part in enumerate(_KNOWN)}


def server_messages(by_type: Sequence[Row]) -> Picture | None:
    """Server messages per operation by type, the longest bar on top, coloured by link; None of none.

    `by_type` has rows with link, type, message_count, messages_per_operation.
    """
    rows = [row for row in by_type if row["link"] != "client"]
    rows.sort(key=lambda row: int(row["message_count"]), reverse=True)
    return _bars([(str(r["type"]), r["link"], r[PER_OPERATION] or 0) for r in rows[:_MOST_BARS]])


def message_classes(by_type: Sequence[Row]) -> Picture | None:
    """Messages per operation on each class of link, the clients' too; None of none."""
    totals: dict[str, float] = {}
    for row in by_type:
        totals[row["link"]] = totals.get(row["link"], 0) + (row[PER_OPERATION] or 0)
    return _bars([(link, link, totals[link]) for link in style.LINKS if link in totals])


def _bars(bars: Sequence[tuple[str, str, float]]) -> Picture | None:
    """A bar for each name, class of link and value; None if all are 0."""
    values = [value for _, _, value in bars]
    if not any(values):
        return None
    picture, (axes,) = panels_of("", inches=_BAR_INCHES * len(bars))
    places = range(len(bars))
    drawn = axes.barh(places, values, color=[style.LINKS[link] for _, link, _ in bars])
    axes.bar_label(drawn, fmt="%.3f", padding=4)
    axes.set_yticks(places, [name for name, _, _ in bars])
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
    Raises:
        ValueError: `stack` is none of these.
    """
    if stack not in STACKS:
        raise ValueError(f"stack is one of {', '.join(STACKS)}, not {stack!r}")
    title = f"{'Messages' if stack == 'link' else 'Server messages'} per operation by {by}"
    values: dict[tuple[str, str], float] = {}
    for row in records(means):
        key = str(row[by]), str(row[stack])
        values[key] = values.get(key, 0.0) + (row[PER_OPERATION] or 0.0)
    if not values:
        return nothing(title, f"No run has a {by} and messages.")
    groups = style.strategies(group for group, _ in values)
    return _stacked(title, groups, _layers(values, groups))


def _layers(
    values: Mapping[tuple[str, str], float], groups: Sequence[str]
) -> dict[str, list[float]]:
    """The parts from the bottom up, each with its value in every group.

    They stand in the order of the table of colours, or the largest first; many small ones become one.
    """
    weights: dict[str, float] = {}
    for (_, part), value in values.items():
        weights[part] = weights.get(part, 0.0) + value
    parts = sorted(weights, key=lambda part: (_PLACES.get(part, 0), -weights[part], part))
    layers = {part: [values.get((group, part), 0.0) for group in groups] for part in parts}
    shown = {part: layers[part] for part in parts[:_MOST_PARTS]}
    if rest := [layers[part] for part in parts[_MOST_PARTS:]]:
        shown[_REST] = [sum(column) for column in zip(*rest, strict=True)]
    return shown


def _stacked(title: str, groups: Sequence[str], layers: Mapping[str, Sequence[float]]) -> Picture:
    colours = style.colours_of([*layers], _KNOWN)
    picture, (axes,) = panels_of(title, inches=3.0)
    bottom = np.zeros(len(groups))
    for part, values in layers.items():
        look: Look = {"color": colours[part], "label": part}
        axes.bar(range(len(groups)), values, bottom=bottom, width=0.6, **look)
        bottom += values
    for place, total in enumerate(bottom):
        write_above(axes, f"{total:.2f}", (place, total), 3)
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylabel("messages per operation")
    axes.set_ylim(0, bottom.max() * 1.12 or 1)
    legend(picture, beside=True)
    return picture
