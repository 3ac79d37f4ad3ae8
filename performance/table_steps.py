"""Work on a log in a process of its own, for its memory: `python -m performance.table_steps STEP ARGUMENT ...`.

    merge FOLDER    the files of a folder become one, as upkeep merges them
    first URL       Spark starts with a heap of 512 MiB for Java, and `read_log` reads the log
    open URL KEY    the library opens the log, and reads the oldest and the newest record of a key

The answer is JSON: seconds, CPU seconds, memory in MB.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from leaderless import open_log
from leaderless.store.files import FolderFiles
from leaderless.table.merge import merge as merge_rows
from leaderless.table.parquet import Reader, Writer
from performance.memory import MB, java_heap_mb, peak_mb
from performance.processes import Figures, figures_of

PATIENCE_S = 300  # of a step
SMALL_HEAP = "--conf spark.driver.memory=512m pyspark-shell"


def merge(folder: str) -> Figures:
    """Merge files, as upkeep does it."""
    files = FolderFiles(Path(folder))
    names = sorted(Path(folder).iterdir())
    with TemporaryDirectory() as target, Writer(Path(target, "merged.parquet"), {}) as writer:
        merge_rows([Reader(files, path.name) for path in names], writer)
    return {"read_mb": sum(path.stat().st_size for path in names) / MB, "files": len(names)}


def first(url: str) -> Figures:
    """Read a log by Spark in a new process."""
    os.environ["PYSPARK_SUBMIT_ARGS"] = SMALL_HEAP
    from analysis.spark import session
    from leaderless.spark import LeaderlessDataSource, read_log
    from performance.table_costs import cpu_s, highest_mb
    from performance.table_readers import drain

    began = time.monotonic()
    with session("local[2]") as spark:
        started = time.monotonic()
        spark.dataSource.register(LeaderlessDataSource)
        read_log(spark, url).take(1)
        one = time.monotonic()
        drain(read_log(spark, url))
        every = time.monotonic()
        return {
            "start_s": started - began, "one_s": one - started, "all_s": every - one,
            "cpu_s": cpu_s(), "heap_mb": java_heap_mb(spark), "java_mb": highest_mb("java"),
            "worker_mb": highest_mb("python"),
        }  # fmt: skip


def opened(url: str, key: str) -> Figures:
    """Open a log by the library and read two records."""

    async def look() -> Figures:
        began = time.monotonic()
        async with open_log(url, create=False) as log:
            [_] = await log.read(key, 0, 1)
            oldest = time.monotonic()
            [_] = await log.read(key, (await log.keys())[key] - 1, 1)
            return {"oldest_s": oldest - began, "newest_s": time.monotonic() - oldest}

    return anyio.run(look)


STEPS: dict[str, Callable[..., Figures]] = {"merge": merge, "first": first, "open": opened}


def in_a_process(step: str, *arguments: str) -> Figures:
    """The figures of a step. Raises `SubprocessError` for one that fails or takes minutes."""
    return figures_of("performance.table_steps", step, *arguments, timeout_s=PATIENCE_S)


def main(step: str, *arguments: str) -> None:
    """Do a step and print its figures."""
    figures = STEPS[step](*arguments)
    own = {"memory": peak_mb(os.getpid()), "cpu_s": time.process_time()}
    sys.stdout.write(json.dumps(own | figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
