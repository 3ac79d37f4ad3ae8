"""Measure what a load takes on a store that is far away, and what it leaves to whoever comes next.

    python -m performance.remote_log [--size 300] [--width 1000] [--keys 50] [--latency-ms 20]
                                      [--runs json] [--stay 20]

A producer loads `--size` MB of values of `--width` bytes, 900 kB at a time, with 32 tasks, into a SQLite file.
Each request takes `--latency-ms` longer, but for listings, deletions, and writes of Parquet files. Then others
come, each alone and in a process of its own: `status` asks how the log is; `first` reads a record, and stays
for `--stay` seconds; `read` reads all, key after key; `tail` reads all keys at once. Requests and bytes are
those of objects and of ranges of files; an answer that finds nothing new has no bytes.
"""

import tempfile
import time
from base64 import b64encode
from functools import cached_property, partial
from random import Random
from typing import Annotated, Any, NamedTuple

import anyio
import click

from leaderless.api.log import Log
from leaderless.core.shape import Runs
from leaderless.hosting.host import beside, running
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.counted import Counted
from leaderless.store.files import Files, files_of
from leaderless.store.port import Found, Version
from performance.harness import MB, Figures, alone, open_at, program, show_table

AT_ONCE_MB, TASKS = 0.9, 32
PATIENCE_S, TIMEOUT_S = 30.0, 5.0  # as of `open_log`
SHOWN = ("seconds", "close_s", "requests", "read_mb", "written_mb", "peak_mb")


class Far(Counted):
    """A store with files, which counts the requests for both; each takes `latency_s` longer."""

    latency_s = 0.0

    @cached_property
    def files(self) -> Files:
        """See `leaderless.store.files.HasFiles`."""
        files: Any = files_of(self._store)  # of its own, because nobody else has the store
        for name in ("size", "read_range"):
            setattr(files, name, partial(self._asked, getattr(files, name)))
        found: Files = files
        return found

    def _asked(self, ask: Any, *arguments: object) -> Any:
        time.sleep(self.latency_s)  # a thread's
        self.requests["get"] += 1
        answer = ask(*arguments)
        self.bytes_read += len(answer) if isinstance(answer, bytes) else 0
        return answer

    async def read(self, key: str) -> Found | None:
        """See `Store`."""
        await anyio.sleep(self.latency_s)
        return await super().read(key)

    async def read_again(self, key: str, known: Found) -> Found | None:
        """See `Store`."""
        await anyio.sleep(self.latency_s)
        return await super().read_again(key, known)

    async def create(self, key: str, value: bytes) -> Version:
        """See `Store`."""
        await anyio.sleep(self.latency_s)
        return await super().create(key, value)

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """See `Store`."""
        await anyio.sleep(self.latency_s)
        return await super().compare_and_set(key, value, version)


class Load(NamedTuple):
    """So many bytes, in values of `width` bytes of keys by turns; a reader of its first record stays."""

    size_mb: float
    width: int
    keys: int
    stay_s: float

    @property
    def at_once(self) -> int:
        """Values in an append."""
        return int(AT_ONCE_MB * MB / self.width)

    @property
    def appends(self) -> int:
        """How many there are."""
        return int(self.size_mb / AT_ONCE_MB)


async def used(url: str, latency_ms: str, runs: Runs, does: str, *load: str) -> Figures:
    """Open the log, do one of `USES`, and close it."""
    store, size_mb, width, keys, stay_s = Far(open_at(url)), *load
    shape = (await initialise(store, runs)).shape
    store.latency_s = float(latency_ms) / 1000
    store.clear()
    log, since = Log(store, bounds_of(store, PATIENCE_S, TIMEOUT_S, shape)), time.perf_counter()
    async with running(log.host), beside(*log.chores):
        await USES[does](log, Load(float(size_mb), int(width), int(keys), float(stay_s)))
        done = time.perf_counter()
        await log.ends(TIMEOUT_S)
    close_s, sizes = time.perf_counter() - done, (store.bytes_read / MB, store.bytes_written / MB)
    await store.aclose()
    told = done - since, close_s, store.requests.total(), *sizes
    return dict(zip(SHOWN, told, strict=False))


async def load(log: Log, load: Load) -> None:
    """Append all."""
    numbers = iter(range(load.appends))

    async def appends() -> None:
        for number in numbers:
            random, width = Random(number), load.width
            values = [b64encode(random.randbytes(width))[:width] for _ in range(load.at_once)]
            await log.append_many(f"k{number % load.keys}", [each.decode() for each in values])

    async with anyio.create_task_group() as tasks:
        for _ in range(TASKS):
            tasks.start_soon(appends)


async def status(log: Log, _: Load) -> None:
    """Ask how the log is."""
    await log.status()


async def first(log: Log, load: Load) -> None:
    """Read a record, and stay."""
    await log.read("k0", 0, 1)
    await anyio.sleep(load.stay_s)


async def read(log: Log, load: Load) -> None:
    """Read key after key."""
    count = 0
    for key in range(load.keys):
        at = 0
        while records := await log.read(f"k{key}", at):
            at += len(records)
        count += at
    assert count == load.appends * load.at_once


async def tail(log: Log, load: Load) -> None:
    """Read all keys at once."""
    records = log.tail([f"k{key}" for key in range(load.keys)], "earliest")
    for _ in range(load.appends * load.at_once):
        await anext(records)


USES = {each.__name__: each for each in (load, status, first, read, tail)}


@program
def main(
    *,
    size: float = 300.0,
    width: int = 1000,
    keys: int = 50,
    latency_ms: float = 20.0,
    runs: Annotated[str, click.Choice(["json", "parquet"])] = "json",
    stay: float = 20.0,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        how = f"sqlite:///{folder}/log.db", latency_ms, runs
        found = ((does, alone(used, *how, does, size, width, keys, stay)) for does in USES)
        rows = ([does, *(f"{figures[name]:.1f}" for name in SHOWN)] for does, figures in found)
        show_table(("", *SHOWN), rows)


if __name__ == "__main__":
    main()
