"""`leaderless bench`: what a store gives a log, in appends a second, requests and dollars.

It makes a log of its own beside those that are there, appends to it from many tasks of one process or of
several, reads it with a new reader, and deletes it.
"""

import gc
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from itertools import chain
from statistics import quantiles
from typing import NamedTuple

import anyio
import anyio.to_process

from leaderless.api.log import Log
from leaderless.errors import LogError
from leaderless.hosting.host import beside, running
from leaderless.hosting.place import bounds_of, initialise
from leaderless.peers.sockets import peers_of
from leaderless.store.calls import delete_all, own_keys, reached, side_by_side
from leaderless.store.port import Store
from leaderless.store.wrapped import Counted, Within, dollars

KEY = "bench"
READ_LIMIT = 1000
Send = Callable[[str], Awaitable[object]]
STORE_TIMEOUT_S = 5.0
# So long processes have to open the log before the first append, and each of them so much more.
START_S, START_EACH_S = 1.0, 0.05


class Load(NamedTuple):
    """What is appended: values of `value_bytes` bytes as JSON, by `tasks`, one after the other, for `seconds`.

    `patience_s`: how long one append may take. `processes`: each with so many tasks; 0: this one. `peers`: see
    `leaderless.open_log`.
    """

    tasks: int = 16
    seconds: float = 5.0
    value_bytes: int = 100
    patience_s: float = 30.0
    processes: int = 0
    peers: str | None = None

    @property
    def value(self) -> str:
        """A text that has so many bytes as JSON; the least is 2."""
        return "x" * max(0, self.value_bytes - 2)


class Appended(NamedTuple):
    """Appends. `failed`: those that raised; `handed_over`: batches that a process asked another one to commit.

    Times are those of callers, in milliseconds.

    Requests are to the store, those that upkeep makes beside appends among them; `usd_a_million`: what the
    requests of a million appends cost on S3, or on Google's storage.
    """

    appends: int
    failed: int
    handed_over: int
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


class Part(NamedTuple):
    """What one process did: how long each append took, and what all of them did."""

    took: list[float]
    failed: int
    elapsed_s: float
    requests: Counter[str]
    bytes_written: int
    handed_over: int = 0


async def bench(
    store: Store, load: Load, make_store: Callable[[], Store] | None = None
) -> tuple[Appended, WasRead]:
    """Measure. `make_store`: makes the same store in another process.

    Raises `LogError` when there can be no log in the store.
    """
    prefix = f"topic/bench-{secrets.token_hex(8)}"
    counted = Counted(Within(store, prefix))
    await reached(partial(initialise, counted, "json"), load.patience_s, reads=False)
    try:
        async with opened(counted, load) as log:
            await log.append(KEY, load.value)
        if make_store and load.processes:
            parts = await _parts(make_store, prefix, load)
        else:
            parts = [await _part(counted, load)]
        async with opened(counted, load) as log:
            counted.clear()
            read = await _read(log, counted)
    finally:
        with anyio.CancelScope(shield=True):
            everything = await own_keys(counted, "", load.patience_s)
            await delete_all(counted, everything, load.patience_s)
    return together(parts), read


@asynccontextmanager
async def opened(store: Store, load: Load, peers: str | None = None) -> AsyncIterator[Log]:
    """A log of the shape that `initialise` gives runs of JSON."""
    bounds = bounds_of(store, load.patience_s, STORE_TIMEOUT_S)
    log = Log(store, bounds, make_peers=await peers_of(store, peers))
    async with running(log.host), beside(*log.chores):
        yield log
        await log.leaves()


async def _parts(make_store: Callable[[], Store], prefix: str, load: Load) -> list[Part]:
    """What processes do that begin together: each has opened the log once before."""
    limiter = anyio.CapacityLimiter(load.processes)
    for each, after_s in (
        (load._replace(seconds=0.0), 0.0),
        (load, START_S + START_EACH_S * load.processes),
    ):
        work = partial(anyio.run, _apart, make_store, prefix, each, time.time() + after_s)
        parts = await side_by_side(
            [partial(anyio.to_process.run_sync, work, limiter=limiter)] * load.processes
        )
    return parts


async def _apart(make_store: Callable[[], Store], prefix: str, load: Load, begin: float) -> Part:
    gc.freeze()  # what was imported lives as long as this process
    async with aclosing(make_store()) as store:
        return await _part(Counted(Within(store, prefix)), load, begin)


async def _part(counted: Counted, load: Load, begin: float = 0.0) -> Part:
    """Append from `begin` on, in seconds since 1970."""
    async with opened(counted, load, load.peers) as log:
        await log.read(KEY, 0, 1)
        await anyio.sleep(max(0.0, begin - time.time()))
        part = await append_with(
            [partial(log.append, KEY)] * load.tasks, load, [counted], (LogError,)
        )
        return part._replace(handed_over=log.hand_overs["asked"])


async def append_with(
    sends: Sequence[Send],
    load: Load,
    stores: Sequence[Counted],
    failures: tuple[type[Exception], ...],
) -> Part:
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
    return Part(
        took,
        failed,
        anyio.current_time() - began,
        sum((store.requests for store in stores), Counter[str]()),
        sum(store.bytes_written for store in stores),
    )


def together(parts: Sequence[Part]) -> Appended:
    """The appends of all parts."""
    took = [*chain.from_iterable(part.took for part in parts)]
    elapsed_s = max(part.elapsed_s for part in parts)
    requests = sum((part.requests for part in parts), Counter[str]())
    done = max(1, len(took))
    cuts = quantiles(took, n=100) if len(took) > 1 else (took or [0.0]) * 99
    return Appended(
        appends=len(took),
        failed=sum(part.failed for part in parts),
        handed_over=sum(part.handed_over for part in parts),
        appends_a_second=len(took) / elapsed_s if elapsed_s else 0.0,
        p50_ms=cuts[49] * 1000,
        p99_ms=cuts[98] * 1000,
        requests_an_append=requests.total() / done,
        bytes_an_append=sum(part.bytes_written for part in parts) / done,
        usd_a_million=1e6 * dollars(requests) / done,
    )


async def _read(log: Log, counted: Counted) -> WasRead:
    began, offset = anyio.current_time(), 0
    while records := await log.read(KEY, offset, READ_LIMIT):
        offset = records[-1].offset + 1
    elapsed_s = anyio.current_time() - began
    rate = offset / elapsed_s if elapsed_s else 0.0
    return WasRead(offset, rate, counted.requests.total())
