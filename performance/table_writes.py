"""Streams from a log, and writes into one (`performance.table_in_spark`)."""

import tempfile
from functools import partial
from pathlib import Path

import anyio
import click
from pyspark.sql import DataFrame, SparkSession

from leaderless import open_log
from leaderless.store.values import Value
from performance.table_costs import Cost, costed
from performance.table_logs import WIDTH, TableLog
from performance.table_page import Row
from performance.table_readers import SOURCE

APPENDED = 400_000  # messages of what appends
TIMES = 3  # the last one counts: Java compiles meanwhile


def stream(spark: SparkSession, log: TableLog, rows_max: int | None) -> Row:
    """The whole log as a stream, in micro-batches of about `rows_max` messages, or in one."""
    costs = [costed(partial(_stream, spark, log, rows_max)) for _ in range(TIMES)]
    limit = "all that there is" if rows_max is None else f"maxRecordsPerBatch {rows_max:,}"
    return Row(f"stream, {limit}", SOURCE, _last(costs), log.messages)


def _stream(spark: SparkSession, log: TableLog, rows_max: int | None) -> None:
    source = spark.readStream.format("leaderless")
    if rows_max:
        source = source.option("maxRecordsPerBatch", rows_max)
    sink = source.load(log.url).writeStream.format("noop")
    with tempfile.TemporaryDirectory(dir=log.folder) as checkpoint:
        sink = sink.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        sink.start().awaitTermination()


def sink(spark: SparkSession, log: TableLog) -> Row:
    """A frame into a new log, by a task for each core."""
    messages = min(log.messages, APPENDED)
    frame = spark.range(messages).selectExpr(
        f"format_string('k%06d', id % {log.keys}) AS key", f"lpad(id, {WIDTH}, '0') AS value"
    )
    costs = [costed(partial(_write, frame, new_url(log.folder))) for _ in range(TIMES)]
    return Row("sink", SOURCE, _last(costs), messages)


def _write(frame: DataFrame, url: str) -> None:
    frame.write.format("leaderless").mode("append").option("values", "text").save(url)


def _last(costs: list[Cost]) -> Cost:
    for cost in costs:
        click.echo(f"  {cost.seconds:.2f} s, {cost.cpu_s:.2f} CPU s")
    return costs[-1]


def appending(log: TableLog) -> Row:
    """Append messages of a log to another one by the library alone, and compact that."""
    shape = log.shape._replace(messages=min(log.messages, APPENDED))
    url = new_url(log.folder)

    async def fill() -> None:
        async with open_log(url, runs="parquet") as target:
            for number in range(shape.batches):
                records: list[tuple[str, Value]] = [*shape.records(number * shape.batch)]
                await target.append_named("performance", number, records)
            await target.compact()

    return Row(
        "append and compact", "the library", costed(partial(anyio.run, fill)), shape.messages
    )


def new_url(folder: Path) -> str:
    """The store of a log that is not there yet."""
    return f"sqlite:///{Path(tempfile.mkdtemp(dir=folder), 'log.db')}"
