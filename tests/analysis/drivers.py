"""Drivers with a Spark of their own, which tests start and kill: `python -m tests.analysis.drivers WHAT ...`.

`copy URL CHECKPOINT [--end]` runs a query that copies a log into its topic `copy`; with `--end` it stops at
the end of the log.

`follow URL CHECKPOINT FILE` runs a stream that follows a log. It prints `ready`, waits for a line on its
standard input and then for the log, and writes what it sees into `FILE`: a line of JSON for each record,
`[key, offset, value]`, in the order of the stream. At the end of its input it reads to the end of the log, and
stops.

`load URL FORM` writes `ROWS` rows under one name. `FORM`: "rows"; "empty", when a filter has left none; or
"others", the same rows in another order and other tasks.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analysis.spark import start
from leaderless.errors import NotInitialised
from leaderless.spark import LeaderlessDataSource
from leaderless.spark.reading import snapshot_of
from leaderless.spark.settings import Place
from leaderless.store.options import StoreOptions

ROWS = 6_000
FORMS = {
    "rows": lambda frame: frame,
    "empty": lambda frame: frame.where("id < 0"),
    "others": lambda frame: frame.orderBy(F.desc("id")).repartition(3),
}


def copy(spark: SparkSession, url: str, checkpoint: str, *flags: str) -> None:
    """Run the query."""
    source = spark.readStream.format("leaderless").option("url", url)
    records = source.option("maxRecordsPerBatch", 60).load().selectExpr("key", "value")
    sink = records.repartition(2).writeStream.format("leaderless").option("url", url)
    sink = sink.option("topic", "copy").option("checkpointLocation", checkpoint)
    if "--end" in flags:
        sink = sink.trigger(availableNow=True)
    sink.start().awaitTermination()


def follow(spark: SparkSession, url: str, checkpoint: str, file: str) -> None:
    """Follow the log."""
    print("ready", flush=True)  # noqa: T201
    sys.stdin.readline()
    wait_for_log(Place(url, None, StoreOptions()))
    with Path(file).open("w", encoding="utf-8") as seen:

        def take(batch: DataFrame, _: int) -> None:
            seen.writelines(
                json.dumps([row.key, row.offset, json.loads(row.value)]) + "\n"
                for row in batch.collect()
            )

        records = spark.readStream.format("leaderless").option("maxRecordsPerBatch", 200).load(url)
        sink = records.select("key", "offset", "value").writeStream.foreachBatch(take)
        query = sink.option("checkpointLocation", checkpoint).start()
        sys.stdin.read()
        query.processAllAvailable()
        query.stop()


def wait_for_log(place: Place) -> None:
    """Return when there is a log."""
    while True:
        try:
            snapshot_of(place)
        except NotInitialised:
            time.sleep(0.1)
        else:
            return


def load(spark: SparkSession, url: str, form: str) -> None:
    """Write the frame."""
    frame: DataFrame = FORMS[form](spark.range(ROWS))
    value = F.struct("id", F.repeat(F.lit("x"), F.lit(4_000)).alias("text"))
    rows = frame.select(F.format_string("k%d", F.col("id") % 7).alias("key"), value.alias("value"))
    rows.write.format("leaderless").mode("append").option("name", "load").save(url)


DRIVERS: dict[str, Callable[..., None]] = {"copy": copy, "follow": follow, "load": load}

if __name__ == "__main__":
    SPARK = start("local[2]", brief=True)
    SPARK.dataSource.register(LeaderlessDataSource)
    DRIVERS[sys.argv[1]](SPARK, *sys.argv[2:])
    SPARK.stop()
