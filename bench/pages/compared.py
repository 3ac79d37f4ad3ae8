"""Two runs side by side: options that differ, figures, messages by type."""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

from bench.pages import pictures, render
from bench.pages.facts import Facts, Shelf
from runs.figures import ALL, Figures
from runs.store import Folder


def compare_values(shelf: Shelf, one: Folder, other: Folder) -> dict[str, Any]:
    """The values of `compare.html.j2`, of two runs; those of two workloads have no figures to compare."""
    first, second = facts = shelf.facts(one), shelf.facts(other)
    figures = shelf.figures(one), shelf.figures(other)
    alike = len({each.settings.workload for each in facts} - {None}) < 2
    return {
        "both": facts,
        "names": [each.name for each in facts],
        "alike": alike,
        "options": differing_options(first.told.options, second.told.options),
        "rows": figure_rows(facts, figures) if alike else (),
        "types": type_rows(figures) if alike else (),
        "plots": pictures.latency_over_time(*figures) if alike else (),
    }


_NUMBERS = (
    ("throughput_ops_per_s", "operations per second", render.rate),
    ("server_messages_per_op", "server messages per operation", render.ratio),
)
# What differs between any two runs and explains nothing.
_NOISE = ("started", "argv", "history_origin_ns", "node_cpu_s", "store", "load")


def differing_options(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[dict[str, str]]:
    """Options of test.json that are not the same, by name."""
    flat = [_flat(options) for options in (first, second)]
    names = sorted(flat[0].keys() | flat[1].keys())
    rows = [(name, *(each.get(name, render.NONE) for each in flat)) for name in names]
    return [{"name": name, "a": a, "b": b} for name, a, b in rows if a != b]


def _flat(options: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name in (name for name in options if prefix or name not in _NOISE):
        path, value = prefix + name, options[name]
        found |= (
            _flat(value, f"{path}.") if isinstance(value, dict) else {path: render.option(value)}
        )
    return found


def figure_rows(
    facts: tuple[Facts, Facts], figures: tuple[Figures, Figures]
) -> list[dict[str, Any]]:
    """Figures of both runs as rows: name, both values as text, and the second over the first."""
    rows = [
        _row("operations", [each.operations for each in figures], render.count),
        *(
            _row(title, [each.numbers.get(name) for each in figures], shown)
            for name, title, shown in _NUMBERS
        ),
    ]
    asked = [each.asked() for each in figures]
    for f in dict.fromkeys(f for each in asked for f in each):
        quantiles = [each.get(f, {}) for each in asked]
        for name in ("p50", "p90", "p99", "max"):
            values = [row.get(f"latency_ns_{name}") for row in quantiles]
            rows.append(_row(f"{f}, {name}, ms", values, render.milliseconds))
    for outcome in ("fail", "info"):
        values = [
            sum(r["operation_count"] for r in each.latency(ALL) if r["outcome"] == outcome)
            for each in figures
        ]
        rows.append(_row(f"operations that ended {outcome}", values, render.count))
    counted = [{each.type: each.count for each in both.anomalies} for both in facts]
    for type_ in dict.fromkeys(chain(*counted)):
        counts = [each.get(type_, 0) for each in counted]
        rows.append(_row(f"anomalies: {type_}", counts, render.count))
    return rows


def type_rows(figures: tuple[Figures, Figures]) -> list[dict[str, Any]]:
    """Server messages per operation by type, the most numerous first."""
    by_type = [
        {
            f"{r['type']} ({r['link']})": r["messages_per_operation"]
            for r in each.table("by_type")
            if r["link"] != "client"
        }
        for each in figures
    ]
    names = by_type[0].keys() | by_type[1].keys()
    rows = {name: [each.get(name) or 0.0 for each in by_type] for name in names}
    order = sorted(rows, key=lambda name: (-max(rows[name]), name))
    return [_row(name, rows[name], render.ratio) for name in order]


def _row(name: str, values: Iterable[Any], shown: Callable[[Any], str]) -> dict[str, Any]:
    a, b = values
    over = f"{b / a:.2f}" if a and b is not None else render.NONE
    return {"name": name, "a": shown(a), "b": shown(b), "ratio": over}
