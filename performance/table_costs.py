"""What work of Spark costs: time, CPU and memory of this process and of all below it."""

import ctypes
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import psutil
from pyspark.sql import SparkSession

from leaderless.store.files import FolderFiles
from performance.memory import peak_mb

PR_SET_CHILD_SUBREAPER = 36  # of <sys/prctl.h>
COUNTED = "parquet.hadoop.vectored.io.enabled"  # what Java reads in this way, no counter sees


class Cost(NamedTuple):
    """What some work took: seconds on the clock and of CPU."""

    seconds: float
    cpu_s: float


def adopt_orphans() -> None:
    """Let processes whose parent ends become children of this one, so that `cpu_s` goes on counting them.

    Spark ends the parent of its workers without a wait for them. Linux only.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


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
            total += sum(process.cpu_times()[:4])  # of its own, and of its children that have ended
    return total


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
