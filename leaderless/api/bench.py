"""`leaderless bench`: what a store gives a log, in appends a second, requests and dollars.

It makes a log of its own beside those that are there, appends to it from many tasks of one process, reads it
with a new reader, and deletes it.
"""

import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from statistics import quantiles
from typing import NamedTuple

import anyio

from leaderless.api.log import Log
from leaderless.errors import LogError
from leaderless.hosting.host import beside, running
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.calls import delete_all, own_keys, reached
from leaderless.store.port import Store
from leaderless.store.wrapped import Counted, Within, dollars

KEY = "bench"
READ_LIMIT = 1000
Send = Callable[[str], Awaitable[object]]
STORE_TIMEOUT_S = 5.0


class Load(NamedTuple):
    """What is appended: values of `value_bytes` bytes as JSON, by `tasks`, one after the other, for `seconds`.

    `patience_s`: how long one append may take.
    """

    tasks: int = 16
    seconds: float = 5.0
    value_bytes: int = 100
    patience_s: float = 30.0

    @property
    def value(self) -> str:
        """A text that has so many bytes as JSON; the least is 2."""
        return "x" * max(0, self.value_bytes - 2)


class Appended(NamedTuple):
    """Appends. `failed`: those that raised. Times are those of callers, in milliseconds.

    Requests are to the store, those that upkeep makes beside appends among them; `usd_a_million`: what the
    requests of a million appends cost on S3, or on Google's storage.
    """

    appends: int
    failed: int
    appends_a_second: float
    p50_ms: float
    p99_ms: float
    requests_an_append: float
    bytes_an_append: float
    usd_a_million: float


class WasRead(NamedTuple):
    """A new reader, which reads the whole log: the time and the requests include finding where it is."""

    records_read: int
    records_a_second: float
    read_requests: int


async def bench(store: Store, load: Load) -> tuple[Appended, WasRead]:
    """Measure. Raises `LogError` when there can be no log in the store."""
    counted = Counted(Within(store, f"topic/bench-{secrets.token_hex(8)}"))
    await reached(partial(initialise, counted, "json"), load.patience_s, reads=False)
    try:
        async with _opened(counted, load) as log:
            await log.append(KEY, load.value)
            sends = [partial(log.append, KEY)] * load.tasks
            appended = await append_with(sends, load, [counted], (LogError,))
        async with _opened(counted, load) as log:
            counted.clear()
            read = await _read(log, counted)
    finally:
        with anyio.CancelScope(shield=True):
            everything = await own_keys(counted, "", load.patience_s)
            await delete_all(counted, everything, load.patience_s)
    return appended, read


@asynccontextmanager
async def _opened(store: Store, load: Load) -> AsyncIterator[Log]:
    """A log whose runs are JSON: a store that counts shows no files."""
    log = Log(store, bounds_of(store, load.patience_s, STORE_TIMEOUT_S))
    async with running(log.host), beside(*log.chores):
        yield log


async def append_with(
    sends: Sequence[Send],
    load: Load,
    stores: Sequence[Counted],
    failures: tuple[type[Exception], ...],
) -> Appended:
    """Append a load through `sends`, one a task, on stores that count. `failures`: what an append may raise."""
    for store in stores:
        store.clear()
    took: list[float] = []
    failed = 0
    began = anyio.current_time()

    async def task(send: Send) -> None:
        nonlocal failed
        while (before := anyio.current_time()) < began + load.seconds:
            try:
                await send(load.value)
            except failures:
                failed += 1
            else:
                took.append(anyio.current_time() - before)

    async with anyio.create_task_group() as tasks:
        for send in sends:
            tasks.start_soon(task, send)
    elapsed_s = anyio.current_time() - began
    done = max(1, len(took))
    requests = sum((store.requests for store in stores), Counter[str]())
    written = sum(store.bytes_written for store in stores)
    cuts = quantiles(took, n=100) if len(took) > 1 else (took or [0.0]) * 99
    return Appended(
        appends=len(took),
        failed=failed,
        appends_a_second=len(took) / elapsed_s if elapsed_s else 0.0,
        p50_ms=cuts[49] * 1000,
        p99_ms=cuts[98] * 1000,
        requests_an_append=requests.total() / done,
        bytes_an_append=written / done,
        usd_a_million=1e6 * dollars(requests) / done,
    )


async def _read(log: Log, counted: Counted) -> WasRead:
    began, offset = anyio.current_time(), 0
    while records := await log.read(KEY, offset, READ_LIMIT):
        offset = records[-1].offset + 1
    elapsed_s = anyio.current_time() - began
    rate = offset / elapsed_s if elapsed_s else 0.0
    return WasRead(offset, rate, counted.requests.total())
