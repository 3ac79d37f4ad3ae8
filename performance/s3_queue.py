"""S3-Queue as published and repaired beside our log: `python -m performance.s3_queue` writes
docs/performance/s3-queue.md.

Producers append one message after the other, each as soon as the one before is answered. On the virtual bucket
(`simulation.bucket`) a request takes 20 ms, a process has 50 MB/s each way, and computing takes no time: so
the figures are those of the protocols, and the same on every machine. Dollars are those of
`leaderless.store.wrapped`. `--log-bytes`: of the log that is read.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from random import Random
from typing import NamedTuple

import click

from leaderless.api.bench import KEY, READ_LIMIT, Appended, Load, Send, append_with
from leaderless.api.log import Log
from leaderless.hosting.host import beside, running
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.port import Store
from leaderless.store.wrapped import Counted, Within
from performance.harness import ROOT, program, replace_tables, show, table_lines
from simulation.bucket import Body, Bucket
from simulation.loop import VirtualEventLoop, run_virtual
from simulation.programs import LEADERLESS, LOGS, PUBLISHED, Port
from simulation.s3_queue.published import Topic
from simulation.s3_queue.records import QueueError
from simulation.s3_queue.repaired import RepairedTopic

PAGE = ROOT / "docs" / "performance" / "s3-queue.md"
PRODUCERS = (1, 4, 16)
LARGE, OF_LONG_LOG = 100_000, 10_000  # bytes of a value
LATENCY_MS = 20.0
SECONDS = 5.0
SEEDS = 8
BYTES_PER_S = 50e6
LISTED_BYTES = 300  # of one object in a listing
TIMEOUT_S = 60.0
TITLES = (
    *("log", "producers", "value, bytes", "messages/s", "requests a message"),
    *("$ a million", "p50 ms", "p99 ms"),
)
OpenStore = Callable[[int], Store]  # the bucket, as the process of this number sees it


class Case(NamedTuple):
    """One measurement; `apart`: each producer is a process of its own."""

    log: str
    producers: int
    value_bytes: int
    apart: bool = False


@asynccontextmanager
async def producers_of(
    case: Case, stores: OpenStore, seed: int = 0
) -> AsyncIterator[tuple[list[Send], list[Counted]]]:
    """What each producer calls to append, and the stores that count the requests."""
    async with AsyncExitStack() as stack:
        counted = [Counted(stores(n)) for n in range(case.producers if case.apart else 1)]
        sends = [
            await stack.enter_async_context(_opened(case.log, store, f"{seed}-p{n}"))
            for n, store in enumerate(counted)
        ]
        yield sends * (case.producers // len(sends)), counted


@asynccontextmanager
async def _opened(log: str, store: Store, process: str) -> AsyncIterator[Send]:
    names = count()
    if log != LEADERLESS:
        make = Topic if log == PUBLISHED else RepairedTopic
        topic = make(Within(store, log), lambda: f"{process}-{next(names)}", Random(process))
        await topic.initialise()
        yield lambda value: topic.produce([value])
        return
    store = Within(store, log)
    await initialise(store, "json")
    ours = Log(store, bounds_of(store, 60.0, 5.0))
    async with running(ours.host), beside(*ours.chores):
        yield lambda value: ours.append(KEY, value)


async def measured(case: Case, stores: OpenStore, seconds: float, seed: int = 0) -> Appended:
    """Append, and count; the seed is that of S3-Queue's pauses after a lost race."""
    load = Load(case.producers, seconds, case.value_bytes)
    async with producers_of(case, stores, seed) as (sends, counted):
        await sends[0](load.value)
        return await append_with(sends, load, counted, (QueueError,))


def virtual(case: Case, latency_ms: float, seconds: float = SECONDS, seed: int = 0) -> Appended:
    """On a virtual bucket."""

    async def main(loop: VirtualEventLoop) -> Appended:
        bucket = Bucket(loop.time, keep=False)
        return await measured(case, _stores(bucket, latency_ms), seconds, seed)

    return run_virtual(main)


def times_as_many(producers: int, latency_ms: float) -> float:
    """Our messages a second, divided by those of S3-Queue as published, of 100 bytes each.

    The races of S3-Queue end otherwise with each seed: 9.6 to 13.7 messages/s at 16 producers and 20 ms. So the
    mean of `SEEDS` is taken.
    """
    ours = virtual(Case(LEADERLESS, producers, 100), latency_ms)
    theirs = [
        virtual(Case(PUBLISHED, producers, 100), latency_ms, seed=seed) for seed in range(SEEDS)
    ]
    return ours.appends_a_second * SEEDS / sum(one.appends_a_second for one in theirs)


def _stores(bucket: Bucket, latency_ms: float) -> OpenStore:
    return lambda number: slow_port(bucket, f"p{number}", latency_ms)


def slow_port(bucket: Bucket, client: str, latency_ms: float) -> Port:
    """A port of one process: half of a latency each way, and a link each way for the bytes of all requests."""
    free_at = {"up": 0.0, "down": 0.0}

    def later(way: str, sent: Body, arrive: Callable[[Body], object], body: Body) -> None:
        loop = asyncio.get_running_loop()
        size = len(sent.get("value", "")) + LISTED_BYTES * len(sent.get("found", ()))
        free_at[way] = max(free_at[way], loop.time()) + size / BYTES_PER_S
        loop.call_at(free_at[way] + latency_ms / 2000, arrive, body)

    def arrive(body: Body) -> None:
        answer = bucket.carried_out(client, body)
        later("down", answer, port.answered, {**answer, "in_reply_to": body["msg_id"]})

    port = Port(lambda body: later("up", body, arrive, body), timeout_s=TIMEOUT_S)
    return port


class Reading(NamedTuple):
    """A new reader: requests and seconds until it has the first record, and all that were asked for."""

    requests: int
    first_s: float
    all_s: float


def reading(messages: int, value_bytes: int, wanted: int, latency_ms: float = 20.0) -> Reading:
    """Append so many messages and compact them; then read the first `wanted` of them with a new process."""

    async def main(loop: VirtualEventLoop) -> Reading:
        bucket = Bucket(loop.time, keep=False)
        await _filled(_stores(bucket, 1.0)(0), messages, value_bytes)
        counted = Counted(Within(_stores(bucket, latency_ms)(1), LEADERLESS))
        log = Log(counted, bounds_of(counted, 60.0, 5.0))
        began = loop.time()
        async with running(log.host):
            got = len(await log.read(KEY, 0, min(wanted, READ_LIMIT)))
            first_s = loop.time() - began
            while got < wanted:
                got += len(await log.read(KEY, got, min(wanted - got, READ_LIMIT)))
        return Reading(counted.requests.total(), first_s, loop.time() - began)

    return run_virtual(main)


async def _filled(store: Store, messages: int, value_bytes: int) -> None:
    at_once = max(1, min(READ_LIMIT, 800_000 // value_bytes))
    value = Load(value_bytes=value_bytes).value
    store = Within(store, LEADERLESS)
    await initialise(store, "json")
    log = Log(store, bounds_of(store, 60.0, 5.0))
    async with running(log.host), beside(*log.chores):
        for start in range(0, messages, at_once):
            await log.append_many(KEY, [value] * min(at_once, messages - start))
        await log.compact()  # appends without a pause are faster than it


# ---------------------------------------------------------------- the page


def page(log_bytes: int) -> Iterator[str]:
    """The lines of the page, as they are measured."""

    def rows(cases: list[Case]) -> Iterator[list[str]]:
        return (row(case, virtual(case, LATENCY_MS)) for case in cases)

    small = [Case(log, n, 100) for n in PRODUCERS for log in LOGS]
    large = [Case(log, n, LARGE) for n in (1, 16) for log in LOGS]
    yield f"\n## Requests take {LATENCY_MS:g} ms: tasks of one process\n"
    yield from table_lines(TITLES, rows([*small, *large]))
    yield "\n## The same: each producer a process of its own\n"
    yield from table_lines(TITLES, rows([Case(log, 16, 100, apart=True) for log in LOGS]))
    yield "\nProcesses share nothing, so each append must win the race for one object, with every log."
    times = times_as_many(16, LATENCY_MS)
    few, many = reading(1000, 100, 1000), reading(log_bytes // OF_LONG_LOG, OF_LONG_LOG, 1)
    yield "\n## Beside\n"
    yield f"- 16 producers: {times:.0f} times S3-Queue's messages/s (mean of {SEEDS} seeds)."
    yield f"- A new reader gets 1000 messages with so many requests: {few.requests}."
    size = f"{log_bytes / 1e9:g} GB"
    yield f"- It has the first record of {size} after {many.first_s:.2f} s and {many.requests} requests."


def row(case: Case, got: Appended) -> list[str]:
    """A line of a table."""
    rate, requests = f"{got.appends_a_second:.1f}", f"{got.requests_an_append:.2f}"
    times = f"{got.p50_ms:.0f}", f"{got.p99_ms:.0f}"
    given = case.log, str(case.producers), str(case.value_bytes)
    return [*given, rate, requests, f"{got.usd_a_million:.2f}", *times]


@program(__doc__)
@click.option("--log-bytes", default=1_000_000_000)
def main(*, log_bytes: int) -> None:
    lines = show(page(log_bytes))
    replace_tables(PAGE, "python -m performance.s3_queue", lines)


if __name__ == "__main__":
    main()
