"""Readers of a log are asked in turn (`performance.table_in_spark`)."""

import statistics
from collections.abc import Callable, Iterator
from functools import partial

import click
from pyspark.sql import SparkSession

from leaderless.spark.predicate import Predicate, Range
from leaderless.spark.reading import read, snapshot_of
from leaderless.spark.slices import slices
from performance.memory import MB, java_read_mb
from performance.table_costs import Cost, costed, counted_bytes, counting_reads
from performance.table_logs import TableLog
from performance.table_page import Row
from performance.table_readers import (
    COUNT,
    DUCK,
    LENGTH,
    PLAIN,
    RANGE,
    READ_LOG,
    READY,
    Question,
    duck,
    frames,
    questions,
)

Asked = tuple[str, str]  # a question and a reader
TASKS = "the data source's tasks alone"


def tables(spark: SparkSession, log: TableLog, rounds: int, *, ready: bool) -> list[Row]:
    """Every question to every reader, round by round, every other round backwards.

    `ready`: also to the source without work.
    """
    left_out = {(RANGE, READY)} if ready else {(each.name, READY) for each in _questions(log)}
    asks = {asked: ask for asked, ask in _asks(spark, log).items() if asked not in left_out}
    costs = _costs(asks, rounds)
    read_mb = {
        asked: _read_mb(spark, asks[asked]) for asked in asks if asked[1] in (PLAIN, READ_LOG)
    }
    rows = [_row(log, asked, cost, read_mb.get(asked)) for asked, cost in costs.items()]
    return [*rows, *_by_tasks(log)]


def sums(spark: SparkSession, log: TableLog) -> list[Row]:
    """Count and sum of lengths, once, by Spark's own reader and by `read_log`: for the longest log."""
    asks = {
        (question, reader): ask
        for (question, reader), ask in _asks(spark, log).items()
        if question in (COUNT, LENGTH) and reader in (PLAIN, READ_LOG, DUCK)
    }
    return [_row(log, asked, cost, None) for asked, cost in _costs(asks, 1).items()]


def _questions(log: TableLog) -> list[Question]:
    return questions(log.key, log.last)


def _asks(spark: SparkSession, log: TableLog) -> dict[Asked, Callable[[], object]]:
    asks: dict[Asked, Callable[[], object]] = {}
    for question in _questions(log):
        for name, frame in frames(spark, log.url, log.files, log.messages).items():
            asks[question.name, name] = partial(_ask, question, frame)
        asks[question.name, DUCK] = duck(question, log.files, log.key, log.last)
    return asks


def _ask(question: Question, frame: Callable[[Question], object]) -> None:
    question.ask(frame(question))  # type: ignore[arg-type]


def _costs(asks: dict[Asked, Callable[[], object]], rounds: int) -> dict[Asked, Cost]:
    """What each of them costs, the median of the rounds."""
    costs: dict[Asked, list[Cost]] = {asked: [] for asked in asks}
    for number in range(rounds):
        for asked in [*asks][:: -1 if number % 2 else 1]:
            cost = costed(asks[asked])
            costs[asked].append(cost)
            times = f"{cost.seconds:.2f} s, {cost.cpu_s:.2f} CPU s"
            click.echo(f"  round {number}: {asked[0]} by {asked[1]}: {times}")
    return {asked: _median(found) for asked, found in costs.items()}


def _median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(each) for each in zip(*costs, strict=True)))


def _read_mb(spark: SparkSession, ask: Callable[[], object]) -> float:
    """What Java reads from files for a question that it is asked once more."""
    with counting_reads(spark):
        before = java_read_mb(spark)
        ask()
        return java_read_mb(spark) - before


def _row(log: TableLog, asked: Asked, cost: Cost, read_mb: float | None) -> Row:
    question, reader = asked
    messages = log.in_files if reader in (PLAIN, DUCK) else log.messages
    return Row(question, reader, cost, log.last if question == RANGE else messages, read_mb)


def _by_tasks(log: TableLog) -> Iterator[Row]:
    """The same reads by the data source's tasks in this process, with the bytes that they read."""
    one = Predicate().with_keys([log.key]).within("offset", Range(last=log.last - 1))
    for question in _questions(log):
        predicate = one if question.name == RANGE else Predicate()
        names = [column.split()[0] for column in question.columns.split(", ")]
        with counted_bytes() as counted:
            cost = costed(partial(_read_slices, log, predicate, names))
        messages = log.last if question.name == RANGE else log.messages
        yield Row(question.name, TASKS, cost, messages, sum(counted) / MB)


def _read_slices(log: TableLog, predicate: Predicate, names: list[str]) -> None:
    for part in slices(snapshot_of(log.place), predicate):
        for _ in read(log.place, part, predicate, names):
            pass
