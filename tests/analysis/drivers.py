"""What drivers do that are killed, with a Spark of their own: `python -m tests.analysis.drivers WHAT ...`.

`copy URL CHECKPOINT` runs a query that copies a log into its topic `copy`.

`load URL` writes `ROWS` rows under one name.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analysis.spark import start
from leaderless.spark import LeaderlessDataSource

ROWS = 6_000


def copy(spark: SparkSession, url: str, checkpoint: str, *, end: bool = False) -> None:
    """Run the query; to the `end` of the log, or without one."""
    source = spark.readStream.format("leaderless").option("url", url)
    records = source.option("maxRecordsPerBatch", 60).load().selectExpr("key", "value")
    sink = records.repartition(2).writeStream.format("leaderless").option("url", url)
    sink = sink.option("topic", "copy").option("checkpointLocation", checkpoint)
    if end:
        sink = sink.trigger(availableNow=True)
    sink.start().awaitTermination()


def load(frame: DataFrame, url: str) -> None:
    """Write rows with these ids."""
    value = F.struct("id", F.repeat(F.lit("x"), F.lit(4_000)).alias("text"))
    rows = frame.select(F.format_string("k%d", F.col("id") % 7).alias("key"), value.alias("value"))
    rows.write.format("leaderless").mode("append").option("name", "load").save(url)


if __name__ == "__main__":
    SPARK = start("local[2]", brief=True)
    SPARK.dataSource.register(LeaderlessDataSource)
    match sys.argv[1:]:
        case "copy", URL, CHECKPOINT:
            copy(SPARK, URL, CHECKPOINT)
        case "load", URL:
            load(SPARK.range(ROWS), URL)
    SPARK.stop()
