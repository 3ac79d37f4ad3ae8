"""S3-Queue as published and repaired beside our log: `python -m performance.s3_queue` writes
docs/performance/s3-queue.md.

Producers append messages of 100 bytes, each as soon as the one before is answered, on a store in memory that
is as far away as one in a cloud (`leaderless.store.clouds`). The clock is virtual and computing takes no
time: so the figures are those of the protocols, and the same on every machine. Dollars are those of
`leaderless.store.wrapped`.
"""

import statistics
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count
from random import Random
from typing import NamedTuple

import click

from leaderless.api.bench import KEY, Appended, Load, Send, append_with, together
from leaderless.api.log import Log
from leaderless.errors import LogError
from leaderless.hosting.host import beside, running
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.clouds import CLOUDS, Distant, Paced
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Store, StoreError
from leaderless.store.wrapped import Counted, Within
from performance.age import line
from performance.harness import ROOT, command_lines, program, show, table_lines, write_page
from simulation.logs import LEADERLESS, LOGS, PUBLISHED
from simulation.loop import VirtualEventLoop, run_virtual
from simulation.s3_queue.published import Topic
from simulation.s3_queue.records import QueueError
from simulation.s3_queue.repaired import RepairedTopic

PAGE = ROOT / "docs" / "performance" / "s3-queue.md"
MEASURED = ("leaderless/api", "leaderless/core", "leaderless/store", "simulation/s3_queue")
TITLES = (
    *("cloud", "log", "producers", "messages/s", "failed", "requests a message"),
    *("$ a million", "p99 ms"),
)
ABOUT = """\
{command}

Medians of {seeds} seeds of {seconds:g} virtual seconds. [s3-queue](../evidence/s3-queue.md) tells what the
three logs are. A message has 100 bytes; bytes and computing take no time. A request takes as long as a
compare-and-set of the cloud, [as others have measured](stores.md#clouds). On `gcs` our log alone waits for
Google's limit. *failed*: appends that raised an error. Requests include upkeep. Dollars are those of the
requests, at the prices of S3 Standard (us-east-1, list price of November 2026: $0.005 a thousand PUT and
LIST, $0.0004 a thousand GET)."""


class Setup(NamedTuple):
    """One measurement; `apart`: each producer is a process of its own."""

    cloud: str
    log: str
    producers: int
    apart: bool = False


@asynccontextmanager
async def opened(log: str, store: Store, process: int) -> AsyncIterator[Send]:
    """A log, open in a process of this number, the first of which makes it; gives what appends to it."""
    if log == LEADERLESS:
        if not process:
            await initialise(store, "json")
        ours = Log(store, bounds_of(store, 60.0, 5.0))
        async with running(ours.host), beside(*ours.chores):
            yield partial(ours.append, KEY)
        return
    make, numbers = Topic if log == PUBLISHED else RepairedTopic, count()
    topic = make(store, lambda: f"{process}-{next(numbers)}")
    if not process:
        await topic.initialise()
    yield lambda value: topic.produce([value])


def measured(case: Setup, seconds: float, seed: int) -> Appended:
    """Append, and count; the seed is that of latencies."""
    cloud = CLOUDS[case.cloud]
    every_s = cloud.every_s if case.log == LEADERLESS else 0.0  # S3-Queue knows no such limit

    async def main(_loop: VirtualEventLoop) -> Appended:
        distant = Within(Distant(MemoryStore(), cloud, Random(seed)), "log")
        processes = range(case.producers if case.apart else 1)
        stores = [Counted(Paced(distant, every_s, Random(f"{seed}/{n}"))) for n in processes]
        async with AsyncExitStack() as stack:
            sends = [
                await stack.enter_async_context(opened(case.log, store, n))
                for n, store in enumerate(stores)
            ]
            load = Load(case.producers, seconds)
            await sends[0](load.value)
            sends *= case.producers // len(sends)
            part = await append_with(sends, load, stores, (QueueError, LogError, StoreError))
            return together([part])

    return run_virtual(main)


def row(case: Setup, seconds: float, seeds: int, pool: Executor) -> list[str]:
    """Measure one case with all seeds, and return its line of the table."""
    runs = [*pool.map(partial(measured, case, seconds), range(seeds))]
    asked = sum(run.appends + run.failed for run in runs)

    def median(name: str, form: str) -> str:
        return format(statistics.median(getattr(run, name) for run in runs), form)

    return [
        *(case.cloud, case.log, str(case.producers)),
        median("appends_a_second", ".1f"),
        f"{sum(run.failed for run in runs) / asked:.0%}",
        median("requests_an_append", ".2f"),
        median("usd_a_million", ".2f"),
        median("p99_ms", ".0f"),
    ]


def page(seconds: float, seeds: int) -> Iterator[str]:
    """The lines of the page, as they are measured."""
    sections = {
        "Tasks of one process": [Setup("s3", log, n) for n in (1, 16) for log in LOGS],
        "The same in other clouds": [
            Setup(cloud, log, 16) for cloud in ("s3-express", "gcs") for log in LOGS
        ],
        "Each producer a process of its own": [Setup("s3", log, 16, apart=True) for log in LOGS],
    }
    with ProcessPoolExecutor() as pool:
        for title, cases in sections.items():
            yield from ("", f"## {title}", "")
            yield from table_lines(TITLES, (row(case, seconds, seeds, pool) for case in cases))


@program(__doc__)
@click.option("--seconds", default=60.0)
@click.option("--seeds", default=4)
def main(*, seconds: float, seeds: int) -> None:
    command = f".venv/bin/python -m performance.s3_queue --seconds {seconds:g} --seeds {seeds}"
    about = ABOUT.format(command=command_lines(command), seeds=seeds, seconds=seconds)
    write_page(
        PAGE,
        "S3-Queue and our log, side by side",
        line(MEASURED),
        "\n".join([about, *show(page(seconds, seeds))]),
    )


if __name__ == "__main__":
    main()
