"""The runs of a sweep by case and strategy, and the spread of their figures."""

import json
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from bench.sweep.making import MACHINE_FILE
from performance.harness import command_lines
from runs import sweeps
from runs.facts import grouped
from runs.figures import number_of
from runs.sweeps import Cell, Row, Summary

WORST = ("valid", "strict_valid", "ok_fraction")  # the worst run counts, not the median
WORDS = {1.0: "valid", 0.0: "**invalid**", None: "–"}

Found = Mapping[tuple[str, str], Cell]  # the runs of each case and strategy


def rows_of(folder: Path) -> list[Row]:
    """Read the runs of a sweep. Raises `click.UsageError` for a folder without any."""
    if rows := [*sweeps.read(folder).values()]:
        return rows
    raise click.UsageError(f"{folder} is no folder of a sweep: run ./maelstrom sweep first.")


def found_in(rows: Iterable[Row], case: Callable[[Mapping[str, Any]], str | None]) -> Found:
    """Runs by case and strategy, as first run: `case` names the case of a cell, or leaves it out."""
    named = ((case(row.cell), row) for row in rows)
    groups = grouped(((name, row.cell["strategy"]), row) for name, row in named if name is not None)
    return {key: Cell(group) for key, group in groups.items()}


def strategies_of(found: Found) -> list[str]:
    """The columns: strategies in the order in which they were first run."""
    return list(dict.fromkeys(strategy for _, strategy in found))


def summary(cell: Cell | None, figure: str) -> Summary | None:
    """Median, lowest and highest of a figure over the runs that have it.

    A verdict counts as its worst: one invalid run of three is invalid (`middle` is then the minimum). A run
    that left no figures at all counts as invalid and for nothing else.
    """
    if cell is None:
        return None
    lost = [0.0 for row in cell.rows if not row.figures] if figure == "valid" else []
    whole = Summary.of([*cell.values(figure), *lost])
    return whole._replace(middle=whole.low) if whole and figure in WORST else whole


def text(summary: Summary | None, figure: str) -> str:
    """The median of a figure, with lowest and highest where they differ."""
    if summary is None:
        return "–"
    middle, low, high = summary.text(number_of(figure).decimals)
    return middle if low == high else f"{middle} ({low}–{high})"


def verdict_words(cell: Cell | None, verdict: str) -> str:
    """In words, as `valid` or `strict_valid` has it."""
    worst = summary(cell, verdict)
    return WORDS[worst and float(bool(worst.middle))]


def machine(folder: Path) -> dict[str, Any]:
    """What the sweep of a folder wrote of its machine, its command and the code."""
    found: dict[str, Any] = json.loads((folder / MACHINE_FILE).read_text())
    return found


def provenance(folder: Path) -> str:
    """How the figures were made: the command, the code, the machine and its load, as Markdown."""
    made = machine(folder)
    text = (
        f"On {made['started'][:10]}, commit {made['commit']}; {made['cores']} cores of {made['cpu']},"
        f" Linux {made['kernel']}, Python {made['python']}; load average at the start {made['load']:.1f}."
        " Nodes, clients, network and services share these cores."
    )
    return command_lines(made["command"]) + "\n\n" + textwrap.fill(text, 100)
