"""Measure what a load leaves to whoever comes next, and what it takes, on a store that is far away.

    python -m performance.upkeep [--size 300] [--latency-ms 20] [--runs json] [--stay 20]

A producer loads `--size` MB of records of 1 000 bytes, 900 at a time, with 32 tasks, into a SQLite file each of
whose requests takes `--latency-ms` longer. Then a process reads the status; another one opens the log, reads a
record, and stays for `--stay` seconds. Each is a process of its own; bytes are those of objects, not of files.
"""

import tempfile
import time
from random import Random

import anyio

from leaderless.core.shape import Runs
from leaderless.library.host import beside, running
from leaderless.library.log import Log
from leaderless.library.place import bounds_of, initialise
from leaderless.store.port import Found, Version
from performance.harness import MB, Figures, alone, open_at, program, show_table
from performance.opening import WithFiles

BATCH, WIDTH, TASKS, KEYS = 900, 1_000, 32, 50
PATIENCE_S, TIMEOUT_S = 30.0, 5.0  # as of `open_log`
SHOWN = ("seconds", "close_s", "requests", "read_mb", "written_mb", "peak_mb")


class Far(WithFiles):
    """A store whose requests take `latency_s` longer, but for deletions and listings."""

    latency_s = 0.0

    async def read(self, key: str) -> Found | None:
        """See `Store`."""
        await anyio.sleep(self.latency_s)
        return await super().read(key)

    async def create(self, key: str, value: bytes) -> Version:
        """See `Store`."""
        await anyio.sleep(self.latency_s)
        return await super().create(key, value)

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """See `Store`."""
        await anyio.sleep(self.latency_s)
        return await super().compare_and_set(key, value, version)


async def used(url: str, latency_ms: str, runs: Runs, does: str, amount: str) -> Figures:
    """Open the log, do one of `USES`, and close it."""
    store = Far(open_at(url))
    shape = (await initialise(store, runs)).shape
    store.latency_s = float(latency_ms) / 1000
    store.clear()
    log, since = Log(store, bounds_of(store, PATIENCE_S, TIMEOUT_S, shape)), time.perf_counter()
    async with running(log.host), beside(*log.chores):
        await USES[does](log, float(amount))
        done = time.perf_counter()
        await log.ends(TIMEOUT_S)
    close_s, sizes = time.perf_counter() - done, (store.bytes_read / MB, store.bytes_written / MB)
    await store.aclose()
    told = done - since, close_s, store.requests.total(), *sizes
    return dict(zip(SHOWN, told, strict=False))


async def load(log: Log, size_mb: float) -> None:
    """Append so many bytes."""
    numbers = iter(range(int(size_mb * MB / BATCH / WIDTH)))

    async def appends() -> None:
        for number in numbers:
            random = Random(number)
            values = [random.randbytes(WIDTH // 2 - 1).hex() for _ in range(BATCH)]
            await log.append_many(f"k{number % KEYS}", values)

    async with anyio.create_task_group() as tasks:
        for _ in range(TASKS):
            tasks.start_soon(appends)


async def status(log: Log, _: float) -> None:
    """Ask how the log is."""
    await log.status()


async def read(log: Log, stay_s: float) -> None:
    """Read a record, and stay."""
    await log.read("k0", 0, 1)
    await anyio.sleep(stay_s)


USES = {"load": load, "status": status, "read": read}


@program
def main(
    *, size: float = 300.0, latency_ms: float = 20.0, runs: str = "json", stay: float = 20.0
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        amounts = {"load": size, "status": 0.0, "read": stay}
        found = (
            (does, alone(used, f"sqlite:///{folder}/log.db", latency_ms, runs, does, amount))
            for does, amount in amounts.items()
        )
        rows = ([does, *(f"{figures[name]:.1f}" for name in SHOWN)] for does, figures in found)
        show_table(("", *SHOWN), rows)


if __name__ == "__main__":
    main()
