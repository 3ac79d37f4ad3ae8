"""From the folder of a sweep to generated sections of a document."""

import json
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
    """What a reader must know of how figures came about: the command, the code, the machine, its load."""
    made = json.loads((folder / machine.FILE_NAME).read_text())
    return (
        f"`{made['command']}` on {made['started'][:10]}, commit {made['commit']}; {made['cores']} cores of"
        f" {made['cpu']}, Linux {made['kernel']}, Python {made['python']}; load average at the start"
        f" {made['load']:.1f}. Nodes, clients, network and services share these cores."
    )


def replace_section(document: Path, name: str, text: str) -> None:
    """Put generated `text` between the markers `<!-- name -->` and `<!-- /name -->` of a document."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    content = document.read_text()
    if content.count(begin) != 1 or content.count(end) != 1:
        raise click.UsageError(f"{document} needs the lines {begin} and {end}, each once.")
    before, rest = content.split(begin)
    after = rest.split(end)[1]
    document.write_text(f"{before}{begin}\n{text.strip()}\n{end}{after}")
