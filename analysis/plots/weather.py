"""What faults do to each operation."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from analysis.colours import ALARM, strategies
from analysis.plots import style

TITLE = "Sends and polls under faults"
_SHORTEST_MS = 0.1
_OK = style.COLOURS[0]


def under_faults(operations: pd.DataFrame, faults: pd.DataFrame) -> style.Picture:
    """A row for each strategy, a column for each weather: operations as dots where they were invoked.

    Args:
        operations: strategy, weather, invoked_ns, latency_ns, outcome, of one run for each pair.
        faults: strategy, weather, kind, started_ns, ended_ns of the same runs.
    """
    if operations.empty:
        return style.nothing(TITLE, "No run in this lake has faults.")
    rows, columns = strategies(operations.strategy), sorted(set(operations.weather))
    figure, panels = style.picture(
        TITLE, 0.9 + 1.5 * len(rows), len(rows), len(columns), sharex=True, sharey=True
    )
    end_s = operations.invoked_ns.max() / 1e9
    cells = [(strategy, weather) for strategy in rows for weather in columns]
    patches = {}
    for (strategy, weather), axes in zip(cells, panels, strict=True):
        _dots(axes, _of(operations, strategy, weather))
        met = _of(faults, strategy, weather).astype(object)
        shades = style.shade(axes, met.where(met.notna(), None).to_dict("records"), end_s)
        patches |= {str(patch.get_label()): patch for patch in shades}
        style.log_ms(axes, "latency, ms" if weather == columns[0] else "")
        style.name(axes, f"{strategy}, {weather}")
    panels[0].set_xlim(0, end_s)
    for axes in panels[-len(columns) :]:
        axes.set_xlabel("time of invocation, s")
    words = {"acknowledged": _OK, "not acknowledged": ALARM}
    dots = [
        Line2D([], [], color=colour, marker="o", ms=4, lw=0, label=word)
        for word, colour in words.items()
    ]
    style.legend(figure, [*dots, *patches.values()])
    return figure


def _of(rows: pd.DataFrame, strategy: str, weather: str) -> pd.DataFrame:
    return rows[(rows.strategy == strategy) & (rows.weather == weather)]


def _dots(axes: Axes, operations: pd.DataFrame) -> None:
    timed = operations[operations.latency_ns.notna()]
    latency_ms = (timed.latency_ns / 1e6).clip(lower=_SHORTEST_MS)
    is_ok = timed.outcome == "ok"
    for chosen, colour, size in ((is_ok, _OK, 2.2), (~is_ok, ALARM, 4)):
        look = {"ms": size, "mew": 0, "alpha": 0.6, "color": colour}
        axes.plot(timed.invoked_ns[chosen] / 1e9, latency_ms[chosen], "o", **look)
