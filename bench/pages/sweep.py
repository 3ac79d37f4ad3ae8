"""A sweep as a page: its cells with verdicts and medians, pictures over all of them, its runs."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.pages import pictures
from bench.pages.render import NONE
from bench.sweep.table import OF_PROGRAM, ranked
from runs import sweeps
from runs.figures import number_of
from runs.files import SWEEP_INDEX
from runs.plots.groups import dots
from runs.sweeps import VERDICTS, Cell, cells

SHOWN = (
    "server_messages_per_op",
    "store_requests_per_op",
    "throughput_ops_per_s",
    "send_p50_ms",
    "send_p99_ms",
    "poll_p50_ms",
    "poll_p99_ms",
)
_PICTURES = {
    "messages": ("server_messages_per_op", "server messages per operation", "messages"),
    "p50": ("send_p50_ms", "median latency of a send", "ms"),
    "p99": ("send_p99_ms", "99 % of the sends were quicker than this", "ms"),
}
_LARGEST_INDEX = 64 * 2**20


ONLY_IF_KNOWN = ("store_requests_per_op",)


def shown(cell: Cell, figure: str) -> tuple[str, str]:
    """The median and, if the values of several runs differ, the spread."""
    summary = cell.summary(figure)
    if summary is None:
        return NONE, ""
    middle, low, high = summary.text(number_of(figure).decimals)
    return middle, f"{low} to {high}" if low != high else ""


def sweep_values(name: str, folder: Path) -> dict[str, Any]:
    """The values of `sweep.html.j2`, without its runs."""
    too_large = (folder / SWEEP_INDEX).stat().st_size > _LARGEST_INDEX
    entries = [] if too_large else list(sweeps.read(folder).values())
    ranks = ranked(cells(entries))
    found = [cell for cell, _ in ranks]
    axes = list(dict.fromkeys(axis for cell in found for axis in cell.axes))
    varying = [axis for axis in axes if len({str(c.axes.get(axis)) for c in found}) > 1]
    if len({cell.engine for cell in found}) > 1:
        varying = [*varying, "engine"]
    figures = [f for f in SHOWN if f not in ONLY_IF_KNOWN or any(c.values(f) for c in found)]
    names = [_title(cell, varying) for cell in found]
    counts = Counter(entry.verdict for entry in entries)
    return {
        "name": name,
        "axes": varying,
        "fixed": [(axis, _text(found[0].axes.get(axis))) for axis in axes if axis not in varying],
        "cells": [
            {
                "words": [(_word(c, axis), wrong and axis in OF_PROGRAM) for axis in varying],
                "verdicts": _in_order(c.verdicts),
                "unexpected": not c.as_expected,
                "anomalies": c.signs,
                "figures": [shown(c, figure) for figure in figures],
                "runs": [(e.repetition, e.run, e.verdict) for e in c.rows],
            }
            for c, wrong in ranks
        ],
        "marked": any(wrong for _, wrong in ranks),
        "anomalies": sorted({anomaly for cell in found for anomaly in cell.anomalies}),
        "columns": [number_of(figure).heading for figure in figures],
        "counts": _in_order(counts),
        "run_count": len(entries),
        "pictures": {
            picture: (title, pictures.svg(dots(_dots(found, names, figure), unit)))
            for picture, (figure, title, unit) in _PICTURES.items()
        },
    }


def _in_order(counts: Counter[str]) -> list[tuple[str, int]]:
    return [(verdict, counts[verdict]) for verdict in VERDICTS if verdict in counts]


def _dots(
    found: Sequence[Cell], names: Sequence[str], figure: str
) -> list[tuple[str, str, list[float]]]:
    # Rows of an older bench have no program.
    groups = [str(cell.rows[0].program or cell.axes.get("strategy")) for cell in found]
    return [
        (name, group, cell.values(figure))
        for name, group, cell in zip(names, groups, found, strict=True)
    ]


def _title(cell: Cell, varying: Sequence[str]) -> str:
    return " · ".join(_word(cell, axis) for axis in varying) or "the only cell"


def _word(cell: Cell, axis: str) -> str:
    if axis == "engine":
        return cell.engine
    return _text(cell.axes.get(axis))


def _text(value: Any) -> str:
    if value is None:
        return NONE
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
