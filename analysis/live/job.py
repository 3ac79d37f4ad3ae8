"""The stream: from a log to the file of its windows, until it is stopped.

Spark keeps the counts of all windows in the checkpoint, and gives those that a micro-batch has changed. They
replace what the file has, so a batch that is repeated after a restart changes nothing.

`runs.live` defines the windows, for frames and streams alike.
"""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from analysis.errors import AnalysisError, is_slow_start, why
from analysis.lake import quantiles
from leaderless.errors import NotInitialised
from leaderless.spark import LeaderlessDataSource
from leaderless.spark.reading import snapshot_of
from leaderless.spark.settings import place_in
from leaderless.store.options import without_secrets
from runs.live import CHECKPOINT, FOLDER, Live, keep_live, read_live

LOOK_S = 1
STARTS_MAX = 5  # one after the other, of a stream whose Python process was slow to start


class Following(NamedTuple):
    """Which log, by the options of the source; and how its windows are kept.

    `folder`: of the file and the checkpoint. `every_s`: between two micro-batches, in seconds.
    """

    options: Mapping[str, str]
    folder: Path
    window_ns: int
    every_s: float = 1.0
    rows_max: int = 100_000

    @property
    def url(self) -> str:
        """Where the log is, without secrets."""
        return without_secrets(self.options["url"])


def default_folder(store: Path, url: str) -> Path:
    """A folder for the log at `url`: its name has letters, digits, dots and hyphens alone."""
    name = re.sub(r"[^\w.]+", "-", without_secrets(url).partition("://")[2]).strip("-.")
    return store / FOLDER / (name or "log")


def wait_for_log(following: Following) -> Iterator[None]:
    """Yield once for each look at which there is no log yet. Raises `LogError`."""
    place = place_in(following.options)
    while True:
        try:
            snapshot_of(place)
        except NotInitialised:
            yield
            time.sleep(LOOK_S)
        else:
            return


def begin(following: Following) -> Live:
    """What the file has, or nothing yet. Raises `AnalysisError` when it has windows of another width or log."""
    there = read_live(following.folder)
    if there is None:
        return Live(following.url, following.window_ns, time.time(), ())
    if (there.url, there.window_ns) != (following.url, following.window_ns):
        raise AnalysisError(
            f"{following.folder} has windows of {there.window_ns / 1e9:g} s of {there.url}: give the same, or "
            "another folder with --output"
        )
    return there


def start_stream(spark: SparkSession, following: Following) -> StreamingQuery:
    """Start the stream, from its checkpoint if there is one. Raises `AnalysisError`."""
    keep_live(following.folder, begin(following))
    spark.dataSource.register(LeaderlessDataSource)
    source = spark.readStream.format("leaderless").options(**following.options)
    schema = "slot long, appended_at timestamp"
    records = source.option("maxRecordsPerBatch", following.rows_max).schema(schema).load()

    def keep(changed: DataFrame, _: int) -> None:
        update(following, (row.asDict() for row in changed.collect()))

    sink = per_window(placed(records), following.window_ns).writeStream.outputMode("update")
    return (
        sink.option("checkpointLocation", str(following.folder.absolute() / CHECKPOINT))
        .trigger(processingTime=f"{following.every_s} seconds")
        .foreachBatch(keep)
        .start()
    )


def update(following: Following, changed: Iterable[Mapping[str, Any]]) -> None:
    """Put windows that have changed into the file."""
    keep_live(following.folder, begin(following).with_windows(changed, time.time()))


def follow(spark: SparkSession, following: Following) -> None:
    """Follow the log without end.

    Spark waits no longer than 10 s for a Python process that plans a read, and has no option for that. A busy
    machine may take longer; then the stream starts again from its checkpoint. Raises `AnalysisError` for
    anything else that ends it.
    """
    slow = 0
    while True:
        query = start_stream(spark, following)
        try:
            while not query.awaitTermination(LOOK_S):
                if query.lastProgress:
                    slow = 0
        except PySparkException as error:
            slow += 1
            if not is_slow_start(error) or slow == STARTS_MAX:
                raise AnalysisError(why(error)) from error
        else:
            raise AnalysisError("the stream was stopped from elsewhere")


# ---------------------------------------------------------------- windows

NS_PER_US = 1000


def placed(records: DataFrame) -> DataFrame:
    """Records whose slot is known. Those of a run of JSON have neither that nor a time: no window has them."""
    return records.where("slot is not null")


def per_window(records: DataFrame, window_ns: int) -> DataFrame:
    """Each window with its records: the columns `runs.live.COLUMNS`.

    Args:
        records: the column appended_at, and perhaps seen_at: when the reader learnt of the record. In a
            micro-batch that is the time of the batch, which a restart keeps.
        window_ns: width of a window.
    """
    if "seen_at" not in records.columns:
        records = records.withColumn("seen_at", F.current_timestamp())
    seen, appended = (F.unix_micros(name) * NS_PER_US for name in ("seen_at", "appended_at"))
    timed = records.select(
        F.coalesce(appended, seen).alias("at_ns"),
        F.when(appended.isNotNull(), F.greatest(seen - appended, F.lit(0))).alias("latency_ns"),
    )
    start_ns = F.col("at_ns") - F.col("at_ns") % F.lit(window_ns).cast("long")
    return timed.groupBy(start_ns.alias("window_start_ns")).agg(
        F.count("*").alias("records"),
        F.count("latency_ns").alias("timed"),
        *quantiles("latency_ns"),
    )
