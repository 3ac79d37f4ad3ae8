"""Measure a log as a table in Spark, beside plain Parquet and DuckDB over the same files.

    python -m performance.table_in_spark [--messages 1000000,10000000] [--keys 10000] [--folder F] [--docs DIR]

The logs that are read are written as compaction leaves them (`performance.generated_log`), with messages of 100
bytes; `--folder` keeps them for another run. Each question (`performance.table_readers`) is asked of each
reader in turn, in `--rounds` rounds, so that readers stand side by side; figures are medians. One round on the
shortest log goes before, and does not count: Java compiles meanwhile. The shortest log is also read as a
stream, and a frame is written into a new log. Spark runs in one process with two threads (`local[2]`). `--docs`
writes the page `table-in-spark.md`, again after each log.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import click
import psutil
from pyspark.sql import SparkSession

from analysis.spark import start
from leaderless import open_log
from leaderless.core.headlog.records import HEAD, merge
from leaderless.spark import LeaderlessDataSource
from leaderless.spark.predicate import Predicate, Range
from leaderless.spark.reading import read, snapshot_of
from leaderless.spark.settings import Place
from leaderless.spark.slices import slices
from leaderless.store.files import FolderFiles, files_of
from leaderless.store.options import StoreOptions
from leaderless.store.registers import canonical
from leaderless.store.values import Value
from performance.generated_log import SEGMENTS_PER_RUN, Shape, generate
from performance.memory import MB, java_heap_mb, java_read_mb, peak_mb
from performance.table_page import Cost, Growth, Row, page
from performance.table_readers import EVERY, Question, Ready, duck, frames, questions
from performance.table_steps import in_a_process

BATCH = 8_000  # messages in a batch of the log: just below its size
WIDTH = 98  # of a value, 100 bytes as JSON
APPENDED = 400_000  # messages of what appends
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


class Bench:
    """A log of `messages` messages of `keys` keys below `folder`."""

    def __init__(self, folder: Path, messages: int, keys: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.url = f"sqlite:///{folder / 'log.db'}"
        self.place = Place(self.url, None, StoreOptions())
        self.folder, self.messages, self.keys = folder, messages, keys
        self.shape = Shape(messages, keys, WIDTH, BATCH)
        self.key, self.last = f"k{keys // 2:06}", messages // keys // 2

    def ready(self) -> "Bench":
        """This, with its log."""
        anyio.run(self.generate)
        if not self.files:
            raise click.ClickException("so few messages fill no file: ask for 200000 or more")
        return self

    async def generate(self) -> None:
        """Write the log that is read, unless an earlier run has."""
        store = self.place.store()
        if await store.read(HEAD) is None:
            await generate(store, self.shape)
        await store.aclose()

    @property
    def files(self) -> list[str]:
        """The Parquet files."""
        files = files_of(self.place.store())
        assert files is not None
        return [files.location(ref.path) for ref in snapshot_of(self.place).files]

    @property
    def in_files(self) -> int:
        """The messages in files."""
        return min(self.messages, snapshot_of(self.place).files[-1].end * BATCH)

    def json_mb(self) -> float:
        """What the files would take as runs of JSON, by the first of them."""
        run = merge([self.shape.segment(number) for number in range(SEGMENTS_PER_RUN)])
        size = len(canonical(run.value)) / (SEGMENTS_PER_RUN * BATCH)
        return size * self.in_files / MB

    # ------------------------------------------------------------ tables

    def tables(self, spark: SparkSession, rounds: int) -> list[Row]:
        """Every question to every reader, round by round."""
        costs: dict[tuple[str, str], list[Cost]] = {}
        read_mb: dict[tuple[str, str], float] = {}
        for number in range(rounds):
            for question in questions(self.key, self.last):
                for name, ask in self._asked(spark, question):
                    before = java_read_mb(spark)
                    cost = costed(ask)
                    costs.setdefault((question.name, name), []).append(cost)
                    read_mb[question.name, name] = java_read_mb(spark) - before
                    click.echo(f"round {number} {question.name}, {name}: {cost.cpu_s:.2f} CPU s")
        rows = [
            self._row(question, name, _median(found), read_mb[question, name])
            for (question, name), found in costs.items()
        ]
        return [*rows, *self._by_tasks()]

    def _asked(
        self, spark: SparkSession, question: Question
    ) -> Iterator[tuple[str, Callable[[], object]]]:
        for name, frame in frames(spark, self.url, self.files, self.messages).items():
            if name != "a source without work" or question.name != "a range of one key":
                yield name, lambda frame=frame: question.ask(frame(question))  # type: ignore[misc]
        if asked := duck(question, self.files, self.key, self.last):
            yield "DuckDB", asked

    def _row(self, question: str, reader: str, cost: Cost, read_mb: float) -> Row:
        only_files = reader in ("spark.read.parquet", "DuckDB")
        messages = self.in_files if only_files else self.messages
        if question == "a range of one key":
            messages = self.last
        shown = read_mb if reader == "spark.read.parquet" else None
        return Row(question, reader, cost, messages, shown)

    def _by_tasks(self) -> Iterator[Row]:
        """The same reads by the data source's tasks in this process, with the bytes that they read."""
        one = Predicate().with_keys([self.key]).within("offset", Range(last=self.last - 1))
        for question in questions(self.key, self.last):
            predicate = one if question.name == "a range of one key" else Predicate()
            names = [column.split()[0] for column in question.columns.split(", ")]
            counts: list[int] = []

            def ask(
                names: list[str] = names,
                predicate: Predicate = predicate,
                counts: list[int] = counts,
            ) -> None:
                for part in slices(snapshot_of(self.place), predicate):
                    counts += [batch.num_rows for batch in read(self.place, part, predicate, names)]

            with counted_bytes() as counted:
                cost = costed(ask)
            name = "the data source's tasks alone"
            yield Row(question.name, name, cost, sum(counts), sum(counted) / MB)

    def growth(self, spark: SparkSession, rows: list[Row]) -> Growth:
        """The figures that are to be compared with those of other lengths."""
        cost = {row.by: row.cost.cpu_s for row in rows if row.what == EVERY}
        size = sum(Path(file).stat().st_size for file in self.files) / MB
        return Growth(
            self.messages, len(self.files), size, self.json_mb(), cost,
            in_a_process("merge", self.url),
            java_heap_mb(spark), peak_mb(os.getpid()), workers_mb(),
        )  # fmt: skip

    # ------------------------------------------------------------ streams and writes

    def stream(self, spark: SparkSession) -> Row:
        """The whole log as a stream."""
        source = spark.readStream.format("leaderless").option("maxRecordsPerBatch", 500_000)
        checkpoint = tempfile.mkdtemp(dir=self.folder)
        sink = source.load(self.url).writeStream.format("noop")
        sink = sink.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        cost = costed(lambda: sink.start().awaitTermination())
        return Row("stream", "the data source", cost, self.messages)

    def sink(self, spark: SparkSession) -> Row:
        """A frame into a new log; the first time, for Java, does not count."""
        messages = min(self.messages, APPENDED)
        frame = spark.range(messages).selectExpr(
            f"format_string('k%06d', id % {self.keys}) AS key", f"lpad(id, {WIDTH}, '0') AS value"
        )
        writer = frame.write.format("leaderless").mode("append").option("values", "text")
        costs = [
            costed(lambda target=target: writer.save(target))  # type: ignore[misc]
            for target in (new_url(self.folder), new_url(self.folder))
        ]
        return Row("sink", "the data source", costs[-1], messages)

    def appending(self) -> list[Row]:
        """Append to another log, and compact it."""
        shape = self.shape._replace(messages=min(self.messages, APPENDED))
        url = new_url(self.folder)

        async def fill() -> None:
            async with open_log(url, runs="parquet") as log:
                for number, first in enumerate(range(0, shape.messages, BATCH)):
                    records: list[tuple[str, Value]] = [*shape.records(first)]
                    await log.append_named("performance", number, records)

        async def compact() -> None:
            async with open_log(url, create=False) as log:
                await log.compact()

        return [
            Row(what, "the library", costed(lambda work=work: anyio.run(work)), shape.messages)  # type: ignore[misc]
            for what, work in [("append", fill), ("compact and merge", compact)]
        ]


def new_url(folder: Path) -> str:
    """The store of a log that is not there yet."""
    return f"sqlite:///{Path(tempfile.mkdtemp(dir=folder), 'log.db')}"


def costed(work: Callable[[], object]) -> Cost:
    """Do some work and say what it took."""
    began, began_cpu = time.monotonic(), cpu_s()
    work()
    return Cost(time.monotonic() - began, cpu_s() - began_cpu)


def _median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(each) for each in zip(*costs, strict=True)))


def cpu_s() -> float:
    """The CPU time that this process and all below it have taken, Java and Spark's workers too."""
    total = 0.0
    for process in everything():
        with suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])  # of its own, and of its children that have ended
    return total


def everything() -> list[Any]:
    """This process and all below it."""
    this = psutil.Process()
    return [this, *this.children(recursive=True)]


def workers_mb() -> float:
    """The highest memory of a Python worker of Spark."""
    found = [0.0]
    for process in everything()[1:]:
        with suppress(psutil.NoSuchProcess, FileNotFoundError):
            if "python" in process.name():
                found.append(peak_mb(process.pid))
    return max(found)


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


class Measured(NamedTuple):
    """All that was measured: of the longest log, of the shortest one, and of logs of all lengths."""

    rows: list[Row]
    others: list[Row]
    growth: list[Growth]


def measure(spark: SparkSession, benches: list[Bench], rounds: int) -> Iterator[Measured]:
    """Measure logs, the shortest first; gives what is known after each of them."""
    spark.dataSource.register(LeaderlessDataSource)
    spark.dataSource.register(Ready)
    spark.conf.set(PUSHDOWN, "true")
    first = benches[0].ready()
    first.tables(spark, 1)  # Java compiles
    others = [first.sink(spark), first.stream(spark)]
    growth: list[Growth] = []
    for bench in benches:
        rows = bench.ready().tables(spark, rounds)
        growth.append(bench.growth(spark, rows))
        yield Measured(rows, others, growth)


@click.command(help=__doc__)
@click.option("--messages", default="1000000,10000000", show_default=True)
@click.option("--keys", default=10_000, show_default=True)
@click.option("--rounds", default=2, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path))
@click.option("--docs", type=click.Path(path_type=Path, exists=True))
def main(messages: str, keys: int, rounds: int, folder: Path | None, docs: Path | None) -> None:
    """Measure, and show or write the page."""
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        benches = [Bench(place / each, int(each), keys) for each in messages.split(",")]
        appended = benches[0].appending()
        spark = start("local[2]")
        try:
            for found in measure(spark, benches, rounds):
                lengths = ",".join(str(each.messages) for each in found.growth)
                command = f"python -m performance.table_in_spark --messages {lengths} --keys {keys}"
                text = page(
                    f"{command} --rounds {rounds}",
                    found.rows,
                    [*found.others, *appended],
                    found.growth,
                )
                click.echo(text)
                if docs:
                    Path(docs, "table-in-spark.md").write_text(text, encoding="utf-8")
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
