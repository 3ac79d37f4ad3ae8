"""The figures of one run of any size, computed by Spark, and shown on a terminal.

`runs.figures.measure` computes the same for runs that fit into memory.
"""

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Column, Table

from analysis.lake import Lake
from analysis.metrics.latency import latency_over_time, latency_quantiles, throughput
from analysis.metrics.network import messages_by_type, network_statistics
from pages.facts import Facts
from pages.render import count, milliseconds, ratio
from runs.figures import Figures
from runs.messages import disagreements
from runs.operations import Row, window_width


def summarise(spark: SparkSession, lake: Lake, run_id: str) -> Figures:
    """The figures of a run that the lake holds."""

    def table(name: str) -> DataFrame:
        return lake.table(spark, name, [run_id])

    operations, messages = table("operations"), table("messages")
    operation_count, duration_ns = _extent(operations)
    window_ns = window_width(duration_ns)
    bad = table("quarantine").groupBy("file", "reason")
    return Figures(
        operation_count=operation_count,
        duration_ns=duration_ns,
        window_ns=window_ns,
        latency=_rows(latency_quantiles(operations)),
        latency_over_time=_rows(latency_over_time(operations, window_ns)),
        throughput=_rows(throughput(operations, window_ns)),
        network=_rows(network_statistics(messages, operations)),
        by_type=_rows(messages_by_type(messages, operations)),
        faults=_rows(table("faults").orderBy("started_ns")),
        quarantine=_rows(bad.agg(F.count("*").alias("lines"), F.min("line").alias("first_line"))),
    )


def _extent(operations: DataFrame) -> tuple[int, int]:
    last = F.max(F.greatest("invoked_ns", "completed_ns"))
    (row,) = operations.agg(F.count("*").alias("operations"), last.alias("last")).collect()
    return row.operations, row.last or 0


def _rows(metric: DataFrame) -> list[Row]:
    """A small result as plain rows; of one run, so that its name says nothing."""
    return [row.asDict() for row in metric.drop("run_id").collect()]


def show(facts: Facts, figures: Figures, console: Console) -> None:
    """Print the options of a run, its latencies and its messages."""
    named = [
        *facts.named(),
        ("lasted", f"{figures.duration_ns / 1e9:.1f} s"),
        ("operations", count(figures.operation_count)),
        ("verdict", facts.verdict),
    ]
    console.print(", ".join(f"{name} [bold]{value}[/]" for name, value in named))
    console.print(_latency(figures.latency))
    console.print(_network(figures.network))
    console.print(_by_type(figures.by_type))
    for sentence in disagreements(facts.net, figures.network):
        console.print(f"[red]counts disagree[/]: {sentence}")
    for row in figures.quarantine:
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
