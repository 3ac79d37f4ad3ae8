"""The memory of processes, and of Spark's Java; the bytes that Java has read."""

import re
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

MB = 1_000_000


def peak_mb(process: int) -> float:
    """The highest resident set that a process had since its program began.

    `getrusage` would say the parent's, if that was higher.
    """
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    [kilobytes] = re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(kilobytes) * 1024 / MB


def java_heap_mb(spark: SparkSession) -> float:
    """What is left in Java's heap after a collection."""
    java: Any = spark._jvm
    java.System.gc()
    runtime = java.Runtime.getRuntime()
    return (int(runtime.totalMemory()) - int(runtime.freeMemory())) / MB


def java_read_mb(spark: SparkSession) -> float:
    """What Spark's own readers have read from files so far."""
    java: Any = spark._jvm
    statistics = java.org.apache.hadoop.fs.FileSystem.getAllStatistics()
    return sum(int(each.getBytesRead()) for each in statistics) / MB
