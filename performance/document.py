"""From the folder of a sweep to generated pages of docs/performance."""

import json
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from bench.sweep import machine
from bench.sweep.index import CRASHED, Index

Record = dict[str, Any]


def records(folder: Path, case: Callable[[Mapping[str, Any]], str | None]) -> list[Record]:
    """The runs of a sweep as the tables want them: `case` names the row of a cell, or leaves it out."""
    rows = Index(folder).rows().values()
    if not rows:
        raise click.UsageError(f"{folder} is no folder of a sweep: run ./maelstrom sweep first.")
    return [
        {
            "case": name,
            "strategy": row.cell["strategy"],
            "figures": row.figures,
            "anomalies": row.anomalies,
            "error": f"exit status {row.exit_status}" if row.verdict == CRASHED else None,
        }
        for row in rows
        if (name := case(row.cell)) is not None
    ]


def provenance(folder: Path) -> str:
    """How the figures were made: the command, the code, the machine and its load, as Markdown."""
    made = json.loads((folder / machine.FILE_NAME).read_text())
    command = textwrap.wrap(made["command"], 88, break_long_words=False, break_on_hyphens=False)
    text = (
        f"On {made['started'][:10]}, commit {made['commit']}; {made['cores']} cores of {made['cpu']},"
        f" Linux {made['kernel']}, Python {made['python']}; load average at the start {made['load']:.1f}."
        " Nodes, clients, network and services share these cores."
    )
    return "    " + " \\\n        ".join(command) + "\n\n" + textwrap.fill(text, 100)


def write_page(page: Path, title: str, text: str) -> None:
    """Write a page of docs/performance that is wholly generated; its folder is made when it is missing."""
    page.parent.mkdir(parents=True, exist_ok=True)
    about = "Generated, never edited. [How it is measured, and what it means](../performance.md)."
    page.write_text(f"# {title}\n\n{about}\n\n{text.strip()}\n")
