"""A driver on a cluster: the analysis, then a log in a bucket while an executor is killed and a task repeated.

It tells what its executors saw and what the table has, as one line of JSON.

python -m tests.analysis.cluster_job MASTER FOLDER URL ENDPOINT STORE ...

`FOLDER` gets the lake, has the packages to send, and is where tasks meet.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from analysis.cli import main
from analysis.comparison import means
from analysis.lake import Lake
from leaderless.spark import LeaderlessDataSource
from tests.analysis.standalone import places_of
from tests.servers import s3_options, spark_options

ROWS = 400
PACKED = "leaderless.zip"


def means_of(lake: Lake, spark: SparkSession) -> dict[str, float]:
    """The mean of each number of each program, which Python computes in executors."""
    figures = lake.table(spark, "figures").filter("of is null").fillna("unknown", ["workload"])
    return {f"{row.program} {row.figure}": row.mean for row in means(figures).collect()}


def records(name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of the log: to each number a key and a value."""
    numbers = batch["id"].to_pylist()
    keys = [f"k{number % 3}" for number in numbers]
    values = [f'["{name}", {number}]' for number in numbers]
    return pa.record_batch([keys, values], names=["key", "value"])


def killing(folder: str) -> Any:
    """The first attempt of partition 1 kills its executor in the middle of its rows."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task, marker = TaskContext.get(), Path(folder, "killed")
        for batch in batches:
            yield records("killed", batch)
            if task and task.partitionId() == 1 and not marker.exists():
                marker.touch()
                os.kill(parent_of(os.getppid()), signal.SIGKILL)

    return run


def parent_of(process: int) -> int:
    """The executor, for the parent of a worker, which is Spark's daemon."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def waiting(folder: str) -> Any:
    """The first attempt of partition 0 waits until another attempt of it has begun."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task, meeting = TaskContext.get(), Path(folder, "meeting")
        if task and task.partitionId() == 0:
            with meeting.open("r" if task.attemptNumber() == 0 else "w"):
                pass  # either blocks until the other is there
            Path(folder, f"attempt-{task.attemptNumber()}").touch()
        yield from (records("repeated", batch) for batch in batches)

    return run


def analysed(master: str, folder: str, stores: Sequence[str]) -> dict[str, Any]:
    """Ingest the stores by the command line, then read the lake. Its session goes on."""
    lake = Lake(Path(folder, "lake"))
    with patch("analysis.spark._stop"):
        command = ["ingest", *stores, "--lake", str(lake.folder), "--master", master]
        main(command, standalone_mode=False)
    spark = SparkSession.active()
    return {
        "counts": {name: lake.table(spark, name).count() for name in ("messages", "operations")},
        "means": means_of(lake, spark),
        "places": places_of(spark, "analysis.comparison"),
    }


def written(spark: SparkSession, folder: str, url: str, endpoint: str) -> dict[str, Any]:
    """Write twice, and read once."""
    spark.sparkContext.setLogLevel("INFO")
    spark.sparkContext.addPyFile(str(Path(folder, PACKED)))
    spark.dataSource.register(LeaderlessDataSource)
    options = {"url": url} | spark_options(s3_options(endpoint))
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 50)
    os.mkfifo(Path(folder, "meeting"))
    for trouble in (killing(folder), waiting(folder)):
        frame = spark.range(0, ROWS, 1, 2).mapInArrow(trouble, "key string, value string")
        frame.write.format("leaderless").options(**options).mode("append").save()
    table: DataFrame = spark.read.format("leaderless").options(**options).load()
    return {
        "rows": [[row.key, row.offset, *json.loads(row.value)] for row in table.collect()],
        "plan": table._jdf.queryExecution().toString(),
        "places": places_of(spark, "leaderless"),
    }


if __name__ == "__main__":
    MASTER, FOLDER, URL, ENDPOINT, *STORES = sys.argv[1:]
    TOLD = {"analysis": analysed(MASTER, FOLDER, STORES)}
    TOLD["table"] = written(SparkSession.active(), FOLDER, URL, ENDPOINT)
    print(json.dumps(TOLD))  # noqa: T201
    SparkSession.active().stop()
