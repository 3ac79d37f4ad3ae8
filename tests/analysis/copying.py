"""A driver: a query that copies a log into its topic `copy`; `python -m tests.analysis.copying URL CHECKPOINT`.

It prints a line for each epoch. With `--end` it stops at the end of the log; otherwise it runs on.
"""

import sys
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from analysis.spark import start
from leaderless.spark import LeaderlessDataSource


class Telling(StreamingQueryListener):
    """Prints the position of each epoch."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing to tell."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """An epoch is over."""
        progress = event.progress
        print("epoch", progress.batchId, progress.sources[0].endOffset, flush=True)  # noqa: T201

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing to tell."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Nothing to tell."""


def main(url: str, checkpoint: str, *flags: str) -> None:
    """Run the query."""
    spark = start("local[2]", brief=True)
    spark.dataSource.register(LeaderlessDataSource)
    spark.streams.addListener(Telling())
    source = spark.readStream.format("leaderless").option("url", url)
    records = source.option("maxRecordsPerBatch", 60).load().selectExpr("key", "value")
    sink = records.repartition(2).writeStream.format("leaderless").option("url", url)
    sink = sink.option("topic", "copy").option("checkpointLocation", checkpoint)
    if "--end" in flags:
        sink = sink.trigger(availableNow=True)
    sink.start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
