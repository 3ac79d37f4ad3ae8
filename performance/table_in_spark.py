"""Measure a log as a table in Spark, beside plain Parquet and DuckDB over the same files.

    python -m performance.table_in_spark [--messages 1000000,10000000] [--sums 100000000] [--docs DIR]

The logs that are read are written as compaction leaves them (`performance.compacted_log`), with messages of 100
bytes; `--folder` keeps them for another run. Each question (`performance.table_readers`) is asked of each
reader in turn, in `--rounds` rounds, so that readers stand side by side; figures are medians. One round on the
shortest log goes before, and does not count: Java compiles meanwhile. The shortest log is also read as a
stream, and a frame is written into a new log. Of logs of the length `--sums` only count and sum of lengths
are asked. What needs a new process stands in `performance.table_steps`. Spark runs in one process with two
threads (`local[2]`).

A step that fails is named at the end of the page, and the others go on. `--docs` writes the page
`table-in-spark.md`, again after each log.
"""

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import click
import duckdb
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from analysis.errors import AnalysisError
from analysis.failures import is_slow_start
from analysis.spark import session
from leaderless.errors import LogError
from leaderless.spark import LeaderlessDataSource
from leaderless.store.files import FolderFiles
from leaderless.table.manifest import Merged
from performance.compacted_log import upkept_of, write_merged
from performance.table_costs import Cost, costed
from performance.table_logs import TableLog
from performance.table_page import Figures, Growth, Row, page
from performance.table_readers import Ready
from performance.table_rounds import sums, tables
from performance.table_steps import in_a_process
from performance.table_writes import appending, sink, stream

TRIES = 3  # of a step for which a Python process of Spark was slow to start
LIMITS = (None, 100_000)  # of a micro-batch, in messages
T = TypeVar("T")
FAILURES = (
    AnalysisError, LogError, PySparkException, Py4JError, duckdb.Error, OSError,
    subprocess.SubprocessError,
)  # fmt: skip


class Steps:
    """Steps, each of which may fail alone. `failed`: those that have, and why."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def run(self, name: str, work: Callable[[], T]) -> T | None:
        """What a step finds; None if it fails."""
        for left in reversed(range(TRIES)):
            began = time.monotonic()
            click.echo(f"{name} ...")
            try:
                found = work()
            except FAILURES as error:
                if left and is_slow_start(error):
                    click.echo("  a Python process of Spark was slow to start: once more")
                    continue
                why = str(error).strip().partition("\n")[0]
                self.failed.append(f"{name}: {type(error).__name__}: {why}")
                click.echo(f"  failed: {error}")
                return None
            click.echo(f"  {time.monotonic() - began:.1f} s")
            return found
        return None


class Bench:
    """What is measured of some logs, step by step. `others`: rows that are of no log's readers."""

    def __init__(self, logs: list[TableLog], longest: list[TableLog], rounds: int) -> None:
        self.logs, self.longest, self.rounds = logs, longest, rounds
        self.steps = Steps()
        self.others: list[Row] = []
        self.growth: list[Growth] = []

    @property
    def command(self) -> str:
        """What measures the logs that were measured so far."""
        done = {each.messages for each in self.growth}
        some, longest = (
            ",".join(str(log.messages) for log in logs if log.messages in done)
            for logs in (self.logs, self.longest)
        )
        text = f"python -m performance.table_in_spark --messages {some}"
        return f"{text} --sums {longest}" if longest else text

    def measure(self) -> Iterator[None]:
        """Measure; yields after each log."""
        shortest = self.logs[0]
        generated = [self._generated(log) for log in self.logs]
        appended = self.steps.run("append", partial(appending, shortest))
        with session("local[2]") as spark:
            self._prepare(spark, partial(tables, spark, shortest, 1, ready=True))
            self._append(spark, shortest)
            self.others += [appended] if appended else []
            for log, cost in zip(self.logs, generated, strict=True):
                ask = partial(tables, spark, log, self.rounds, ready=log is shortest)
                self._add(log, cost, ask)
                yield
        for growth, log in zip(self.growth, self.logs, strict=True):
            self._in_processes(growth, log)
            yield
        for log in self.longest:
            cost = self._generated(log)
            with session("local[2]") as spark:
                self._prepare(spark, partial(sums, spark, shortest))
                self._add(log, cost, partial(sums, spark, log))
            self._in_processes(self.growth[-1], log)
            yield

    def _generated(self, log: TableLog) -> Cost:
        return self.steps.run(f"generate {log.messages:,}", lambda: costed(log.generate)) or Cost(
            0, 0
        )

    def _prepare(self, spark: SparkSession, warm_up: Callable[[], object]) -> None:
        spark.dataSource.register(LeaderlessDataSource)
        spark.dataSource.register(Ready)
        self.steps.run("warm up", warm_up)

    def _append(self, spark: SparkSession, shortest: TableLog) -> None:
        """Streams and writes."""
        found = [self.steps.run("sink", lambda: sink(spark, shortest))]
        for limit in LIMITS:
            work = partial(stream, spark, shortest, limit)
            found.append(self.steps.run(f"stream, at most {limit}", work))
        self.others += [row for row in found if row]

    def _add(self, log: TableLog, generated: Cost, ask: Callable[[], list[Row]]) -> None:
        rows = self.steps.run(f"read {log.messages:,}", ask) or []
        self.growth.append(Growth(log.messages, log.sizes(), rows, generated))

    def _in_processes(self, growth: Growth, log: TableLog) -> None:
        """The steps that need a process each."""
        works: dict[str, Callable[[], Figures]] = {
            "first": lambda: in_a_process("first", log.url),
            "open": lambda: in_a_process("open", log.url, log.key),
        }
        if some := upkept_of(log.shape).biggest:
            works["merge"] = lambda: merge_again(log, some)
        for name, work in works.items():
            found = self.steps.run(f"{name} {log.messages:,} in a new process", work)
            growth.steps |= {name: found} if found else {}


def merge_again(log: TableLog, some: list[Merged]) -> Figures:
    """Make files again that were merged on the way to a log, and merge them."""
    with tempfile.TemporaryDirectory(dir=log.folder) as folder:
        files = FolderFiles(Path(folder))
        for file in some:
            write_merged(files, log.shape, file._replace(path=f"{file.first:09}.parquet"))
        return in_a_process("merge", folder)


def lengths(text: str) -> list[int]:
    """Numbers with commas between them."""
    return sorted(map(int, filter(None, text.split(","))))


@click.command(help=__doc__)
@click.option("--messages", default="1000000,10000000", show_default=True)
@click.option("--sums", default="", help="Further lengths, of which only sums are asked.")
@click.option("--keys", default=10_000, show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path))
@click.option("--docs", type=click.Path(path_type=Path, exists=True))
def main(
    *, messages: str, sums: str, keys: int, rounds: int, folder: Path | None, docs: Path | None
) -> None:
    """Measure, and show or write the page."""
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        some, longest = (
            [TableLog(place / str(each), each, keys) for each in lengths(text)]
            for text in (messages, sums)
        )
        bench = Bench(some, longest, rounds)
        text = ""
        for _ in bench.measure():
            command = f"{bench.command} --keys {keys} --rounds {rounds}"
            text = page(command, bench.growth, bench.others, bench.steps.failed)
            if docs:
                Path(docs, "table-in-spark.md").write_text(text, encoding="utf-8")
        click.echo(text)


if __name__ == "__main__":
    main()
