"""Measure a log in Spark beside plain Parquet files of the same rows: writes, one key, counts, all columns.

    python -m performance.spark_beside_parquet ROWS ROUNDS

Spark is one process with two threads, `local[2]`. Each work is done in turn, in rounds after one that does not
count, because Java compiles meanwhile. A rate is that of the CPU seconds of all processes, and of the clock.
"""

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
from pyspark.sql import DataFrame, SparkSession

from analysis.spark import session
from leaderless.spark import LeaderlessDataSource, read_log

KEY = "format_string('k%06d', id % 10000) AS key"
VALUES = {
    "texts of 100 bytes": ("lpad(id, 100, '0')", 1),
    "texts of 1000 bytes": ("lpad(id, 1000, '0')", 5),
    "bytes, 100": ("cast(lpad(id, 100, '0') AS binary)", 1),
}
ONE, PLAIN = "key = 'k005000'", "parquet"
Work = Callable[[], object]
_seen: dict[tuple[int, float], float] = {}  # CPU s of each process that was ever seen


def cpu_s() -> float:
    """The CPU time of this process and all below it; Spark's workers end without anybody's wait."""
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with suppress(psutil.Error):
            times = process.cpu_times()
            _seen[process.pid, process.create_time()] = times.user + times.system
    return sum(_seen.values())


def look() -> None:
    """Look at the processes now and then, in a thread."""
    while True:
        time.sleep(0.1)
        with suppress(RuntimeError):
            cpu_s()


def compare(what: str, works: Mapping[str, Work], rounds: int) -> None:
    """Do each work in turn, and say its rate, where that of `PLAIN` is 1."""
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, work in works.items():
            began, before = time.monotonic(), cpu_s()
            work()
            costs[name].append((time.monotonic() - began, cpu_s() - before))
    medians = {
        name: [*map(statistics.median, zip(*each[1:], strict=True))] for name, each in costs.items()
    }
    for name, (clock, cpu) in medians.items():
        plain = medians[PLAIN]
        rates = f"{plain[1] / max(cpu, 0.01):.2f} by CPU, {plain[0] / clock:.2f} by the clock"
        print(f"{what}: {name}: {cpu:.2f} CPU s, {clock:.2f} s: {rates}", flush=True)  # noqa: T201


def sink(frame: DataFrame) -> None:
    """Write a frame into a new log."""
    with tempfile.TemporaryDirectory() as folder:
        writer = frame.write.format("leaderless").mode("append").option("values", "text")
        writer.save(f"sqlite:///{folder}/log.db")


def plain_files(frame: DataFrame) -> None:
    """Write a frame into new files."""
    with tempfile.TemporaryDirectory() as folder:
        frame.write.parquet(f"{folder}/plain")


def writes(spark: SparkSession, rows: int, rounds: int) -> None:
    """Frames into new logs and into new files."""
    for what, (value, share) in VALUES.items():
        frame = spark.range(rows // share).selectExpr(KEY, f"{value} AS value")
        works: dict[str, Work] = {"sink": partial(sink, frame), PLAIN: partial(plain_files, frame)}
        compare(f"write {what}", works, rounds)


def reads(spark: SparkSession, folder: Path, rows: int, rounds: int) -> None:
    """One log, and files of the same rows in the same order."""
    url = f"sqlite:///{folder}/log.db"
    frame = spark.range(rows).selectExpr(KEY, "lpad(id, 100, '0') AS value")
    frame.write.format("leaderless").mode("append").option("values", "text").save(url)
    reader = spark.read.format("leaderless")
    log, fast = reader.load(url), read_log(spark, url)
    log.repartitionByRange(2, "key").sortWithinPartitions("key", "offset").write.parquet(
        f"{folder}/p"
    )
    plain = spark.read.parquet(f"{folder}/p")
    keys = spark.read.format("leaderless").option("keys", "k005000")
    narrow = spark.read.format("leaderless").schema("offset long")
    one: dict[str, Work] = {
        "where": lambda: log.where(ONE).collect(),
        "keys": lambda: keys.load(url).collect(),
        "read_log": lambda: fast.where(ONE).collect(),
        PLAIN: lambda: plain.where(ONE).collect(),
    }
    count: dict[str, Work] = {
        "source": log.count,
        "source, one column": lambda: narrow.load(url).count(),
        "read_log": fast.count,
        PLAIN: plain.count,
    }
    compare("one key", one, rounds)
    compare("count", count, rounds)


def main() -> None:
    """Measure."""
    rows, rounds = map(int, sys.argv[1:])
    threading.Thread(target=look, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder, session("local[2]") as spark:
        spark.dataSource.register(LeaderlessDataSource)
        writes(spark, rows, rounds)
        reads(spark, Path(folder), rows, rounds)


if __name__ == "__main__":
    main()
