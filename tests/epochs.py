"""Epochs of a sink without Spark: rows, what Spark does with them, and drivers that die.

In transcripts (`tests.datadriven.programs`) each command is that of a process with a log of its own:

    > p stage q/0 a              a task stages the rows 0 to 15 of this epoch of a writer, as an attempt `a`
    > p plan q/0 a [batch=200]   a driver makes the plan, with batches of so many bytes
    > p begin q/0 a              a task stages, a driver makes the plan, and appends the first batch
    > p commit q/0 a [batch=20]  a driver commits what the attempt has staged; without one, nothing
    > p run q/0 0 15             what Spark does: three tasks stage the rows from 0 to 15; then a driver commits
    > p abort q/0 a              what Spark does when a task has failed
    > p vacuum                   with a retention of an hour
    > p values                   what is in the log, sorted
    > p fsck                     what it finds
"""

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
from anyio.abc import TaskGroup

from leaderless.api.log import Log
from leaderless.core.shape import Shape
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, initialise, new_shape
from leaderless.spark import staging
from leaderless.spark.encoding import SCHEMA
from leaderless.spark.epochs import abort, append_rows, batches, commit
from leaderless.spark.staging import Epoch, decide
from leaderless.store.port import Store, all_of
from leaderless.upkeep import fsck
from leaderless.upkeep.staged import Plan
from tests.datadriven.runner import chosen_of
from tests.store_process import Names, Process
from tests.tables import values_of_keys


class Encoded(NamedTuple):
    """A row as a task stages it."""

    key: str
    text: bytes
    is_json: bool


ROWS = [Encoded(f"k{number % 3}", orjson.dumps(number), True) for number in range(16)]


def shape_on(store: Store) -> Shape:
    """The shape of their logs."""
    return replace(new_shape(store), seal_entries=2, segments_per_run=2)


@asynccontextmanager
async def opened(store: Store, batch_bytes: int) -> AsyncIterator[Log]:
    bounds = bounds_of(store, 5.0, 1.0, shape_on(store))
    log = Log(store, bounds._replace(limits=replace(bounds.limits, batch_bytes=batch_bytes)))
    async with running(log.host):
        yield log


async def run(store: Store, epoch: Epoch, rows: list[Encoded], batch_bytes: int = 100) -> None:
    """What Spark does with an epoch: tasks stage, in any order and split; then the driver commits."""
    rows = random.Random(repr(rows)).sample(rows, len(rows))
    parts: list[str] = []
    for task in range(3):
        parts += await stage(store, f"{epoch.folder}/{task}-{next(ATTEMPTS)}", rows[task::3])
    async with opened(store, batch_bytes) as log:
        await commit(log, store, epoch, parts)


async def begin(store: Store, epoch: Epoch, name: str) -> list[str]:
    """An epoch with a plan, of whose batches the first is in the log; its parts."""
    parts = await stage(store, f"{epoch.folder}/0-{name}", ROWS)
    plan = await decide(store, epoch, Plan(tuple(parts), 100))
    async with opened(store, 100) as log:
        async for seq, rows in batches(store, epoch, plan):
            await append_rows(log, epoch.writer, seq, rows)
            return parts
    raise AssertionError


ATTEMPTS = count()


def table(rows: list[Encoded]) -> pa.Table:
    """Rows as `leaderless.spark.encoding.rows_of` makes them of a batch of Spark."""
    return pa.Table.from_pylist([row._asdict() for row in rows], schema=SCHEMA)


async def stage(store: Store, folder: str, rows: list[Encoded]) -> list[str]:
    """What a task does with rows, some of them at a time."""
    return await staging.stage(store, folder, [table(rows[:3]), table(rows[3:])])


async def contents(store: Store) -> list[Any]:
    async with opened(store, 100) as log:
        return [value for values in (await values_of_keys(log)).values() for value in values]


async def left_over(store: Store) -> list[str]:
    return [listed.key async for listed in all_of(store, "sink")]


class Sink(Process):
    """Tasks and drivers of a sink. What they have staged is known to all that are called so."""

    def __init__(self, store: Store, tasks: TaskGroup, names: Names) -> None:
        super().__init__(store, tasks, names)
        self._parts: dict[str, list[str]] = {}

    async def open(self) -> None:
        await initialise(self.store, shape=shape_on(self.store))

    async def _stage(self, epoch: str, name: str) -> None:
        self._parts[name] = await stage(self.store, f"{epoch_of(epoch).folder}/0-{name}", ROWS)

    async def _plan(self, epoch: str, name: str, *chosen: str) -> None:
        plan = Plan(tuple(self._parts[name]), batch_of(chosen))
        await decide(self.store, epoch_of(epoch), plan)

    async def _begin(self, epoch: str, name: str) -> None:
        self._parts[name] = await begin(self.store, epoch_of(epoch), name)

    async def _commit(self, epoch: str, *names: str) -> None:
        parts = [
            part for name in names if "=" not in name for part in self._parts.get(name, [name])
        ]
        async with opened(self.store, batch_of(names)) as log:
            await commit(log, self.store, epoch_of(epoch), parts)

    async def _run(self, epoch: str, first: str = "0", last: str = "-1") -> None:
        numbers = range(int(first), int(last) + 1)
        rows = [Encoded(f"k{number % 3}", orjson.dumps(number), True) for number in numbers]
        await run(self.store, epoch_of(epoch), rows)

    async def _abort(self, epoch: str, name: str) -> None:
        await abort(self.store, epoch_of(epoch), self._parts[name])

    async def _vacuum(self) -> str:
        async with opened(self.store, 100) as log:
            return f"{(await log.vacuum(3600)).staged} deleted"

    async def _values(self) -> str:
        return " ".join(map(str, sorted(await contents(self.store))))

    async def _fsck(self) -> str:
        report = await fsck.check(self.store)
        found = [f"{each.invariant}: {each.object}" for each in report.findings]
        return "\n".join([*found, f"{report.staged} staged"])


def epoch_of(word: str) -> Epoch:
    """A word as an epoch of a writer."""
    writer, _, number = word.rpartition("/")
    return Epoch(writer, int(number))


def batch_of(words: Sequence[str]) -> int:
    """How many bytes a batch has."""
    return int(chosen_of([*words]).get("batch", 100))
