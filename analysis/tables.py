"""The summary as tables on a terminal."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from analysis.figures import count, facts, milliseconds, ratio
from analysis.summary import Summary


def show(summary: Summary, console: Console) -> None:
    """Print what a run was, its latencies and its messages."""
    console.print(", ".join(f"{name} [bold]{value}[/]" for name, value in facts(summary)))
    console.print(_latency(summary))
    console.print(_network(summary))
    console.print(_by_type(summary))
    for sentence in summary.disagreements:
        console.print(f"[red]counts disagree[/]: {sentence}")
    for row in summary.quarantine:
        console.print(f"[yellow]{row.lines} bad lines[/] in {row.file}: {row.reason}")


def _table(title: str, words: Iterable[str], numbers: Iterable[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in words:
        table.add_column(name)
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def _latency(summary: Summary) -> Table:
    numbers = ("operations", "p50", "p90", "p99", "max")
    table = _table("Latency of operations, ms", ("operation", "outcome"), numbers)
    for row in summary.latency:
        table.add_row(
            row.f,
            row.outcome,
            count(row.operation_count),
            milliseconds(row.latency_ns_p50),
            milliseconds(row.latency_ns_p90),
            milliseconds(row.latency_ns_p99),
            milliseconds(row.latency_ns_max),
        )
    return table


def _network(summary: Summary) -> Table:
    table = _table("Messages", ("",), ("sent", "received", "messages", "per operation"))
    for row in summary.network:
        table.add_row(
            row.scope,
            count(row.send_count),
            count(row.recv_count),
            count(row.message_count),
            ratio(row.messages_per_operation),
        )
    return table


def _by_type(summary: Summary) -> Table:
    numbers = ("messages", "lost", "per operation")
    table = _table("Server messages by type", ("link", "type"), numbers)
    for row in summary.by_type:
        if row.link != "client":
            table.add_row(
                row.link,
                row.type,
                count(row.message_count),
                count(row.lost_count),
                ratio(row.messages_per_operation),
            )
    return table
