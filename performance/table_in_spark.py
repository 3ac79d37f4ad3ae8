"""Measure a log as a table in Spark, beside plain Parquet and DuckDB over the same files.

    python -m performance.table_in_spark [--messages 1000000,10000000] [--rounds 2] [--docs DIR]

The logs are as appends and compaction leave them (`performance.generated_log`). `--folder` keeps them for
another run. Each question is asked of each reader in turn, in `--rounds` rounds after one that does not count,
because Java compiles meanwhile; figures are medians. The shortest log is also read as a stream, and a frame is
written into a new log. Spark runs in one process with two threads (`local[2]`).

`--docs` writes the page `table-in-spark.md`.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, NamedTuple

import anyio
import click
import duckdb
import psutil
from pyspark.sql import DataFrame, SparkSession

from analysis.spark import session
from leaderless.spark import LeaderlessDataSource, read_log
from leaderless.spark.columns import SCHEMA
from leaderless.spark.reading import snapshot_of
from leaderless.spark.settings import Place
from leaderless.store.files import files_of
from leaderless.store.options import StoreOptions
from performance.generated_log import WIDTH, Shape, generated
from performance.harness import (
    APage,
    everything,
    highest_mb,
    in_turn,
    peak_mb,
    program,
    show,
    table_lines,
    write_page,
)

EVERY, LENGTH, COUNT, RANGE = "all columns", "sum of lengths", "count", "a range of one key"
READ_LOG, SOURCE, PLAIN, DUCK = "read_log", "the data source", "spark.read.parquet", "DuckDB"
WHERE, PLAIN_WRITE = "the data source by where", "DataFrame.write.parquet"
LENGTHS = "sum(length(value)) AS length"
ALL_COLUMNS = (
    "key string, offset bigint, value string, bytes binary, writer string, seq bigint, slot bigint, "
    "appended_at timestamp"
)
WRITTEN = 400_000  # messages of the sink
TITLES = ("what", "by", "s", "CPU s", "messages a CPU second", f"of {PLAIN}'s rate")
ABOUT = """\
Written by `{command}`.

Messages have 100 bytes. Spark is one process with two threads, `local[2]`
([how to use it](../table-in-spark.md)). CPU seconds are those of Java, Python and Spark's workers, medians
of {rounds} rounds. Plain Parquet and DuckDB do not see the newest messages. Memory is a process's highest."""


class Question(NamedTuple):
    """What is asked, the columns that it needs, and the options by which the data source reads no more."""

    name: str
    columns: str
    ask: Callable[[DataFrame], object]
    options: Mapping[str, str | int] = MappingProxyType({})


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

    @property
    def rate(self) -> float:
        """Messages a CPU second."""
        return self.messages / max(self.cost.cpu_s, 0.01)


class TableLog:
    """A log of `messages` messages of `keys` keys in a folder, written unless an earlier run has.

    The question for a range of one key asks for the records of `key` below offset `last`.
    """

    def __init__(self, folder: Path, messages: int, keys: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.url = f"sqlite:///{folder / 'log.db'}"
        self.folder, self.messages, self.shape = folder, messages, Shape(messages, keys)
        self.key, self.last = self.shape.key(keys // 2), messages // keys // 2
        anyio.run(generated, self.url, self.shape)
        place = Place(self.url, None, StoreOptions())
        files, refs = files_of(place.store()), snapshot_of(place).files
        if files is None or not refs:
            raise click.ClickException("so few messages fill no file: ask for 700000 or more")
        self.files = [files.location(ref.path) for ref in refs]
        self.in_files = min(refs[-1].end * self.shape.batch, messages)


# ------------------------------------------------------------ readers and writers


def drain(frame: DataFrame) -> None:
    """Read every row of a frame, and keep none."""
    frame.write.format("noop").mode("overwrite").save()


def questions(log: TableLog) -> list[Question]:
    """The questions; the last one is for the records of a key below an offset."""
    where = f"key = '{log.key}' AND `offset` < {log.last}"
    narrow: Mapping[str, str | int] = {"keys": log.key, "endOffset": log.last}
    return [
        Question(EVERY, ALL_COLUMNS, drain),
        Question(LENGTH, "value string", lambda frame: frame.selectExpr(LENGTHS).collect()),
        Question(COUNT, "offset bigint", lambda frame: frame.count()),
        Question(RANGE, ALL_COLUMNS, lambda frame: frame.where(where).collect(), narrow),
    ]


def readers(
    spark: SparkSession, log: TableLog, question: Question
) -> dict[str, Callable[[], object]]:
    """How each reader answers."""

    def source(options: Mapping[str, str | int]) -> object:
        reader = spark.read.format("leaderless").schema(question.columns)
        return question.ask(reader.options(**options).load(log.url))

    def duck() -> None:
        what = {LENGTH: LENGTHS, COUNT: "count(*)"}.get(question.name, "*")
        where = f" WHERE key = '{log.key}' AND \"offset\" < {log.last}"
        where = where if question.name == RANGE else ""
        found = duckdb.sql(f"SELECT {what} FROM read_parquet({log.files}){where}")
        assert found is not None, "a SELECT has an answer"
        for _ in found.to_arrow_reader(32_000):
            pass

    by_where = {WHERE: partial(source, {})} if question.options else {}
    return by_where | {
        READ_LOG: lambda: question.ask(read_log(spark, log.url)),
        SOURCE: partial(source, question.options),
        PLAIN: lambda: question.ask(spark.read.parquet(*log.files).select(*SCHEMA.names)),
        DUCK: duck,
    }


def answered(spark: SparkSession, log: TableLog, rounds: int) -> list[Row]:
    """Every question to every reader in turn; the first round does not count."""
    works = {
        (question.name, by): partial(costed, ask)
        for question in questions(log)
        for by, ask in readers(spark, log, question).items()
    }
    rows = []
    for (what, by), found in in_turn(works, 1 + rounds).items():
        cost = median_cost(found)
        whole = log.in_files if by in (PLAIN, DUCK) else log.messages
        rows.append(Row(what, by, cost, log.last if what == RANGE else whole))
    return rows


def stream(spark: SparkSession, log: TableLog) -> None:
    """Read the whole log as a stream."""
    source = spark.readStream.format("leaderless").load(log.url)
    with tempfile.TemporaryDirectory(dir=log.folder) as checkpoint:
        sink = source.writeStream.format("noop").option("checkpointLocation", checkpoint)
        sink.trigger(availableNow=True).start().awaitTermination()


def write(spark: SparkSession, log: TableLog, *, plain: bool) -> None:
    """Write a frame into a new log, or into plain Parquet files, by a task for each core."""
    key = f"format_string('k%06d', id % {log.shape.keys}) AS key"
    frame = spark.range(WRITTEN).selectExpr(key, f"lpad(id, {WIDTH}, '0') AS value")
    with tempfile.TemporaryDirectory(dir=log.folder) as folder:
        if plain:
            frame.write.parquet(f"{folder}/plain")
            return
        writer = frame.write.format("leaderless").mode("append").option("values", "text")
        writer.save(f"sqlite:///{folder}/log.db")


# ------------------------------------------------------------ costs


def costed(work: Callable[[], object]) -> Cost:
    """Do some work and say what it took."""
    began, began_cpu = time.monotonic(), cpu_s()
    work()
    return Cost(time.monotonic() - began, cpu_s() - began_cpu)


def median_cost(found: Sequence[Cost]) -> Cost:
    """The medians of what some rounds took; the first one does not count."""
    return Cost(*map(statistics.median, zip(*found[1:], strict=True)))


_of_forks: dict[tuple[int, float], float] = {}  # CPU s of each that was ever seen


def cpu_s() -> float:
    """The CPU time that this process and all below it have taken, Java and Spark's workers too.

    A worker of Spark is a fork of a daemon, which does not wait for it. No time counts the CPU seconds of a
    worker that has ended; so those that it had last are kept here.
    """
    total = 0.0
    for process in everything():
        with suppress(psutil.NoSuchProcess):
            times, parent = process.cpu_times(), process.parent()
            if parent is not None and parent.cmdline() == process.cmdline():
                _of_forks[process.pid, process.create_time()] = times.user + times.system
            else:  # of its own, and of its children that have ended
                total += sum(times[:4])
    return total + sum(_of_forks.values())


# ------------------------------------------------------------ the page


def section(log: TableLog, rows: Sequence[Row]) -> Iterator[str]:
    """The answers about a log."""
    size = sum(Path(file).stat().st_size for file in log.files)
    yield f"## {log.messages:,} messages in {len(log.files)} files of {size / 1e6:.0f} MB\n"
    yield from table_lines(TITLES, (cells(row, rows) for row in rows))
    java, worker, own = highest_mb("java"), highest_mb("python"), peak_mb(os.getpid())
    yield f"\nMemory: Java {java:.0f} MB, the driver's Python {own:.0f} MB, a Python worker {worker:.0f} MB.\n"


def cells(row: Row, rows: Sequence[Row]) -> list[str]:
    """A line of the table."""
    plain = [each.rate for each in rows if (each.what, each.by) == (row.what, PLAIN)]
    share = f"{row.rate / plain[0]:.2f}" if plain else ""
    seconds = (f"{each:.1f}" for each in row.cost)
    return [row.what, row.by, *seconds, f"{row.rate:,.0f}", share]


def page(logs: Sequence[TableLog], rounds: int) -> Iterator[str]:
    """The lines of the page, as they are measured."""
    with session("local[2]") as spark:
        spark.dataSource.register(LeaderlessDataSource)
        for log in logs:
            yield from section(log, answered(spark, log, rounds))
        shortest = logs[0]
        works: dict[tuple[str, str, int], Callable[[], Cost]] = {
            ("stream", SOURCE, shortest.messages): partial(
                costed, partial(stream, spark, shortest)
            ),
            ("sink", SOURCE, WRITTEN): partial(
                costed, partial(write, spark, shortest, plain=False)
            ),
            ("sink", PLAIN_WRITE, WRITTEN): partial(
                costed, partial(write, spark, shortest, plain=True)
            ),
        }
        yield "## Streams and writes\n\nMedians, after a round that does not count.\n"
        rows = [
            Row(what, by, median_cost(found), messages)
            for (what, by, messages), found in in_turn(works, 1 + rounds).items()
        ]
        yield from table_lines(TITLES[:-1], (cells(row, [])[:-1] for row in rows))


@program
def main(
    *,
    messages: str = "1000000,10000000",
    keys: int = 10_000,
    rounds: int = 2,
    folder: Annotated[Path | None, click.Path(path_type=Path)] = None,
    docs: APage = None,
) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        lengths = sorted(map(int, messages.split(",")))
        place = folder or Path(temporary)
        lines = show(page([TableLog(place / str(each), each, keys) for each in lengths], rounds))
    if docs:
        command = f"python -m performance.table_in_spark --messages {messages} --keys {keys} --rounds {rounds}"
        about = ABOUT.format(command=command, rounds=rounds)
        write_page(
            docs / "table-in-spark.md", "A log as a table: figures", "\n".join([about, "", *lines])
        )


if __name__ == "__main__":
    main()
