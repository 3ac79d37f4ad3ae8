"""Groups of runs side by side: latencies, and messages for each operation."""

from collections.abc import Mapping

import numpy as np
from matplotlib.patches import Patch
from pyspark.sql import DataFrame

from analysis.metrics.causes import CAUSES, message_causes
from analysis.metrics.comparison import groups_of
from analysis.metrics.latency import latency_quantiles as quantiles_of
from analysis.metrics.network import messages_by_type
from analysis.metrics.windows import with_phase
from analysis.plots import style

STACKS = ("link", "type", "cause")
_MOST_TYPES, _REST = 7, "all others"
_SHARES = {"p50": "median", "p90": "90 %", "p99": "99 %"}


def latency_quantiles(
    operations: DataFrame, runs: DataFrame, by: str = "strategy"
) -> style.Picture:
    """Bars: the median over a group's runs of their p50, p90 and p99, for sends and for polls.

    Only successful operations of the main phase. Dots are the single runs.

    Args:
        operations, runs: the tables.
        by: the column of runs that makes the groups.
    """
    title = f"Latency by {by}"
    wanted = with_phase(operations, runs).filter(
        "outcome = 'ok' and f in ('send', 'poll') and (phase is null or phase = 'main')"
    )
    rows = quantiles_of(wanted, ["f"]).join(groups_of(runs, by), "run_id").collect()
    groups = sorted({row.group for row in rows}, key=natural)
    if not rows:
        return style.nothing(title, f"No run has a {by} and a successful send or poll.")
    figure, panels = style.picture(title, 3.6, columns=2, sharey=True)
    colours = style.colours_of([*_SHARES])
    for axes, f in zip(panels, ("send", "poll"), strict=True):
        for offset, share in zip((-0.27, 0, 0.27), _SHARES, strict=True):
            for place, group in enumerate(groups):
                values_ms = [
                    row[f"latency_ns_{share}"] / 1e6
                    for row in rows
                    if row.group == group and row.f == f
                ]
                if values_ms:
                    at = place + offset
                    axes.bar(at, np.median(values_ms), width=0.25, color=colours[share])
                    dots = {"color": style.INK, "s": 9, "zorder": 3, "alpha": 0.7}
                    axes.scatter([at] * len(values_ms), values_ms, **dots)
        axes.set_xticks(range(len(groups)), groups)
        style.name(axes, f)
        style.log_ms(axes)
    panels[1].set_ylabel("")
    style.legend(figure, [Patch(color=colours[s], label=name) for s, name in _SHARES.items()])
    return figure


def messages_per_operation(
    messages: DataFrame,
    operations: DataFrame,
    runs: DataFrame,
    by: str = "strategy",
    stack: str = "link",
) -> style.Picture:
    """Stacked bars: the mean over a group's runs of their messages for each operation.

    Args:
        messages, operations, runs: the tables.
        by: the column of runs that makes the groups, such as `strategy` or `node_count`.
        stack: what the bars are made of. `link`: the class of the link, with the clients' messages;
            `type` or `cause`: of server messages only.
    """
    if stack not in STACKS:
        raise ValueError(f"stack is one of {', '.join(STACKS)}, not {stack!r}")
    what = "Messages" if stack == "link" else "Server messages"
    title = f"{what} per operation by {by}"
    counted = _counted(messages, operations, stack).join(groups_of(runs, by), "run_id").collect()
    if not counted:
        return style.nothing(title, f"No run has a {by} and messages.")
    run_counts: dict[str, set[str]] = {}
    totals: dict[tuple[str, str], float] = {}
    for row in counted:
        run_counts.setdefault(row.group, set()).add(row.run_id)
        key = (row.group, row[stack])
        totals[key] = totals.get(key, 0.0) + (row.messages_per_operation or 0.0)
    groups = sorted(run_counts, key=natural)
    means = {key: total / len(run_counts[key[0]]) for key, total in totals.items()}
    return _stacked(title, groups, means, stack)


def _counted(messages: DataFrame, operations: DataFrame, stack: str) -> DataFrame:
    if stack == "cause":
        return message_causes(messages, operations)
    by_type = messages_by_type(messages, operations)
    return by_type if stack == "link" else by_type.filter("link <> 'client'")


def _stacked(
    title: str, groups: list[str], means: Mapping[tuple[str, str], float], stack: str
) -> style.Picture:
    weights: dict[str, float] = {}
    for (_, part), value in means.items():
        weights[part] = weights.get(part, 0.0) + value
    ordered = {"link": [*style.LINKS], "cause": [*CAUSES]}.get(stack)
    parts = [
        part for part in ordered or sorted(weights, key=lambda p: -weights[p]) if part in weights
    ]
    shown, rest = (parts, []) if ordered else (parts[:_MOST_TYPES], parts[_MOST_TYPES:])
    layers = {part: [means.get((group, part), 0.0) for group in groups] for part in shown}
    if rest:
        layers[_REST] = [sum(means.get((g, part), 0.0) for part in rest) for g in groups]
    colours = style.colours_of([*layers], style.LINKS | {_REST: style.MUTED})
    figure, (axes,) = style.picture(title, 3.8)
    bottom = np.zeros(len(groups))
    for part, values in layers.items():
        axes.bar(range(len(groups)), values, bottom=bottom, width=0.6, color=colours[part])
        bottom += values
    for place, total in enumerate(bottom):
        axes.annotate(
            f"{total:.2f}", (place, total), (0, 3), textcoords="offset points", ha="center"
        )
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylabel("messages per operation")
    axes.set_ylim(0, bottom.max() * 1.12)
    handles = [Patch(color=colours[part], label=part) for part in reversed(layers)]
    style.legend(figure, handles, loc="outside right upper", ncols=1)
    return figure


def natural(name: str) -> tuple[int, float, str]:
    """A sort key: numbers by value, before words."""
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name
