"""From the folder of a sweep to figures with their spread, and to generated pages of docs/performance."""

import json
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from bench.sweep.folder import MACHINE_FILE
from runs import sweeps
from runs.sweeps import Column, Summary

Record = Mapping[str, Any]
Summaries = dict[tuple[str, str], dict[str, Summary]]  # (case, strategy) -> figure -> summary
Records = Sequence[Record]
WORST = ("valid", "strict_valid", "ok_fraction")  # the worst run counts, not the median


def records(folder: Path, case: Callable[[Mapping[str, Any]], str | None]) -> list[Record]:
    """The runs of a sweep as the tables want them: `case` names the row of a cell, or leaves it out."""
    rows = sweeps.read(folder).values()
    if not rows:
        raise click.UsageError(f"{folder} is no folder of a sweep: run ./maelstrom sweep first.")
    return [
        {
            "case": name,
            "strategy": row.cell["strategy"],
            "figures": row.figures,
            "anomalies": row.anomalies,
            "error": f"exit status {row.exit_status}" if row.verdict == sweeps.CRASHED else None,
        }
        for row in rows
        if (name := case(row.cell)) is not None
    ]


def strategies_of(records: Records) -> list[str]:
    """The columns: strategies in the order in which they were first run."""
    return list(dict.fromkeys(record["strategy"] for record in records))


def summarise(records: Iterable[Record]) -> Summaries:
    """Median, lowest and highest of each figure, for each case and strategy.

    A verdict counts as its worst: one invalid run of three is invalid (`middle` is then the minimum). A run
    that left no figures at all counts as invalid and for nothing else.
    """
    values: dict[tuple[str, str], dict[str, list[float]]] = {}
    for record in records:
        figures = record["figures"] or {"valid": 0.0}
        collected = values.setdefault((record["case"], record["strategy"]), {})
        for name, value in figures.items():
            if value is not None:
                collected.setdefault(name, []).append(value)
    return {
        key: {name: _summary(name, each) for name, each in collected.items()}
        for key, collected in values.items()
    }


def _summary(name: str, values: Sequence[float]) -> Summary:
    summary = Summary.of(values)
    assert summary, "only figures with values are collected"
    return summary._replace(middle=summary.low) if name in WORST else summary


def cell(summary: Summary | None, column: Column) -> str:
    """The median, with lowest and highest where they differ."""
    if summary is None:
        return "–"
    middle, low, high = summary.text(column.decimals)
    return middle if low == high else f"{middle} ({low}–{high})"


def verdict_words(figures: Mapping[str, Summary], verdict: str) -> str:
    """In words, as `valid` or `strict_valid` has it."""
    if verdict not in figures:
        return "–"
    return "valid" if figures[verdict].middle else "**invalid**"


def provenance(folder: Path) -> str:
    """How the figures were made: the command, the code, the machine and its load, as Markdown."""
    made = json.loads((folder / MACHINE_FILE).read_text())
    text = (
        f"On {made['started'][:10]}, commit {made['commit']}; {made['cores']} cores of {made['cpu']},"
        f" Linux {made['kernel']}, Python {made['python']}; load average at the start {made['load']:.1f}."
        " Nodes, clients, network and services share these cores."
    )
    return command_lines(made["command"]) + "\n\n" + textwrap.fill(text, 100)


def command_lines(command: str) -> str:
    """A command as a block of Markdown, in lines that can be copied."""
    lines = textwrap.wrap(command, 88, break_long_words=False, break_on_hyphens=False)
    return "    " + " \\\n        ".join(lines)


def write_page(page: Path, title: str, text: str) -> None:
    """Write a page of docs/performance that is wholly generated; its folder is made when it is missing."""
    page.parent.mkdir(parents=True, exist_ok=True)
    about = "Generated, never edited. [How it is measured, and what it means](../performance.md)."
    body = text.strip("\n")  # a command at the beginning keeps its indent
    page.write_text(f"# {title}\n\n{about}\n\n{body}\n")
