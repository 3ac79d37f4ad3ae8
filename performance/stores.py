"""Appends a second on real stores: `python -m performance.stores [--seconds S]`, as a table in Markdown.

One process appends values of 100 bytes with 1, 16 and 64 tasks, each of which waits for its answer. It uses
SQLite in a temporary folder, moto's server (a Python process that answers about 200 requests a second, so its
figures are a floor), etcd when it is installed, and memory for comparison. It says first how busy the machine
is: on one that is not idle the figures are lower.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

import anyio

from leaderless import Log, open_log
from leaderless.store.registers import Registers
from tests import servers

VALUE = "x" * 98  # 100 bytes as JSON
TASKS = (1, 16, 64)


class Row(NamedTuple):
    """One measurement: requests to the store are counted by the operations of the core."""

    store: str
    tasks: int
    appends_s: float
    requests: float
    p50_ms: float
    p99_ms: float


async def measure(name: str, url: str, tasks: int, seconds: float, options: dict[str, Any]) -> Row:
    """Append for `seconds` to a fresh log."""
    took: list[float] = []
    with counted() as calls:
        async with open_log(url, f"{tasks}", **options) as log:
            await log.append("warm", 0)
            calls.clear()
            began = time.monotonic()
            async with anyio.create_task_group() as group:
                for task in range(tasks):
                    group.start_soon(append, log, f"k{task % 4}", began + seconds, took)
            elapsed_s = time.monotonic() - began
    cuts = quantiles(took, n=100) if len(took) > 1 else took * 99
    rate = len(took) / elapsed_s
    return Row(name, tasks, rate, len(calls) / len(took), cuts[49] * 1000, cuts[98] * 1000)


async def append(log: Log, key: str, until: float, took: list[float]) -> None:
    """Append one value after the other, and note how long each took."""
    while (before := time.monotonic()) < until:
        await log.append(key, VALUE)
        took.append(time.monotonic() - before)


@contextmanager
def counted() -> Iterator[list[str]]:
    """The operations on registers, as they are made."""
    calls: list[str] = []
    plain = Registers.carry_out

    async def carry_out(self: Registers, op: Any) -> Any:
        calls.append(op.key)
        return await plain(self, op)

    Registers.carry_out = carry_out  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        Registers.carry_out = plain  # type: ignore[method-assign]


def rows(folder: Path, seconds: float) -> Iterator[Row]:
    """All measurements, as they are made."""
    has_etcd = shutil.which("etcd") is not None
    with (
        servers.moto() as endpoint,
        servers.etcd(folder / "etcd") if has_etcd else nullcontext() as etcd,
    ):
        options = servers.s3_options(endpoint)
        keys = {
            "endpoint": endpoint,
            "access_key": options.access_key,
            "secret_key": options.secret_key,
            "region": options.region,
        }
        places: list[tuple[str, str, dict[str, Any]]] = [
            ("memory", "memory:performance", {}),
            ("SQLite", f"sqlite:///{folder}/log.db", {}),
            ("S3 (moto)", f"s3://{servers.BUCKET}", keys),
        ]
        if etcd:
            places.append(("etcd", f"etcd://{etcd}", {}))
        for name, url, given in places:
            for tasks in TASKS:
                yield anyio.run(measure, name, url, tasks, seconds, given)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each row; default 5")
    options = parser.parse_args()
    say = sys.stdout.write
    names = ("store", "tasks", "appends a second", "requests an append", "p50 ms", "p99 ms")
    load = f"{os.getloadavg()[0]:.1f} processes wanted to run"
    say(f"{os.cpu_count()} cores; {load} in the minute before.\n\n")
    say(f"| {' | '.join(names)} |\n|---|{'---:|' * 5}\n")
    with tempfile.TemporaryDirectory() as folder:
        for row in rows(Path(folder), options.seconds):
            say(
                f"| {row.store} | {row.tasks} | {row.appends_s:.0f} | {row.requests:.2f} "
                f"| {row.p50_ms:.1f} | {row.p99_ms:.1f} |\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
