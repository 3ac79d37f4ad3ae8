"""The page of a live log: its windows, as `python -m analysis.live` keeps them, drawn like those of a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runs.live import FOLDER, Live, live_names, read_live
from runs.plots import run

WINDOWS = 120  # the newest ones are drawn
ROWS = 20
WHEN = "append"
OUTCOME = "ok"  # a record that is in the log


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
    counted = [{**row, "outcome": OUTCOME} for row in rows]
    timed = [row for row in rows if row["timed"]]
    rates = run.throughput([run.Panel("", counted)], span, what="records", when=WHEN).svg()
    latency = run.latency_over_time([run.Panel("", timed)], span, when=WHEN).svg() if timed else ""
    return {"throughput": rates, "latency": latency}
