"""The page of a sweep: its cells with medians, and pictures over all of them."""

from collections import Counter
from pathlib import Path
from typing import Any

from bench.pages import pictures, render
from bench.sweep.axes import LABEL
from bench.sweep.table import OF_PROGRAM, median, ran, ranked
from runs import sweeps
from runs.figures import number_of
from runs.files import SWEEP_INDEX
from runs.plots.groups import dots
from runs.sweeps import Cell, cells

SHOWN = (
    "server_messages_per_op",
    "store_requests_per_op",
    "throughput_ops_per_s",
    "stable_median_ms",
    "stable_most_ms",
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


def sweep_values(name: str, folder: Path) -> dict[str, Any]:
    """The values of `sweep.html.j2`, without its runs."""
    too_large = (folder / SWEEP_INDEX).stat().st_size > _LARGEST_INDEX
    entries = [] if too_large else list(sweeps.read(folder).values())
    ranks = ranked(cells(entries))
    found = [cell for cell, _ in ranks]
    axes = list(dict.fromkeys(axis for cell in found for axis in cell.axes))
    differing = [axis for axis in axes if len({str(c.axes.get(axis)) for c in found}) > 1]
    varying = [*differing, *["engine"] * (len({cell.engine for cell in found}) > 1)]
    if len({c.axes[LABEL] for c in found if LABEL in c.axes}) == len(found):
        varying = [LABEL]  # it says how a cell differs
    figures = [f for f in SHOWN if any(c.values(f) for c in found)]
    titles = (" · ".join(_word(cell, axis) for axis in varying) for cell in found)
    named = [
        ((name or "the only cell", str(ran(c)[1])), c)
        for name, c in zip(titles, found, strict=True)
    ]
    return {
        "name": name,
        "grade": sweeps.grade_of(folder),
        "axes": varying,
        "fixed": [
            (axis, render.option(found[0].axes.get(axis)))
            for axis in axes
            if axis not in {*differing, *varying}
        ],
        "cells": [
            {
                "words": [(_word(c, axis), wrong and axis in OF_PROGRAM) for axis in varying],
                "verdicts": _in_order(c.verdicts),
                "unexpected": not c.as_expected,
                "anomalies": c.signs,
                "figures": [median(c, figure) for figure in figures],
                "runs": [(e.repetition, e.run, e.verdict) for e in c.rows],
            }
            for c, wrong in ranks
        ],
        "marked": any(wrong for _, wrong in ranks),
        "anomalies": sorted({anomaly for cell in found for anomaly in cell.anomalies}),
        "columns": [number_of(figure).heading for figure in figures],
        "counts": _in_order(Counter(entry.verdict for entry in entries)),
        "run_count": len(entries),
        "pictures": {
            picture: (
                title,
                pictures.svg(dots([(*who, c.values(figure)) for who, c in named], unit), title),
            )
            for picture, (figure, title, unit) in _PICTURES.items()
        },
    }


def _in_order(counts: Counter[str]) -> list[tuple[str, int]]:
    return [(verdict, counts[verdict]) for verdict in sweeps.VERDICTS if verdict in counts]


def _word(cell: Cell, axis: str) -> str:
    return cell.engine if axis == "engine" else render.option(cell.axes.get(axis))
