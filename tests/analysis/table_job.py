"""A driver on a cluster: writes a log in a bucket while an executor is killed and a slow task is repeated.

python -m tests.analysis.table_job MASTER URL ENDPOINT FOLDER

`FOLDER` has the packages to send, and is where tasks meet. The last line of its output is JSON: what the table
has afterwards, its plan, and where executors work and found the package.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from leaderless.spark import LeaderlessDataSource
from tests.analysis.standalone import places_of
from tests.servers import s3_options

ROWS = 400
SETTINGS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.5",
    "spark.ui.enabled": "false",
}


def records(name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of the log: to each number a key and a value."""
    numbers = batch["id"].to_pylist()
    keys, values = (
        [f"k{number % 3}" for number in numbers],
        [f'["{name}", {number}]' for number in numbers],
    )
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


def main(master: str, url: str, endpoint: str, folder: str) -> None:
    """Write twice, read once, and tell."""
    builder = SparkSession.builder.master(master)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.addPyFile(str(Path(folder, "packages.zip")))
    spark.dataSource.register(LeaderlessDataSource)
    access = s3_options(endpoint)
    options = {
        "url": url, "endpoint": endpoint, "region": access.region,
        "accessKey": access.access_key, "secretKey": access.secret_key,
    }  # fmt: skip
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 50)
    os.mkfifo(Path(folder, "meeting"))
    for trouble in (killing(folder), waiting(folder)):
        frame = spark.range(0, ROWS, 1, 2).mapInArrow(trouble, "key string, value string")
        frame.write.format("leaderless").options(**options).mode("append").save()
    table: DataFrame = spark.read.format("leaderless").options(**options).load()
    told = {
        "rows": [[row.key, row.offset, *json.loads(row.value)] for row in table.collect()],
        "plan": table._jdf.queryExecution().toString(),
        "places": places_of(spark, "leaderless"),
    }
    print(json.dumps(told))  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
