"""A log that nodes have compacted into Parquet files under the bench, read by the library and by Spark.

A Spark stream as one more reader of a log that nodes keep under the bench, while the test runs.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import anyio
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from analysis.live.job import Following, wait_for_log
from leaderless import LogSync, open_log_sync
from leaderless.spark import LeaderlessDataSource
from leaderless.store.port import Store
from leaderless.store.urls import open_store
from leaderless.table.snapshot import FileRef, file_refs
from leaderless.upkeep import fsck
from runs.history import read_history
from tests import servers
from tests.analysis.started import running
from tests.programs import ROOT
from tests.reader import Record, problems

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.slow]
TEST = [
    "./maelstrom", "test", "-w", "kafka", "--node-count", "3", "--concurrency", "2n", "--rate", "80",
    "--time-limit", "10", "--recovery-time", "1", "--nemesis", "kill", "--nemesis-interval", "5",
    "--seed", "5", "--strict", "--no-pictures",
]  # fmt: skip


def run_the_bench(folder: Path, server: str, environment: Mapping[str, str]) -> Path:
    """The folder of a valid run, of nodes that compact a lot."""
    node = folder / "node.sh"
    program = ROOT / "tests" / "nodes" / "compacting_node.py"
    node.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} {program} "$@"\n')
    node.chmod(0o755)
    command = [*TEST, "--bin", str(node), "--store", str(folder / "runs")]
    done = subprocess.run(
        [*command, "--store-server", server, "--", "--runs", "parquet"],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return (folder / "runs" / "latest").resolve()


def records_of(log: LogSync) -> Iterator[Record]:
    for key, end in log.keys().items():
        at = 0
        while at < end:
            for record in log.read(key, at):
                yield Record(key, record.offset, record.value)
                at = record.offset + 1


async def checked(store: Store) -> tuple[list[FileRef], fsck.Report]:
    try:
        return await file_refs(store), await fsck.check(store)
    finally:
        await store.aclose()


@pytest.mark.timeout(300)
def test_nodes_compact_into_files_under_the_bench(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with servers.moto() as endpoint:
        environment, bucket = servers.environment_of(endpoint), f"s3://{servers.BUCKET}/bench"
        folder = run_the_bench(tmp_path, bucket, environment)
        url = f"{bucket}/{folder.name}"
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        files, report = anyio.run(checked, open_store(url, servers.options_of(url, endpoint)))
        assert report.findings == []
        assert files
        assert {ref.kind for ref in files} == {"parquet"}
        history = read_history(folder / "history.jsonl")
        with open_log_sync(url, create=False, endpoint=endpoint) as log:
            records = [*records_of(log)]
        assert problems(history, records) == []
        spark.dataSource.register(LeaderlessDataSource)
        given = servers.spark_options(servers.s3_options(endpoint))
        table = spark.read.format("leaderless").options(**given).load(url)
        rows = table.orderBy("key", "offset").collect()
        assert [Record(row.key, row.offset, json.loads(row.value)) for row in rows] == sorted(
            records
        )


# ---------------------------------------------------------------- a stream as one more reader

STREAMED = [
    "./maelstrom", "test", "-w", "kafka", "--bin", "./run.sh", "--node-count", "2", "--concurrency", "2n",
    "--rate", "60", "--time-limit", "12", "--recovery-time", "1", "--nemesis", "kill,pause",
    "--nemesis-interval", "3", "--seed", "1", "--no-pictures",
]  # fmt: skip


def follow(spark: SparkSession, url: str, folder: Path, seen: list[Record]) -> StreamingQuery:
    """A stream that takes what it sees of the log into `seen`, in its order."""

    def take(batch: DataFrame, _: int) -> None:
        seen.extend(Record(row.key, row.offset, json.loads(row.value)) for row in batch.collect())

    records = spark.readStream.format("leaderless").option("maxRecordsPerBatch", 200).load(url)
    sink = records.select("key", "offset", "value").writeStream.foreachBatch(take)
    return sink.option("checkpointLocation", str(folder)).start()


@pytest.mark.timeout(600)
def test_a_stream_sees_what_clients_see(tmp_path: Path, spark: SparkSession) -> None:
    """Nodes are killed and paused meanwhile. Readers that skip or double a record do not pass."""
    url = f"sqlite:///{tmp_path / 'log.db'}"
    records: list[Record] = []
    spark.dataSource.register(LeaderlessDataSource)
    command = [*STREAMED, "--store", tmp_path / "runs", "--", "--store", url]
    with running(*command, stderr=subprocess.STDOUT) as bench:
        for _ in wait_for_log(Following({"url": url}, tmp_path, 1)):
            assert bench.poll() is None, bench.communicate()
        query = follow(spark, url, tmp_path / "checkpoint", records)
        said, _ = bench.communicate()
        query.processAllAvailable()
        query.stop()
    assert bench.returncode == 0, said[-2000:]
    history = read_history(tmp_path / "runs" / "latest" / "history.jsonl")
    assert problems(history, records) == []
    assert len(records) > 100
    assert problems(history, records[:50] + records[51:])
    assert problems(history, records[:51] + records[50:])
