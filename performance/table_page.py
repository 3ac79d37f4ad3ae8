"""The page of figures of a log as a table in Spark (`performance.table_in_spark`)."""

import os
from typing import NamedTuple

from performance import table_lines
from performance.table_readers import EVERY


class Cost(NamedTuple):
    """What some work took: seconds on the clock and of CPU."""

    seconds: float
    cpu_s: float


class Row(NamedTuple):
    """One measurement."""

    what: str
    by: str
    cost: Cost
    messages: int
    read_mb: float | None = None

    @property
    def rate(self) -> float:
        """Messages a CPU second."""
        return self.messages / max(self.cost.cpu_s, 0.01)


class Growth(NamedTuple):
    """Figures of a log of a length.

    `cpu_s`: of a read of all columns, by reader. `merge`: see `performance.table_steps`. The last
    three are in MB: what is left in Java's heap, and the highest memory of the program that measures, which is
    the driver, and of a worker.
    """

    messages: int
    files: int
    files_mb: float
    json_mb: float
    cpu_s: dict[str, float]
    merge: dict[str, float]
    heap_mb: float
    driver_mb: float
    worker_mb: float


COLUMNS = (
    "what", "by", "s", "CPU s", "messages", "messages a CPU second", "of spark.read.parquet's rate",
    "MB read from files",
)  # fmt: skip


def page(command: str, rows: list[Row], others: list[Row], growth: list[Growth]) -> str:
    """The page of documents; `rows` are of the longest log, `others` of streams, writes and the library."""
    longest = growth[-1]
    load = os.getloadavg()[2]
    lines = [
        "# A log as a table: figures",
        "",
        f"Written by `{command}`.",
        "",
        "Messages have 100 bytes. Spark is one process with two threads.",
        "[table-in-spark](../table-in-spark.md) says how to use it.",
        "",
        "CPU seconds are those of Java, Python and Spark's workers together. They hold on a machine that is",
        "busy with other work, too, where the seconds on the clock say little. At the end",
        f"{load:.0f} processes wanted one of its {os.cpu_count()} cores, on average over 15 minutes.",
        "",
        "Readers were asked in turn, after a round that does not count; figures are medians of the rounds.",
        "`a source without work` is a data source in Python that yields ready batches: none can be faster.",
        "",
        "The logs that are read were not appended. Their files and registers were written by the functions of",
        "compaction, as it would leave them, with the newest messages in segments, which plain Parquet and",
        "DuckDB do not see.",
        "",
        f"## {longest.messages:,} messages in {longest.files} files of {longest.files_mb:.0f} MB",
        "",
        *table_lines(COLUMNS, [_cells(row, rows) for row in rows]),
        "",
        "## Streams and writes",
        "",
        *table_lines(COLUMNS[:6], [_cells(row, rows)[:6] for row in others]),
        "",
        "## Growth",
        "",
        *table_lines(("messages", *(f"{each.messages:,}" for each in growth)), _growth(growth)),
        "",
    ]
    return "\n".join(lines)


def _cells(row: Row, rows: list[Row]) -> list[str]:
    plain = [each for each in rows if (each.what, each.by) == (row.what, "spark.read.parquet")]
    share = f"{row.rate / plain[0].rate:.2f}" if plain else ""
    read = "" if row.read_mb is None else f"{row.read_mb:.1f}"
    times = f"{row.cost.seconds:.1f}", f"{row.cost.cpu_s:.1f}"
    return [row.what, row.by, *times, f"{row.messages:,}", f"{row.rate:,.0f}", share, read]


def _growth(growth: list[Growth]) -> list[list[str]]:
    def row(title: str, form: str, values: list[float]) -> list[str]:
        return [title, *(f"{value:{form}}" for value in values)]

    readers = [
        row(f"{EVERY} by {by}, CPU s", ".1f", [each.cpu_s[by] for each in growth])
        for by in growth[0].cpu_s
    ]
    return [
        row("files, MB", ".0f", [each.files_mb for each in growth]),
        row("the same as runs of JSON, MB", ".0f", [each.json_mb for each in growth]),
        *readers,
        row("a process merges files of so many MB", ".0f", _of(growth, "merge", "read_mb")),
        row("its memory, MB", ".0f", _of(growth, "merge", "memory")),
        row("Java's heap after the reads, MB", ".0f", [each.heap_mb for each in growth]),
        row(
            "memory of this program: driver, DuckDB, tasks alone, MB",
            ".0f",
            [each.driver_mb for each in growth],
        ),
        row("memory of a Python worker, MB", ".0f", [each.worker_mb for each in growth]),
    ]


def _of(growth: list[Growth], step: str, name: str) -> list[float]:
    return [float(getattr(each, step)[name]) for each in growth]
