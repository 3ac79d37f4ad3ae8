"""A sweep as a page: its cells with verdicts and medians, pictures over all of them, its runs."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from pages import pictures
from pages.facts import VERDICTS
from pages.render import NONE
from plots.groups import dots
from runs.files import SWEEP_INDEX

# Column -> the figure of the index below it, and its decimals.
FIGURES = {
    "server msgs/op": ("server_messages_per_op", 2),
    "ops/s": ("throughput_ops_per_s", 0),
    "send p50, ms": ("send_p50_ms", 2),
    "send p99, ms": ("send_p99_ms", 1),
    "poll p50, ms": ("poll_p50_ms", 2),
    "poll p99, ms": ("poll_p99_ms", 1),
}
_PICTURES = {
    "messages": ("server_messages_per_op", "server messages per operation"),
    "p50": ("send_p50_ms", "median latency of a send, ms"),
    "p99": ("send_p99_ms", "99 % of the sends were quicker than this, ms"),
}
_LARGEST_INDEX = 64 * 2**20


@dataclass(frozen=True)
class Entry:
    """A finished run, as the index has it."""

    cell: dict[str, Any]
    verdict: str
    engine: str = "embedded"
    run: str | None = None  # the run's folder, seen from the sweep's
    repetition: int = 1
    seconds: float | None = None
    expect: str | None = None
    figures: dict[str, float | None] = field(default_factory=dict)
    anomalies: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Cell:
    """The repetitions of one cell."""

    entries: Sequence[Entry]

    @property
    def axes(self) -> dict[str, Any]:
        return self.entries[0].cell

    @property
    def verdicts(self) -> list[tuple[str, int]]:
        counts = Counter(entry.verdict for entry in self.entries)
        return [(verdict, counts[verdict]) for verdict in VERDICTS if verdict in counts]

    @property
    def anomalies(self) -> list[str]:
        return sorted({name for entry in self.entries for name in entry.anomalies})

    @property
    def unexpected(self) -> bool:
        """Whether a run ended otherwise than was asked for."""
        return any(e.expect not in (None, "any", e.verdict) for e in self.entries)

    def values(self, figure: str) -> list[float]:
        found = (entry.figures.get(figure) for entry in self.entries)
        return [value for value in found if isinstance(value, int | float)]

    def shown(self, figure: str, decimals: int) -> tuple[str, str]:
        """The median and, if there are several values, the spread."""
        values = self.values(figure)
        if not values:
            return NONE, ""
        text = f"{median(values):.{decimals}f}"
        low, high = (f"{each:.{decimals}f}" for each in (min(values), max(values)))
        return text, f"{low} to {high}" if low != high else ""


def read_index(folder: Path) -> list[Entry]:
    """The newest entry of each run; lines that are torn or not of this kind are passed over."""
    file = folder / SWEEP_INDEX
    newest: dict[Any, Entry] = {}
    if file.stat().st_size > _LARGEST_INDEX:
        return []
    for line in file.read_bytes().splitlines():
        entry = _entry(line)
        if entry:
            newest[json.dumps(entry.cell, sort_keys=True), entry.repetition, entry.engine] = entry
    return list(newest.values())


def _entry(line: bytes) -> Entry | None:
    try:
        content = orjson.loads(line)
    except ValueError:
        return None
    if not isinstance(content, dict) or not isinstance(content.get("cell"), dict):
        return None
    if content.get("verdict") not in VERDICTS:
        return None
    known = {name: content[name] for name in Entry.__dataclass_fields__ if name in content}
    return Entry(**known)


def cells(entries: Iterable[Entry]) -> list[Cell]:
    """Entries by cell and engine, in the order in which they first came."""
    groups: dict[Any, list[Entry]] = {}
    for entry in entries:
        groups.setdefault((json.dumps(entry.cell, sort_keys=True), entry.engine), []).append(entry)
    return [Cell(group) for group in groups.values()]


def sweep_values(name: str, folder: Path) -> dict[str, Any]:
    """The values of `sweep.html.j2`, without its runs."""
    entries = read_index(folder)
    found = cells(entries)
    axes = list(dict.fromkeys(axis for cell in found for axis in cell.axes))
    varying = [axis for axis in axes if len({str(c.axes.get(axis)) for c in found}) > 1]
    if len({cell.entries[0].engine for cell in found}) > 1:
        varying = [*varying, "engine"]
    names = [_title(cell, varying) for cell in found]
    counts = Counter(entry.verdict for entry in entries)
    return {
        "name": name,
        "axes": varying,
        "fixed": [(axis, _text(found[0].axes.get(axis))) for axis in axes if axis not in varying],
        "cells": [
            {
                "words": [_word(cell, axis) for axis in varying],
                "verdicts": cell.verdicts,
                "unexpected": cell.unexpected,
                "anomalies": cell.anomalies,
                "figures": [cell.shown(*column) for column in FIGURES.values()],
                "runs": [(e.repetition, e.run, e.verdict) for e in cell.entries],
            }
            for cell in found
        ],
        "columns": list(FIGURES),
        "counts": [(verdict, counts[verdict]) for verdict in VERDICTS if verdict in counts],
        "run_count": len(entries),
        "pictures": {
            picture: (unit, pictures.svg(dots(_dots(found, names, figure), unit)))
            for picture, (figure, unit) in _PICTURES.items()
        },
    }


def _dots(
    found: Sequence[Cell], names: Sequence[str], figure: str
) -> list[tuple[str, str, list[float]]]:
    groups = [str(cell.axes.get("strategy")) for cell in found]
    return [
        (name, group, cell.values(figure))
        for name, group, cell in zip(names, groups, found, strict=True)
    ]


def _title(cell: Cell, varying: Sequence[str]) -> str:
    return " · ".join(_word(cell, axis) for axis in varying) or "the only cell"


def _word(cell: Cell, axis: str) -> str:
    if axis == "engine":
        return cell.entries[0].engine
    return _text(cell.axes.get(axis))


def _text(value: Any) -> str:
    if value is None:
        return NONE
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
