"""The table of a run, and its summary in two lines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from specs.tools.check import Result


def table(results: Sequence[Result]) -> Table:
    """One row per configuration; a row that differs from the manifest says how."""
    shown = Table(title="Models checked by TLC", title_justify="left")
    for name in ("model", "configuration"):
        shown.add_column(name, overflow="fold")
    shown.add_column("verdict", overflow="fold")
    for name in ("distinct states", "seconds"):
        shown.add_column(name, justify="right")
    shown.add_column("as expected", overflow="fold")
    for result in results:
        configuration, outcome = result.configuration, result.outcome
        states = "-" if outcome.distinct_states is None else f"{outcome.distinct_states:,}"
        good = not result.differences
        shown.add_row(
            configuration.model,
            configuration.name,
            escape(outcome.verdict),
            states,
            f"{result.duration_s:.1f}",
            "[green]yes" if good else f"[red]NO: {escape('; '.join(result.differences))}",
        )
    return shown


def summary(results: Sequence[Result], unbroken: Sequence[str]) -> list[str]:
    """How many came out as expected, and how many broken configurations were caught."""
    broken = [r for r in results if r.configuration.broken]
    caught = [r for r in broken if not r.differences]
    good = sum(not r.differences for r in results)
    lines = [
        f"{good} of {len(results)} configurations as expected",
        f"{len(caught)} of {len(broken)} broken configurations violated as expected",
    ]
    return lines + [f"no broken configuration violates {name}: add one" for name in unbroken]


def show(console: Console, results: Sequence[Result], unbroken: Sequence[str]) -> None:
    """Print table and summary."""
    console.print(table(results))
    for line in summary(results, unbroken):
        console.print(line, highlight=False)
