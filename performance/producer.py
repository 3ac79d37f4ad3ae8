"""Measure the memory of one process that loads a log: `python -m performance.producer --runs parquet`.

It appends `--size` MB of values of `--width` bytes to 50 keys, 0.9 MB at a time, with 32 tasks, into a
SQLite file, and prints its seconds and its highest memory, those of the load's values included.
`ARROW_DEFAULT_MEMORY_POOL` and `MALLOC_ARENA_MAX` of the environment count.
"""

import re
import time
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import anyio
import click

from leaderless.api.log import Log, open_log
from leaderless.core.shape import Runs
from performance.harness import program

TASKS, KEYS, APPEND_BYTES, PATIENCE_S = 32, 50, 900_000, 600.0


async def load(log: Log, numbers: range, width: int) -> None:
    """Append the batches of some numbers, one after the other."""
    for number in numbers:
        random = Random(number)
        values = [random.randbytes(width // 2).hex() for _ in range(APPEND_BYTES // width)]
        await log.append_many(f"k{number % KEYS}", values)


async def produce(url: str, runs: Runs, batches: int, width: int) -> float:
    """Load a new log with so many batches; how long that took, in seconds, without the end of upkeep."""
    async with open_log(url, runs=runs, patience_s=PATIENCE_S) as log:
        since = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for task in range(TASKS):
                tasks.start_soon(load, log, range(task, batches, TASKS), width)
        return time.perf_counter() - since


@program(__doc__)
@click.option("--size", default=1000)
@click.option("--width", default=10_000)
@click.option("--runs", type=click.Choice(["json", "parquet"]), default="json")
def main(*, size: int, width: int, runs: Runs) -> None:
    with TemporaryDirectory() as folder:
        batches = size * 1_000_000 // APPEND_BYTES
        seconds = anyio.run(produce, f"sqlite:///{folder}/log.db", runs, batches, width)
    # `getrusage` would say the peak of the process that started this one, if that was higher.
    [peak] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    click.echo(f"{runs}: {seconds:.0f} s, at most {int(peak) * 1024 / 1e6:.0f} MB of memory")


if __name__ == "__main__":
    main()
