"""The figures of one run on a terminal, whoever computed them. Needs no Spark."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Column, Table

from bench.pages.facts import Facts
from bench.pages.render import count, milliseconds, ratio
from runs.figures import Figures
from runs.operations import Row
from runs.traffic import disagreements


def show(facts: Facts, figures: Figures, console: Console) -> None:
    """Print the options of a run, its latencies and its messages."""
    named = [
        *facts.named(),
        ("lasted", f"{figures.duration_ns / 1e9:.1f} s"),
        ("operations", count(figures.operations)),
        ("verdict", facts.verdict),
    ]
    console.print(", ".join(f"{name} [bold]{value}[/]" for name, value in named))
    console.print(_latency(figures.latency()))
    console.print(_network(figures.table("network")))
    console.print(_by_type(figures.table("by_type")))
    for sentence in disagreements(facts.told.results.net, figures.table("network")):
        console.print(f"[red]counts disagree[/]: {sentence}")
    for note in figures.notes:
        console.print(f"[yellow]{note}[/]")
    for row in figures.table("quarantine"):
        console.print(f"[yellow]{row['lines']} bad lines[/] in {row['file']}: {row['reason']}")


def _table(title: str, words: Iterable[str], numbers: Iterable[str]) -> Table:
    right = (Column(name, justify="right") for name in numbers)
    return Table(*words, *right, title=title, title_justify="left", title_style="bold")


def _latency(rows: Iterable[Row]) -> Table:
    numbers = ("operations", "p50", "p90", "p99", "max")
    table = _table("Latency of operations, ms", ("operation", "outcome"), numbers)
    for row in rows:
        quantiles = [milliseconds(row[f"latency_ns_{name}"]) for name in numbers[1:]]
        table.add_row(row["f"], row["outcome"], count(row["operation_count"]), *quantiles)
    return table


def _network(rows: Iterable[Row]) -> Table:
    table = _table("Messages", ("",), ("sent", "received", "messages", "per operation"))
    for row in rows:
        counts = [count(row[name]) for name in ("send_count", "recv_count", "message_count")]
        table.add_row(row["scope"], *counts, ratio(row["messages_per_operation"]))
    return table


def _by_type(rows: Iterable[Row]) -> Table:
    numbers = ("messages", "lost", "per operation")
    table = _table("Server messages by type", ("link", "type"), numbers)
    for row in rows:
        if row["link"] != "client":
            counts = [count(row[name]) for name in ("message_count", "lost_count")]
            per_operation = ratio(row["messages_per_operation"])
            table.add_row(row["link"], str(row["type"]), *counts, per_operation)
    return table
