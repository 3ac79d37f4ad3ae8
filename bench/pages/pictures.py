"""The plots of a page, as inline SVG; empty where there is nothing to draw.

Those of a run are drawn from its figures. A live log has windows, as `python -m analysis.live` keeps them,
which are drawn like those of a run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runs.figures import Figures
from runs.live import FOLDER, Live, live_names, read_live
from runs.operations import Pause, is_long
from runs.plots import run
from runs.plots.picture import SHORTEST_MS, Picture


@dataclass(frozen=True)
class Frame:
    """What several pictures have in common, so that they can be compared by eye."""

    kinds: Sequence[str]
    end_ns: int
    pause: Pause | None = None
    limits_ms: tuple[float, float] | None = None


def frame(runs: Sequence[Figures]) -> Frame:
    """The frame into which the latencies of all these runs fit."""
    kinds = _kinds(runs)
    rows = [row for each in runs for row in each.table("latency_over_time") if row["f"] in kinds]
    lowest = min((row["latency_ns_p50"] for row in rows), default=0) / 1e6
    highest = max((row["latency_ns_max"] for row in rows), default=0) / 1e6
    limits_ms = max(lowest, SHORTEST_MS) / 1.5, max(highest, SHORTEST_MS) * 1.5
    end_ns = max((each.duration_ns for each in runs), default=0)
    starts, stops = zip(*(each.pause() or (0, 0) for each in runs), strict=True)
    common = max(starts), min(stops)  # none of these runs had an operation under way
    return Frame(kinds, end_ns, common if is_long(common, end_ns) else None, limits_ms)


def _kinds(runs: Sequence[Figures]) -> list[str]:
    counts: dict[str, int] = {}
    for row in (row for each in runs for row in each.table("latency_over_time")):
        counts[row["f"]] = counts.get(row["f"], 0) + row["operation_count"]
    return run.frequent(counts)


def latency_over_time(figures: Figures, within: Frame | None = None) -> str:
    """A panel for each kind of operation; `within`: the frame to draw in, by default one that fits."""
    if not figures.table("latency_over_time"):
        return ""
    chosen = within or Frame(_kinds([figures]), figures.duration_ns, figures.pause())
    of_kind = {
        kind: [row for row in figures.table("latency_over_time") if row["f"] == kind]
        for kind in chosen.kinds
    }
    panels = [run.Panel(kind, rows, figures.table("faults")) for kind, rows in of_kind.items()]
    span = run.Span(chosen.end_ns, figures.window_ns, chosen.pause)
    picture = run.latency_over_time(panels, span, limits_ms=chosen.limits_ms)
    return picture.svg(f"latency over time of {', '.join(chosen.kinds)}")


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
