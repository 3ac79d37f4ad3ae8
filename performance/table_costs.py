"""What work of Spark costs: time, CPU and memory of this process and of all below it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import psutil
from pyspark.sql import SparkSession

from leaderless.store.files import FolderFiles
from performance.memory import peak_mb

_of_forks: dict[tuple[int, float], float] = {}  # CPU s of each that was ever seen
COUNTED = "parquet.hadoop.vectored.io.enabled"  # what Java reads in this way, no counter sees


class Cost(NamedTuple):
    """What some work took: seconds on the clock and of CPU."""

    seconds: float
    cpu_s: float


def costed(work: Callable[[], object]) -> Cost:
    """Do some work and say what it took."""
    began, began_cpu = time.monotonic(), cpu_s()
    work()
    return Cost(time.monotonic() - began, cpu_s() - began_cpu)


def cpu_s() -> float:
    """The CPU time that this process and all below it have taken, Java and Spark's workers too."""
    total = 0.0
    for process in everything():
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            if _is_fork(process):
                _of_forks[process.pid, process.create_time()] = times.user + times.system
            else:  # of its own, and of its children that have ended
                total += sum(times[:4])
    return total + sum(_of_forks.values())


def _is_fork(process: psutil.Process) -> bool:
    """Whether it is a worker of Spark, a fork of a daemon, which does not wait for it.

    No time counts the CPU seconds of a worker that has ended; so those that it had last are kept here.
    """
    parent = process.parent()
    return parent is not None and parent.cmdline() == process.cmdline()


def everything() -> list[psutil.Process]:
    """This process and all below it."""
    this = psutil.Process()
    return [this, *this.children(recursive=True)]


def highest_mb(name: str) -> float:
    """The highest memory of the processes below this one that have `name` in their name."""
    found = [0.0]
    for process in everything()[1:]:
        with suppress(psutil.NoSuchProcess, FileNotFoundError):
            if name in process.name():
                found.append(peak_mb(process.pid))
    return max(found)


@contextmanager
def counting_reads(spark: SparkSession) -> Iterator[None]:
    """Within the block Java counts all that it reads from files; it reads a little slower."""
    spark.conf.set(COUNTED, "false")
    try:
        yield
    finally:
        spark.conf.unset(COUNTED)


@contextmanager
def counted_bytes() -> Iterator[list[int]]:
    """The bytes of each range that is read from files of this process."""
    plain = FolderFiles.read_range
    counted: list[int] = []

    def read_range(self: FolderFiles, path: str, start: int, length: int) -> bytes:
        content = plain(self, path, start, length)
        counted.append(len(content))
        return content

    FolderFiles.read_range = read_range  # type: ignore[method-assign]
    try:
        yield counted
    finally:
        FolderFiles.read_range = plain  # type: ignore[method-assign]
