"""`python -m analysis.live`: windows of records, and the whole job: a log that grows, a restart, Ctrl-C."""

import os
import signal
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from analysis.errors import SLOW_START, AnalysisError, is_slow_start, why
from analysis.live.job import (
    Following,
    begin,
    default_folder,
    per_window,
    placed,
    start_stream,
    update,
)
from leaderless import LogSync, open_log_sync
from runs.live import COLUMNS, Live, keep_live, read_live
from tests.analysis.started import module, running, wait_until

S = 10**9
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_NS = int(NOON.timestamp()) * S


@pytest.mark.spark
def test_records_count_where_the_store_wrote_them_or_the_stream_saw_them(
    spark: SparkSession,
) -> None:
    def at(seconds: float) -> datetime:
        return NOON + timedelta(seconds=seconds)

    seen = at(5.5)
    rows = [(at(second), seen) for second in (0.0, 0.5, 1.0, 5.75)] + [(None, seen)] * 3
    records = spark.createDataFrame(rows, "appended_at timestamp, seen_at timestamp")
    found = per_window(records, S).orderBy("window_start_ns").collect()
    assert [*found[0].asDict()] == [*COLUMNS]
    shown = [(row.window_start_ns - NOON_NS, row.records, row.timed) for row in found]
    assert shown == [(0, 2, 2), (S, 1, 1), (5 * S, 4, 1)]
    latencies = [(row.latency_ns_p50, row.latency_ns_max) for row in found]
    assert latencies[:2] == [(5 * S, 5.5 * S), (4.5 * S, 4.5 * S)]
    assert latencies[2] == (0, 0)  # a clock that is ahead
    none = per_window(records.where("appended_at is null"), S).collect()
    assert [(row.timed, row.latency_ns_p50) for row in none] == [(0, None)]


@pytest.mark.spark
def test_a_record_of_which_nobody_knows_the_time_is_in_no_window(spark: SparkSession) -> None:
    rows = [(3, NOON), (4, None), (None, None)]
    records = spark.createDataFrame(rows, "slot long, appended_at timestamp")
    assert [row.slot for row in placed(records).collect()] == [3, 4]


def test_windows_of_another_width_or_log_are_left_alone(tmp_path: Path) -> None:
    following = Following({"url": "memory:a"}, tmp_path, S)
    keep_live(tmp_path, begin(following))
    row = dict.fromkeys(COLUMNS, 1)
    update(following, [row])
    assert live_in(tmp_path).windows == (row,)
    for other in (
        Following({"url": "memory:a"}, tmp_path, 2 * S),
        Following({"url": "memory:b"}, tmp_path, S),
    ):
        with pytest.raises(AnalysisError, match="another folder with --output"):
            begin(other)


def test_a_folder_is_named_after_its_log() -> None:
    store = Path("results")
    for url, name in [
        ("s3://bucket/orders", "bucket-orders"),
        ("sqlite:////tmp/log.db", "tmp-log.db"),
        ("memory:", "log"),
        ("etcd://user:secret@host:2379/../x", "host-2379-..-x"),
    ]:
        assert default_folder(store, url) == store / "live" / name


def test_a_process_that_was_slow_to_start_is_known() -> None:
    error = Exception(f"org.apache.spark.SparkException: {SLOW_START}")
    assert is_slow_start(error)
    assert "machine is too busy" in why(error)
    assert not is_slow_start(Exception("another"))


def interrupt(job: "subprocess.Popen[str]") -> str:
    """Ctrl-C, as a terminal sends it; returns what the job says. No process of it is left."""
    processes = [psutil.Process(job.pid), *psutil.Process(job.pid).children(recursive=True)]
    os.killpg(job.pid, signal.SIGINT)
    said = job.communicate()[1]
    assert job.returncode == 130, said
    gone, alive = psutil.wait_procs(processes, timeout=60)
    assert (len(gone), alive) == (len(processes), [])
    return said


def live_in(folder: Path) -> Live:
    """What is kept; without windows before the first is there."""
    return read_live(folder) or Live("", 0, 0, ())


def append_and_see(job: "subprocess.Popen[str]", log: LogSync, folder: Path) -> None:
    """Append records that fill segments, each time after the last ones were seen, until some have a time.

    Those have one that were in a segment when the stream looked.
    """
    timed = 0
    for number in range(10):
        for key in ("k0", "k1", "k2"):
            log.append_many(key, [f"{number}" * 8_000] * 20)
        wait_until(job, lambda: live_in(folder).records == sum(log.keys().values()))
        timed = sum(each["timed"] for each in live_in(folder).windows)
        if number >= 1 and timed:
            return
    raise AssertionError(f"{timed} records with a time")


@pytest.mark.spark
@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_log_is_followed_while_it_grows_and_after_a_restart(
    tmp_path: Path, spark: SparkSession
) -> None:
    """(1) The job waits for the log. (2) It follows. (3) Ctrl-C. (4) It goes on, and counts nothing twice."""
    url, folder = f"sqlite:///{tmp_path / 'log.db'}", tmp_path / "live" / "windows"
    asked = module("analysis.live", url, "--every", 0, "--output", folder)
    with running(*asked, stderr=subprocess.PIPE) as job:
        assert job.stdout.readline().startswith("There is no log")  # (1)
        with open_log_sync(url, runs="parquet") as log:
            assert job.stdout.readline().startswith("Following")
            append_and_see(job, log, folder)  # (2)
        said = interrupt(job)  # (3)
        assert said == "Error: Stopped by Ctrl-C. The same command goes on from there.\n"
    with open_log_sync(url, create=False) as log:
        log.append_many("k0", ["meanwhile"] * 7)
        there = sum(log.keys().values())
    query = start_stream(spark, Following({"url": url}, folder, S, 0))  # (4)
    query.processAllAvailable()
    query.stop()
    assert live_in(folder).records == there
    timed = [each for each in live_in(folder).windows if each["timed"]]
    assert all(0 <= each["latency_ns_p50"] <= each["latency_ns_max"] for each in timed)
