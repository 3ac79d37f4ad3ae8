"""Measure what one reader of a long log takes: `python -m performance.reading [--size 1000] [--width 10000]`.

One process appends `--size` MB of values of `--width` bytes to `--keys` keys, a hundred in a call, and compacts
them. Another one reads them back through a store on which every request takes `--latency-ms`: key after key by
`read`, or all keys at once by `tail`. Both are in this process, and so is the store. Bytes and requests are
those of the reader, files included; a request that finds nothing new has no bytes.
"""

import time
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import Any

import anyio
import click

from leaderless.core.shape import Runs
from leaderless.library.host import beside, running
from leaderless.library.log import Log
from leaderless.library.place import bounds_of, initialise
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found, Store
from performance.harness import MB, program, show_table
from performance.opening import WithFiles, log_in

TITLES = ("runs", "by", "MB a second", "requests", "bytes fetched a byte read")
AT_ONCE = 100  # values in an append


class Far(WithFiles):
    """A store whose requests take `latency_s` each."""

    def __init__(self, store: Store, latency_s: float) -> None:
        super().__init__(store)
        self._latency_s = latency_s

    async def read(self, key: str) -> Found | None:
        """See `Store`."""
        await anyio.sleep(self._latency_s)
        return await super().read(key)

    async def read_again(self, key: str, known: Found) -> Found | None:
        """See `Store`."""
        await anyio.sleep(self._latency_s)
        return await super().read_again(key, known)

    def _counted(self, ask: Any, *arguments: object) -> Any:
        time.sleep(self._latency_s)
        return super()._counted(ask, *arguments)


async def load(store: Store, runs: Runs, size: int, width: int, keys: int) -> None:
    """Append the values, and compact them."""
    made = await initialise(store, runs)
    log = Log(store, bounds_of(store, 600.0, 60.0, made.shape))
    random = Random(0)
    values: list[Any] = [
        b64encode(random.randbytes(width)).decode()[:width] for _ in range(AT_ONCE)
    ]
    async with running(log.host), beside(*log.chores):
        for number in range(size // width // AT_ONCE):
            await log.append_many(f"k{number % keys}", values)
        await log.compact()


@asynccontextmanager
async def reader_of(store: Store) -> AsyncIterator[Log]:
    """A log that does nothing by itself."""
    log = await log_in(store)
    async with running(log.host):
        yield log


async def by_read(log: Log, keys: list[str], count: int) -> None:
    """Read key after key."""
    for key in keys:
        at = 0
        while records := await log.read(key, at):
            at += len(records)
            count -= len(records)
    assert not count


async def by_tail(log: Log, keys: list[str], count: int) -> None:
    """Read all keys at once."""
    records = log.tail(keys, "earliest")
    for _ in range(count):
        await anext(records)


def rows(size: int, width: int, keys: int, latency_s: float) -> Iterator[list[str]]:
    """All measurements, as they are made."""
    count = size // width // AT_ONCE * AT_ONCE
    names = [f"k{number}" for number in range(keys)]
    for runs in ("json", "parquet"):
        store = MemoryStore()
        anyio.run(load, store, runs, size, width, keys)
        for name, work in {"read": by_read, "tail": by_tail}.items():
            far = Far(store, latency_s)

            async def measured(work: Any = work, far: Far = far) -> float:
                async with reader_of(far) as log:
                    since = time.perf_counter()
                    await work(log, names, count)
                    return time.perf_counter() - since

            seconds = anyio.run(partial(measured))
            taken = count * width
            cells = f"{taken / MB / seconds:.1f}", str(far.requests.total())
            yield [runs, name, *cells, f"{far.bytes_read / taken:.3f}"]


@program
def main(*, size: int = 1000, width: int = 10_000, keys: int = 1, latency_ms: float = 20.0) -> None:
    click.echo(f"{size} MB in values of {width} bytes, {keys} keys\n")
    show_table(TITLES, rows(size * MB, width, keys, latency_ms / 1000))


if __name__ == "__main__":
    main()
