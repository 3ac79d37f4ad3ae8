"""The plots of a page, as inline SVG; empty where there is nothing to draw.

Those of a run are drawn from its figures. A live log has windows, as `python -m analysis.live` keeps them,
which are drawn like those of a run.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runs.figures import Figures
from runs.live import FOLDER, Live, live_names, read_live
from runs.operations import is_long
from runs.plots import run
from runs.plots.picture import SHORTEST_MS, Picture


def latency_over_time(*runs: Figures) -> list[str]:
    """A picture of each run on the same scale, with a panel for each kind of operation; "" without any."""
    rows = [row for each in runs for row in each.table("latency_over_time")]
    counts = Counter[str]()
    for row in rows:
        counts[row["f"]] += row["operation_count"]
    kinds = run.frequent(counts)
    shown = [row for row in rows if row["f"] in kinds]
    lowest = min((row["latency_ns_p50"] for row in shown), default=0) / 1e6
    highest = max((row["latency_ns_max"] for row in shown), default=0) / 1e6
    limits_ms = max(lowest, SHORTEST_MS) / 1.5, max(highest, SHORTEST_MS) * 1.5
    end_ns = max(each.duration_ns for each in runs)
    starts, stops = zip(*(each.pause() or (0, 0) for each in runs), strict=True)
    common = max(starts), min(stops)  # none of these runs had an operation under way
    pause = common if is_long(common, end_ns) else None

    def drawn(figures: Figures) -> str:
        its, faults = figures.table("latency_over_time"), figures.table("faults")
        panels = [
            run.Panel(kind, [row for row in its if row["f"] == kind], faults) for kind in kinds
        ]
        span = run.Span(end_ns, figures.window_ns, pause)
        picture = run.latency_over_time(panels, span, limits_ms=limits_ms) if its else None
        return svg(picture, f"latency over time of {', '.join(kinds)}")

    return [drawn(each) for each in runs]


def throughput(figures: Figures) -> str:
    """Operations completed per second, by outcome."""
    panel = run.Panel("", figures.table("throughput"), figures.table("faults"))
    span = run.Span(figures.duration_ns, figures.window_ns, figures.pause())
    picture = run.throughput([panel], span) if figures.table("throughput") else None
    return svg(picture, "operations completed per second, by outcome")


def svg(picture: Picture | None, name: str) -> str:
    """A picture as an element with a name; empty where there is none."""
    return picture.svg(name) if picture else ""


# ---------------------------------------------------------------- a live log


WINDOWS = 120  # the newest ones are drawn
ROWS = 20
WHEN = "append"


def live_values(store: Path, name: str, now_s: float) -> dict[str, Any] | None:
    """The values of `live.html.j2`; None when there is no such live log."""
    if name not in live_names(store):
        return None
    live = read_live(store / FOLDER / name)
    if live is None:
        return None
    shown = live.last(WINDOWS)
    return {
        "name": name,
        "live": live,
        "age_s": max(0.0, now_s - live.updated_s),
        "rows": [_row(each, live.window_ns) for each in reversed(shown.windows[-ROWS:])],
        "plots": pictures(shown),
    }


def _row(window: Mapping[str, Any], window_ns: int) -> dict[str, Any]:
    return {**window, "rate_hz": window["records"] / window_ns * 1e9}


def pictures(live: Live) -> dict[str, str]:
    """Throughput and latency as inline SVG, from the first window on; "" where nothing is to be drawn."""
    if not live.windows:
        return {"throughput": "", "latency": ""}
    first_ns = live.windows[0]["window_start_ns"]
    rows = [
        {**_row(each, live.window_ns), "window_start_ns": each["window_start_ns"] - first_ns}
        for each in live.windows
    ]
    span = run.Span(rows[-1]["window_start_ns"] + live.window_ns, live.window_ns)
    counted = [{**row, "outcome": "ok"} for row in rows]
    timed = [row for row in rows if row["timed"]]
    rates = run.throughput([run.Panel("", counted)], span, what="records", when=WHEN)
    latency = run.latency_over_time([run.Panel("", timed)], span, when=WHEN) if timed else None
    return {
        "throughput": svg(rates, "records a second"),
        "latency": svg(latency, "latency and lag of the stream"),
    }
