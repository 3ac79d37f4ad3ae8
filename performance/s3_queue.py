"""S3-Queue as published and repaired beside our log: `python -m performance.s3_queue` writes
docs/performance/s3-queue.md.

Producers append one message after the other, each as soon as the one before is answered. On the virtual bucket
(`simulation.objects`) latency is constant, a process has 50 MB/s each way, and computing takes no time: so the
figures are those of the protocols, and the same on every machine. With moto's server requests are real, and
one Python process answers all of them.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from random import Random
from typing import NamedTuple

import anyio
import click

from leaderless.library.bench import KEY, READ_LIMIT, Appended, Load, Send, append_with
from leaderless.library.host import beside, running
from leaderless.library.log import Log
from leaderless.library.place import bounds_of, initialise
from leaderless.store.counted import PRICES_AS_OF, Counted
from leaderless.store.port import Store
from leaderless.store.urls import open_store
from leaderless.store.wrapped import Within
from performance import ROOT, table_lines
from s3_queue.published import Topic
from s3_queue.records import QueueError
from s3_queue.repaired import RepairedTopic
from simulation.objects.bucket import Bucket
from simulation.objects.client import Faults, Network, VirtualStore
from simulation.objects.loop import VirtualEventLoop, run_virtual
from simulation.objects.scenario import LEADERLESS, LOGS, PUBLISHED
from tests import servers

PAGE = ROOT / "docs" / "performance" / "s3-queue.md"
PRODUCERS = (1, 4, 16)
VALUES = (100, 10_000, 100_000)
LATENCIES_MS = (5, 20, 50)
SECONDS = 5.0
BYTES_PER_S = 50e6
TITLES = (
    *("log", "producers", "value, bytes", "messages/s", "requests a message"),
    *("bytes a message", "$ a million", "p50 ms", "p99 ms", "failed"),
)
OpenStore = Callable[[int], Store]  # the bucket, as the process of this number sees it
TEXT = """\
# S3-Queue and our log, side by side

For those who choose a log on object storage. `python -m performance.s3_queue` writes this page;
[s3-queue](../s3-queue.md) tells what the three logs are.

Each producer appends one message after the other, for {seconds:g} s. On the virtual bucket a request takes the
latency that is given, and a process has 50 MB/s each way; computing takes no time. Requests are all that reach
the bucket, those of upkeep too. Dollars are those of the requests alone
({prices}: $0.005 a thousand PUT and LIST, $0.0004 a
thousand GET). *Failed*: appends that gave up; S3-Queue does after ten
lost races for the counter.
"""


class Case(NamedTuple):
    """One measurement; `apart`: each producer is a process of its own."""

    log: str
    producers: int
    value_bytes: int
    apart: bool = False


@asynccontextmanager
async def producers_of(
    case: Case, stores: OpenStore
) -> AsyncIterator[tuple[list[Send], list[Counted]]]:
    """What each producer calls to append, and the stores that count the requests."""
    async with AsyncExitStack() as stack:
        counted = [Counted(stores(n)) for n in range(case.producers if case.apart else 1)]
        sends = [await stack.enter_async_context(_opened(case.log, store)) for store in counted]
        yield sends * (case.producers // len(sends)), counted


@asynccontextmanager
async def _opened(log: str, store: Store) -> AsyncIterator[Send]:
    names = count()
    prefix = f"{id(store)}"
    if log != LEADERLESS:
        make = Topic if log == PUBLISHED else RepairedTopic
        topic = make(Within(store, log), lambda: f"{prefix}-{next(names)}", Random(prefix))
        await topic.initialise()
        yield lambda value: topic.produce([value])
        return
    store = Within(store, log)
    await initialise(store, "json")
    ours = Log(store, bounds_of(store, 60.0, 5.0))
    async with running(ours.host), beside(*ours.chores):
        yield lambda value: ours.append(KEY, value)


async def measured(case: Case, stores: OpenStore, seconds: float) -> Appended:
    """Append, and count."""
    load = Load(case.producers, seconds, case.value_bytes)
    async with producers_of(case, stores) as (sends, counted):
        await sends[0](load.value)
        return await append_with(sends, load, counted, (QueueError,))


def virtual(case: Case, latency_ms: float, seconds: float = SECONDS) -> Appended:
    """On a virtual bucket."""

    async def main(loop: VirtualEventLoop) -> Appended:
        bucket = Bucket(loop.time, keep=False)
        return await measured(case, _stores(bucket, latency_ms), seconds)

    return run_virtual(main)


def _stores(bucket: Bucket, latency_ms: float) -> OpenStore:
    network = Network(latency_ms, bytes_per_s=BYTES_PER_S, timeout_s=60.0)
    faults = Faults({}, Random(0))
    return lambda number: VirtualStore(bucket, f"p{number}", network, faults, Random(number))


def on_moto(case: Case, endpoint: str, seconds: float) -> Appended:
    """On moto's server."""
    servers.make_bucket(endpoint)

    def stores(_number: int) -> Store:
        return open_store(f"s3://{servers.BUCKET}", servers.s3_options(endpoint))

    return anyio.run(measured, case, stores, seconds)


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


def page(seconds_moto: float, log_bytes: int) -> Iterator[str]:
    """The lines of the page, as they are measured."""
    yield TEXT.format(seconds=SECONDS, prices=PRICES_AS_OF)
    found: dict[tuple[float, Case], Appended] = {}

    def rows(latency_ms: float, cases: list[Case]) -> Iterator[list[str]]:
        for case in cases:
            found[latency_ms, case] = virtual(case, latency_ms)
            yield row(case, found[latency_ms, case])

    alone = [Case(log, n, size) for size in VALUES for n in PRODUCERS for log in LOGS]
    for latency_ms in LATENCIES_MS:
        yield f"\n## Requests take {latency_ms} ms: tasks of one process\n"
        yield from table_lines(TITLES, rows(latency_ms, alone))
    apart = [Case(log, n, 100, apart=True) for n in (4, 16) for log in LOGS]
    yield "\n## Requests take 20 ms: each producer a process of its own\n"
    yield from table_lines(TITLES, rows(20, apart))
    yield "\nProcesses share nothing, so each append must win the race for one object, with every log."
    yield f"\n## moto's server, real requests, {seconds_moto:g} s each: tasks of one process\n"
    with servers.moto() as endpoint:
        cases = [Case(log, n, 100) for n in PRODUCERS for log in LOGS]
        real = (row(case, on_moto(case, endpoint, seconds_moto)) for case in cases)
        yield from table_lines(TITLES, real)
    yield "\n## Aims\n"
    yield from table_lines(("aim", "measured", "reached"), aims(found, log_bytes))


def row(case: Case, got: Appended) -> list[str]:
    """A line of a table."""
    return [
        case.log,
        str(case.producers),
        str(case.value_bytes),
        f"{got.appends_a_second:.1f}",
        f"{got.requests_an_append:.2f}",
        f"{got.bytes_an_append:.0f}",
        f"{got.usd_a_million:.2f}",
        f"{got.p50_ms:.0f}",
        f"{got.p99_ms:.0f}",
        str(got.failed),
    ]


def aims(found: dict[tuple[float, Case], Appended], log_bytes: int) -> Iterator[list[str]]:
    """What was wanted, what was measured, and whether it is enough."""
    ours, theirs = (found[20, Case(log, 16, 100)] for log in (LEADERLESS, PUBLISHED))
    ratio = ours.appends_a_second / theirs.appends_a_second
    yield _aim(
        "16 producers, 20 ms: 50 times S3-Queue's messages/s", f"{ratio:.0f} times", ratio >= 50
    )
    requests = ours.requests_an_append
    yield _aim("the same: at most 0.1 requests a message", f"{requests:.3f}", requests <= 0.1)
    one, other = (found[20, Case(log, 1, 100)] for log in (LEADERLESS, PUBLISHED))
    rates = f"{one.appends_a_second:.1f} against {other.appends_a_second:.1f} messages/s"
    yield _aim("one producer: not slower", rates, one.appends_a_second >= other.appends_a_second)
    most = max(found[20, Case(LEADERLESS, 1, size)].requests_an_append for size in VALUES)
    yield _aim("one producer: at most 3 requests a message", f"{most:.2f}", most <= 3)
    few = reading(1000, 100, 1000)
    yield _aim(
        "a new reader gets 1000 messages in 3 requests", str(few.requests), few.requests <= 3
    )
    many = reading(log_bytes // 10_000, 10_000, 1)
    size = f"{log_bytes / 1e9:g} GB"
    told = f"{many.first_s:.2f} s, {many.requests} requests"
    yield _aim(f"first record of {size}, compacted, at 50 MB/s in 2 s", told, many.first_s < 2)


def _aim(text: str, measured_as: str, reached: bool) -> list[str]:
    return [text, measured_as, "yes" if reached else "**no**"]


@click.command()
@click.option(
    "--seconds-moto", default=5.0, show_default=True, help="Of each row on moto's server."
)
@click.option(
    "--log-bytes", default=1_000_000_000, show_default=True, help="Of the log that is read."
)
def main(seconds_moto: float, log_bytes: int) -> None:
    """Measure, print the page as it grows, and write it."""
    began_s, lines = time.monotonic(), []
    for line in page(seconds_moto, log_bytes):
        click.echo(line)
        lines.append(line)
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    click.echo(f"{PAGE} in {time.monotonic() - began_s:.0f} s")


if __name__ == "__main__":
    main()
