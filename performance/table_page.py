"""The page of figures of a log as a table in Spark (`performance.table_in_spark`)."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from performance import table_lines
from performance.table_costs import Cost
from performance.table_logs import Sizes
from performance.table_readers import COUNT, EVERY, LENGTH, PLAIN, READ_LOG, SOURCE

Figures = dict[str, float]
COLUMNS = (
    "what", "by", "s", "CPU s", "messages", "a second", "a CPU second", f"of {PLAIN}'s rate",
    "MB read from files",
)  # fmt: skip
PREFACE = """
Messages have 100 bytes. Spark is one process with two threads, `local[2]`.
[table-in-spark](../table-in-spark.md) says how to use it.

CPU seconds are those of Java, Python and Spark's workers together, and rates are compared by them: they hold
on a machine that is busy with other work, too, where the seconds on the clock say less.

Readers were asked in turn, every other round backwards, after a round on the shortest log that does not count;
figures are medians of the rounds. `a source without work` is a data source in Python that yields ready
batches: none can be faster. `the data source's tasks alone` read in the measuring process, without Spark.

The logs that are read were not appended. Their files and registers are those that compaction and upkeep
would leave, with the newest messages in segments, which plain Parquet and DuckDB do not see.
"""
GROWTH = """
The last lines are of new processes that do one thing each. Spark reads with a heap of 512 MB. A process merges
as many files as the largest merge has that upkeep makes on the way to this log. The library opens the log and
reads the oldest and the newest record of one key.
"""


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


@dataclass
class Growth:
    """The figures of a log of some length.

    `rows`: of its readers. `generated`: what it took to write it. `steps`: of `performance.table_steps`, those
    that gave figures.
    """

    messages: int
    sizes: Sizes
    rows: list[Row]
    generated: Cost
    steps: dict[str, Figures] = field(default_factory=dict)


def page(
    command: str, growth: Sequence[Growth], others: Sequence[Row], failed: Sequence[str]
) -> str:
    """The page of documents. `others`: rows of streams, writes and the library; `failed`: steps that did."""
    load = os.getloadavg()[2]
    lines = [
        "# A log as a table: figures", "",
        f"Written by `{command}`.",
        f"On average over the last 15 minutes {load:.0f} processes wanted one of {os.cpu_count()} cores.",
        PREFACE,
        *_tables(growth),
        "## Streams and writes", "",
        "The third of three times; Java compiles before.", "",
        *table_lines(COLUMNS[:7], [_cells(row, [])[:7] for row in others]), "",
        "## Growth", "",
        *table_lines(("messages", *(f"{each.messages:,}" for each in growth)), _growth(growth)),
        GROWTH,
    ]  # fmt: skip
    if failed:
        lines += ["## Without a figure", "", *(f"- {text}" for text in failed), ""]
    return "\n".join(lines)


def _tables(growth: Sequence[Growth]) -> list[str]:
    """A table of readers for each log."""
    lines: list[str] = []
    for each in reversed(growth):
        files, size = each.sizes.files, each.sizes.files_mb
        lines += [f"## {each.messages:,} messages in {files} files of {size:.0f} MB", ""]
        order = [EVERY, LENGTH, COUNT]
        rows = sorted(each.rows, key=lambda row: order.index(row.what) if row.what in order else 9)
        lines += [*table_lines(COLUMNS, [_cells(row, each.rows) for row in rows]), ""]
    return lines


def _cells(row: Row, rows: list[Row]) -> list[str]:
    plain = [each for each in rows if (each.what, each.by) == (row.what, PLAIN)]
    share = f"{row.rate / plain[0].rate:.2f}" if plain else ""
    read = "" if row.read_mb is None else f"{row.read_mb:.1f}"
    seconds, cpu_s = row.cost
    rate = row.messages / max(seconds, 0.01)
    return [
        row.what, row.by, f"{seconds:.1f}", f"{cpu_s:.1f}", f"{row.messages:,}", f"{rate:,.0f}",
        f"{row.rate:,.0f}", share, read,
    ]  # fmt: skip


def _growth(growth: Sequence[Growth]) -> list[list[str]]:
    rows = [
        _line("files, MB", ".0f", growth, lambda each: each.sizes.files_mb),
        _line("the same as runs of JSON, MB", ".0f", growth, lambda each: each.sizes.json_mb),
        _line("pages of the index, MB", ".0f", growth, lambda each: each.sizes.pages_mb),
        _line(
            "times that a byte of a file is written, by compaction and merges", ".1f", growth,
            lambda each: each.sizes.written,
        ),
        _line("CPU s to generate it", ".0f", growth, lambda each: each.generated.cpu_s or None),
    ]  # fmt: skip
    rows += [
        _line(f"{what} by {by}, CPU s", ".1f", growth, _cpu_s(what, by))
        for what in (EVERY, LENGTH, COUNT)
        for by in (READ_LOG, SOURCE, PLAIN)
    ]
    rows += [
        _line(title, ".1f" if title.endswith(", s") else ".0f", growth, _figure(step, name))
        for step, name, title in STEPS
    ]
    return [row for row in rows if any(row[1:])]


STEPS = (
    ("first", "start_s", "Spark starts, s"),
    ("first", "one_s", "its first record, s"),
    ("first", "all_s", "then all columns of all, while Java compiles, s"),
    ("first", "heap_mb", "Java's heap after that, MB"),
    ("first", "java_mb", "highest memory of Java, which is driver and executor, MB"),
    ("first", "memory", "of the driver's Python, MB"),
    ("first", "worker_mb", "of a Python worker, MB"),
    ("merge", "files", "a process merges so many files"),
    ("merge", "read_mb", "of together so many MB"),
    ("merge", "cpu_s", "in so many CPU s"),
    ("merge", "memory", "its highest memory, MB"),
    ("open", "oldest_s", "the library opens the log and has the oldest record of a key, s"),
    ("open", "newest_s", "then the newest one, s"),
    ("open", "memory", "its highest memory, MB"),
)


def _cpu_s(what: str, by: str) -> Callable[[Growth], float | None]:
    def find(each: Growth) -> float | None:
        found = [row.cost.cpu_s for row in each.rows if (row.what, row.by) == (what, by)]
        return found[0] if found else None

    return find


def _figure(step: str, name: str) -> Callable[[Growth], float | None]:
    return lambda each: each.steps.get(step, {}).get(name)


def _line(
    title: str, form: str, growth: Sequence[Growth], find: Callable[[Growth], float | None]
) -> list[str]:
    """A row with a cell for each length; an empty one where there is no figure."""
    found = (find(each) for each in growth)
    return [title, *("" if value is None else f"{value:{form}}" for value in found)]
