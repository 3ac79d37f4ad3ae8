"""Measure a log as a table in Spark, beside plain Parquet and DuckDB over the same files.

    python -m performance.table_in_spark [--messages 10000000] [--keys 10000] [--folder F] [--docs DIR]

It appends some messages of 100 bytes to a log in a SQLite file, and compacts it. The log that is read is
longer: it is written as compaction leaves it (`performance.generated_log`). It reads all columns, the sum of
the lengths of values, a count, and a range of one key, with the bytes that are read from files. It also
reads the log as a stream, and writes a frame into another log. Spark runs in one process with two threads
(`local[2]`). `--docs` writes the page `table-in-spark.md`; `--folder` keeps the log for another run.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import click
import duckdb
import psutil
from pyspark.sql import DataFrame, SparkSession

from analysis.spark import start
from leaderless import open_log
from leaderless.core.headlog.records import HEAD
from leaderless.library.values import Value
from leaderless.spark import LeaderlessDataSource
from leaderless.spark.columns import SCHEMA
from leaderless.spark.predicate import Predicate, Range
from leaderless.spark.reading import read, snapshot_of
from leaderless.spark.settings import Place
from leaderless.spark.slices import slices
from leaderless.store.files import FolderFiles, files_of
from leaderless.store.options import StoreOptions
from performance import show_table, table_lines
from performance.generated_log import Shape, generate

BATCH = 8_000  # messages in a batch of the log: just below its size
WIDTH = 98  # of a value, 100 bytes as JSON
APPENDED = 400_000  # messages of what appends
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
MB = 1_000_000


class Row(NamedTuple):
    """One measurement."""

    what: str
    by: str
    seconds: float
    cpu_s: float
    messages: int
    read_mb: float | None = None

    @property
    def cells(self) -> list[str]:
        """As a row of the page."""
        read = "" if self.read_mb is None else f"{self.read_mb:.1f}"
        rate = f"{self.messages / max(self.cpu_s, 0.01):,.0f}"
        times = f"{self.seconds:.1f}", f"{self.cpu_s:.1f}"
        return [self.what, self.by, *times, f"{self.messages:,}", rate, read]


class Bench:
    """A log of `messages` messages of `keys` keys below `folder`, and the rows that were measured."""

    def __init__(self, folder: Path, messages: int, keys: int) -> None:
        self.url = f"sqlite:///{folder / 'log.db'}"
        self.place = Place(self.url, None, StoreOptions())
        self.folder, self.messages, self.keys = folder, messages, keys
        self.rows: list[Row] = []
        self.key = f"k{keys // 2:06}"

    def timed(self, what: str, by: str, messages: int, work: Callable[[], Any]) -> Any:
        """Do some work and note how long it took."""
        began, began_cpu = time.monotonic(), cpu_s()
        result = work()
        self.rows.append(Row(what, by, time.monotonic() - began, cpu_s() - began_cpu, messages))
        click.echo(" ".join(self.rows[-1].cells))
        return result

    # ------------------------------------------------------------ the log

    async def generate(self) -> None:
        """Write the log that is read, unless an earlier run has."""
        store = self.place.store()
        if await store.read(HEAD) is None:
            await generate(store, Shape(self.messages, self.keys, WIDTH, BATCH))
        await store.aclose()

    def appending(self) -> None:
        """Append to another log, and compact it."""
        shape = Shape(min(self.messages, APPENDED), self.keys, WIDTH, BATCH)
        url = f"sqlite:///{Path(tempfile.mkdtemp(dir=self.folder), 'log.db')}"

        async def fill() -> None:
            async with open_log(url, runs="parquet") as log:
                for number, first in enumerate(range(0, shape.messages, BATCH)):
                    records: list[tuple[str, Value]] = [*shape.records(first)]
                    await log.append_named("performance", number, records)

        async def compact() -> None:
            async with open_log(url, create=False) as log:
                await log.compact()

        self.timed("append", "the library", shape.messages, lambda: anyio.run(fill))
        self.timed("compact and merge", "the library", shape.messages, lambda: anyio.run(compact))

    @property
    def files(self) -> list[str]:
        """The Parquet files."""
        files = files_of(self.place.store())
        assert files is not None
        return [files.location(ref.path) for ref in snapshot_of(self.place).files]

    # ------------------------------------------------------------ readers

    def tables(self, spark: SparkSession) -> None:
        """The same questions to the data source, to plain Parquet and to DuckDB."""
        files = self.files
        plain = spark.read.parquet(*files)
        in_files = int(duckdb.read_parquet(files).aggregate("count(*)").fetchall()[0][0])
        self.timed("all columns", "the log", self.messages, lambda: _drain(self._log(spark)))
        self.timed("all columns", "spark.read.parquet", in_files, lambda: _drain(plain))
        narrow = self._log(spark, "value string")
        lengths = "sum(length(value)) AS length"
        self.timed(
            "sum of lengths", "the log", self.messages, lambda: narrow.selectExpr(lengths).collect()
        )
        self.timed(
            "sum of lengths",
            "spark.read.parquet",
            in_files,
            lambda: plain.selectExpr(lengths).collect(),
        )
        self.timed("sum of lengths", "DuckDB", in_files, lambda: _duck(f"SELECT {lengths}", files))
        counted = self._log(spark, "offset bigint")
        self.timed("count", "the log", self.messages, counted.count)
        self.timed("count", "spark.read.parquet", in_files, plain.count)
        self.timed("count", "DuckDB", in_files, lambda: _duck("SELECT count(*)", files))
        self._range(spark, plain, files)

    def _range(self, spark: SparkSession, plain: DataFrame, files: list[str]) -> None:
        """A range of one key."""
        last = self.messages // self.keys // 2
        where = f"key = '{self.key}' AND \"offset\" < {last}"
        asked = where.replace('"', "`")
        self.timed("a range of one key", "the log", last, self._log(spark).where(asked).collect)
        self.timed("a range of one key", "spark.read.parquet", last, plain.where(asked).collect)
        query = f"SELECT * FROM read_parquet({files}) WHERE {where}"
        self.timed("a range of one key", "DuckDB", last, lambda: _asked(query))

    def bytes_read(self) -> None:
        """Bytes from files, of the same reads in this process."""
        one = (
            Predicate()
            .with_keys([self.key])
            .within("offset", Range(last=self.messages // self.keys // 2 - 1))
        )
        for what, predicate, names in [
            ("all columns", Predicate(), SCHEMA.names),
            ("count", Predicate(), ["offset"]),
            ("a range of one key", one, SCHEMA.names),
        ]:
            with counted_bytes() as counted:
                parts = slices(snapshot_of(self.place), predicate)
                began, began_cpu = time.monotonic(), cpu_s()
                rows = sum(
                    batch.num_rows
                    for part in parts
                    for batch in read(self.place, part, predicate, names)
                )
                took, took_cpu = time.monotonic() - began, cpu_s() - began_cpu
            reader, read_mb = "a task's reader alone", sum(counted) / MB
            self.rows.append(Row(what, reader, took, took_cpu, rows, read_mb))
            click.echo(" ".join(self.rows[-1].cells))

    def stream(self, spark: SparkSession) -> None:
        """The whole log as a stream."""
        source = spark.readStream.format("leaderless").option("maxRecordsPerBatch", 500_000)
        checkpoint = tempfile.mkdtemp(dir=self.folder)
        sink = (
            source.load(self.url)
            .writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
        )

        def run() -> None:
            sink.trigger(availableNow=True).start().awaitTermination()

        self.timed("stream", "the log", self.messages, run)

    def sink(self, spark: SparkSession) -> None:
        """A frame into a new log."""
        messages = min(self.messages, APPENDED)
        frame = spark.range(messages).selectExpr(
            f"format_string('k%06d', id % {self.keys}) AS key", f"lpad(id, {WIDTH}, '0') AS value"
        )
        target = f"sqlite:///{Path(tempfile.mkdtemp(dir=self.folder), 'log.db')}"
        writer = frame.write.format("leaderless").mode("append").option("values", "text")
        self.timed("sink", "the log", messages, lambda: writer.save(target))

    def _log(self, spark: SparkSession, columns: str | None = None) -> DataFrame:
        reader = spark.read.format("leaderless")
        return (reader.schema(columns) if columns else reader).load(self.url)


def cpu_s() -> float:
    """The CPU time that this process and all below it have taken, Java and Spark's workers too."""
    total = 0.0
    this = psutil.Process()
    for process in (this, *this.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])  # of its own, and of its children that have ended
    return total


@contextmanager
def counted_bytes() -> Iterator[list[int]]:
    """The bytes of each range that is read from files of this process."""
    plain = FolderFiles.read_range
    counted: list[int] = []

    def read_range(self: FolderFiles, path: str, start: int, length: int) -> bytes:
        content = plain(self, path, start, length)
        counted.append(len(content))
        return content

    FolderFiles.read_range = read_range  # type: ignore[method-assign]
    try:
        yield counted
    finally:
        FolderFiles.read_range = plain  # type: ignore[method-assign]


def _drain(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _duck(question: str, files: list[str]) -> list[Any]:
    return _asked(f"{question} FROM read_parquet({files})")


def _asked(query: str) -> list[Any]:
    answer = duckdb.sql(query)
    assert answer is not None
    return answer.fetchall()


COLUMNS = ["what", "by", "s", "CPU s", "messages", "messages a CPU second", "MB read from files"]


def page(bench: Bench, size_mb: float) -> str:
    """The page of documents."""
    command = (
        f"python -m performance.table_in_spark --messages {bench.messages} --keys {bench.keys}"
    )
    load = os.getloadavg()[2]
    lines = [
        "# A log as a table: figures",
        "",
        f"Written by `{command}`: {bench.messages:,} messages of 100 bytes",
        f"and {bench.keys:,} keys, in {len(bench.files)} Parquet files of {size_mb:.0f} MB together.",
        "Spark is one process with two threads. [table-in-spark](../table-in-spark.md) says how to use it.",
        "",
        "CPU seconds are those of Java, Python and Spark's workers together. They hold on a machine that is",
        "busy with other work, too, where the seconds on the clock say little. At the end",
        f"{load:.0f} processes wanted one of its {os.cpu_count()} cores, on average over 15 minutes.",
        "",
        "The log that is read was not appended. Its files and registers were written by the functions of",
        "compaction, as it would leave them, with the newest messages in segments.",
        "",
        *table_lines(COLUMNS, [row.cells for row in bench.rows]),
        "",
    ]
    return "\n".join(lines)


@click.command(help=__doc__)
@click.option("--messages", default=10_000_000, show_default=True)
@click.option("--keys", default=10_000, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path))
@click.option("--docs", type=click.Path(path_type=Path, exists=True))
def main(messages: int, keys: int, folder: Path | None, docs: Path | None) -> None:
    """Measure, and show or write the page."""
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        bench = Bench(place, messages, keys)
        bench.appending()
        bench.timed(
            "write files", "functions of compaction", messages, lambda: anyio.run(bench.generate)
        )
        if not bench.files:
            raise click.ClickException("so few messages fill no file: ask for 200000 or more")
        bench.bytes_read()
        spark = start("local[2]")
        try:
            spark.dataSource.register(LeaderlessDataSource)
            spark.conf.set(PUSHDOWN, "true")
            spark.range(1000).write.format("noop").mode("overwrite").save()  # warm
            bench.tables(spark)
            bench.stream(spark)
            bench.sink(spark)
        finally:
            spark.stop()
        size_mb = sum(Path(file).stat().st_size for file in bench.files) / MB
        show_table(COLUMNS, [row.cells for row in bench.rows])
        if docs:
            Path(docs, "table-in-spark.md").write_text(page(bench, size_mb), encoding="utf-8")


if __name__ == "__main__":
    main()
