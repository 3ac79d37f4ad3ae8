"""What faults do to latency and to success, and for how long."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.pages.plots import FAULTS, OTHER_FAULT
from analysis.plots import style

TITLE = "Sends and polls under faults"
_SHORTEST_MS = 0.1


@style.styled
def under_faults(operations: pd.DataFrame, faults: pd.DataFrame) -> Figure:
    """A row for each strategy, a column for each weather: operations as dots where they were invoked.

    Args:
        operations: strategy, weather, invoked_ns, latency_ns, outcome of one run for each pair.
        faults: strategy, weather, kind, started_ns, ended_ns of the same runs.
    """
    if operations.empty:
        return style.empty(TITLE, "No run in this lake has faults.")
    rows, columns = style.strategies(operations.strategy), sorted(set(operations.weather))
    figure, panels = style.sheet(
        TITLE, len(rows), len(columns), height=0.9 + 1.5 * len(rows), sharex="col", sharey=True
    )
    for strategy, line in zip(rows, panels, strict=True):
        for weather, axes in zip(columns, line, strict=True):
            part = style.rows(operations, strategy=strategy, weather=weather)
            end_s = part.invoked_ns.max() / 1e9 if len(part) else 0
            _shade(axes, style.rows(faults, strategy=strategy, weather=weather), end_s)
            _dots(axes, part)
            axes.set_title(f"{strategy}, {weather}")
        line[0].set_ylabel("latency, ms")
    for axes in panels[-1]:
        axes.set_xlabel("time of invocation, s")
    handles = {
        label: handle
        for line in panels
        for axes in line
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="upper right", ncols=6, fontsize=9)
    return figure


def _dots(axes: Axes, operations: pd.DataFrame) -> None:
    is_ok = operations.outcome == "ok"
    for chosen, colour, label, size in (
        (is_ok, style.colours([])["leaderless"], "acknowledged", 2.2),
        (~is_ok, style.ALARM, "not acknowledged", 3.5),
    ):
        part = operations[chosen & operations.latency_ns.notna()]
        latency_ms = (part.latency_ns / 1e6).clip(lower=_SHORTEST_MS)
        axes.plot(
            part.invoked_ns / 1e9,
            latency_ms,
            "o",
            ms=size,
            mew=0,
            alpha=0.6,
            color=colour,
            label=label,
        )
    axes.set_yscale("log")
    style.plain_numbers(axes.yaxis)


def _shade(axes: Axes, faults: pd.DataFrame, end_s: float) -> None:
    for fault in faults.itertuples():
        until_s = end_s if pd.isna(fault.ended_ns) else fault.ended_ns / 1e9
        colour = FAULTS.get(fault.kind, OTHER_FAULT)
        axes.axvspan(
            fault.started_ns / 1e9, until_s, color=colour, alpha=0.25, lw=0, label=str(fault.kind)
        )


@style.styled
def recovery(recovered: pd.DataFrame) -> Figure:
    """A dot for each fault: how long after its end latencies were back near calm.

    Args:
        recovered: strategy, kind and `analysis.metrics.recovery.recovery_times`. Where the run did not
            get there, the dot is hollow and stands at the time for which it was watched.
    """
    title = "From the end of a fault to latencies that are back near calm"
    watched = recovered[recovered.watched_ns > 0]
    if watched.empty:
        return style.empty(title, "No fault ended before its run did.")
    cases = [
        (strategy, kind)
        for strategy in style.strategies(watched.strategy)
        for kind in sorted(set(watched.kind))
    ][::-1]
    figure, ((axes,),) = style.sheet(title, height=1.1 + 0.32 * len(cases))
    for at, (strategy, kind) in enumerate(cases):
        rows = style.rows(watched, strategy=strategy, kind=kind)
        done, open_ = rows[rows.recovery_ns.notna()], rows[rows.recovery_ns.isna()]
        colour = style.colours(watched.strategy)[strategy]
        look = {"ls": "", "marker": "o", "ms": 7, "alpha": 0.6, "color": colour}
        axes.plot(done.recovery_ns.astype(float) / 1e9, [at] * len(done), **look)
        axes.plot(open_.watched_ns / 1e9, [at] * len(open_), **look, mfc="none")
    axes.set_yticks(range(len(cases)), [f"{strategy}, {kind}" for strategy, kind in cases])
    axes.set_ylim(-0.6, len(cases) - 0.4)
    axes.set_xlim(left=-0.05)
    axes.set_xlabel("seconds (hollow: the run or the next fault ended the watch before)")
    return figure
