"""A driver: a stream that follows a log; `python -m tests.analysis.following URL CHECKPOINT FILE`.

It prints `ready`, waits for a line on its standard input and then for the log, and writes what it sees into
`FILE`: a line of JSON for each record, `[key, offset, value]`, in the order of the stream. At the end of its
input it reads to the end of the log, and stops.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame

from analysis.spark import start
from leaderless.errors import NotInitialised
from leaderless.spark import LeaderlessDataSource
from leaderless.spark.reading import snapshot_of
from leaderless.spark.settings import Place
from leaderless.store.options import StoreOptions


def main(url: str, checkpoint: str, file: str) -> None:
    """Follow the log."""
    spark = start("local[2]", brief=True)
    spark.dataSource.register(LeaderlessDataSource)
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
    spark.stop()


def wait_for_log(place: Place) -> None:
    """Return when there is a log."""
    while True:
        try:
            snapshot_of(place)
        except NotInitialised:
            time.sleep(0.1)
        else:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
