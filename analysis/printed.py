"""The figures of one run on a terminal, whoever computed them. Needs no Spark."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from bench.pages.facts import Facts
from bench.pages.render import count, milliseconds, ratio
from runs.figures import Figures
from runs.operations import SHARES, Row

# Of each number, by its heading: its name in a row, and how it is written.
Numbers = Mapping[str, tuple[str, Callable[[Any], str]]]
_PER_OPERATION = ("messages_per_operation", ratio)
_LATENCIES: Numbers = {
    "operations": ("operation_count", count),
    **{each: (f"latency_ns_{each}", milliseconds) for each in (*SHARES, "max")},
}
_MESSAGES: Numbers = {
    "sent": ("send_count", count),
    "received": ("recv_count", count),
    "messages": ("message_count", count),
    "per operation": _PER_OPERATION,
}
_OF_TYPES: Numbers = {
    "messages": ("message_count", count),
    "lost": ("lost_count", count),
    "per operation": _PER_OPERATION,
}


def show(facts: Facts, figures: Figures, console: Console) -> None:
    """Print the options of a run, its latencies and its messages."""
    named = [
        *facts.named(),
        ("lasted", f"{figures.duration_ns / 1e9:.1f} s"),
        ("operations", count(figures.operations)),
        ("verdict", facts.verdict),
    ]
    console.print(", ".join(f"{name} [bold]{value}[/]" for name, value in named))
    of_servers = (row for row in figures.table("by_type") if row["link"] != "client")
    kinds = {"operation": "f", "outcome": "outcome"}
    for table in (
        _table(
            "Latency of operations in the main phase, ms",
            kinds,
            _LATENCIES,
            figures.latency(),
            figures.later(),
        ),
        _table("Messages", {"": "scope"}, _MESSAGES, figures.table("network")),
        _table("Server messages by type", {"link": "link", "type": "type"}, _OF_TYPES, of_servers),
    ):
        if table.row_count:
            console.print(table)
    for note in figures.notes:
        console.print(f"[yellow]{note}[/]")
    for row in figures.table("quarantine"):
        console.print(f"[yellow]{row['lines']} bad lines[/] in {row['file']}: {row['reason']}")


def _table(
    title: str,
    words: Mapping[str, str],
    numbers: Numbers,
    rows: Iterable[Row],
    caption: str | None = None,
) -> Table:
    """A table of rows; `words` has the names of what stands before the numbers, by heading."""
    right = (Column(name, justify="right") for name in numbers)
    table = Table(
        *words, *right, title=title, title_justify="left", title_style="bold", caption=caption
    )
    for row in rows:
        told = (write(row[name]) for name, write in numbers.values())
        table.add_row(*(str(row[name]) for name in words.values()), *told)
    return table
