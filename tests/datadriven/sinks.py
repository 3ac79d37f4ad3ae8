"""Plays a transcript of a sink on a log in memory: what tasks stage, what drivers commit, what a vacuum takes.

    > fresh                    a new log, with a store that is all right
    > stage q/0 a              a task stages the rows 0 to 15 of this epoch of a writer, as an attempt `a`
    > plan q/0 a [batch=200]   a driver makes the plan, with batches of so many bytes
    > begin q/0 a              a task stages, a driver makes the plan, and appends the first batch
    > commit q/0 a [batch=20]  a driver commits what the attempt has staged; without one, nothing
    > run q/0 0 15             what Spark does: three tasks stage the rows from 0 to 15; then a driver commits
    > abort q/0 a              what Spark does when a task has failed
    > vacuum                   with a retention of an hour: what of it is deleted
    > pass 7200                seconds pass
    > put sink/q/plan {}       an object holds this; `lose`: it is gone, although nobody deletes it
    > damaged 2                the next answers about what is staged are cut off; `damaged 0`: no more
    > values                   what is in the log, sorted
    > left a                   what is staged, as far as it is called so
    > fsck                     what it finds

An error is told by its type and its text.
"""

from collections.abc import Awaitable, Callable

import anyio
import orjson

from leaderless.errors import LogError
from leaderless.hosting.place import initialise
from leaderless.spark.epochs import abort, commit
from leaderless.spark.staging import Epoch, decide
from leaderless.store.memory import MemoryStore
from leaderless.store.values import Encoded
from leaderless.upkeep import fsck
from leaderless.upkeep.staged import Plan
from tests.around import CutOff
from tests.datadriven.runner import Player, chosen_of
from tests.epochs import ROWS, begin, contents, left_over, opened, run, shape_on, stage
from tests.lawful import lawful_memory

Step = Callable[[list[str]], Awaitable[list[str] | None]]


class Sinks(Player):
    """Works on one log after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._store = CutOff()
        self._memory = MemoryStore()
        self._parts: dict[str, list[str]] = {}

    def play(self, text: str) -> str:
        with lawful_memory():
            return super().play(text)

    def otherwise(self, name: str, words: list[str]) -> list[str]:
        step: Step = getattr(self, f"_{name}")
        try:
            return anyio.run(step, words) or []
        except LogError as error:
            return [f"{type(error).__name__}: {error}"]

    async def _fresh(self, words: list[str]) -> None:
        self._memory = MemoryStore("x")
        self._store = CutOff(self._memory, "sink/", times=0)
        await initialise(self._store, shape=shape_on(self._memory))

    async def _stage(self, words: list[str]) -> None:
        self._parts[words[1]] = await stage(
            self._store, f"{epoch_of(words).folder}/0-{words[1]}", ROWS
        )

    async def _plan(self, words: list[str]) -> None:
        plan = Plan(tuple(self._parts[words[1]]), batch_of(words))
        await decide(self._store, epoch_of(words), plan)

    async def _begin(self, words: list[str]) -> None:
        self._parts[words[1]] = await begin(self._store, epoch_of(words), words[1])

    async def _commit(self, words: list[str]) -> None:
        names = [word for word in words[1:] if "=" not in word]
        parts = [part for name in names for part in self._parts.get(name, [name])]
        async with opened(self._store, batch_of(words)) as log:
            await commit(log, self._store, epoch_of(words), parts)

    async def _run(self, words: list[str]) -> None:
        first, last = map(int, words[1:] or (0, -1))
        rows = [
            Encoded(f"k{number % 3}", orjson.dumps(number), True)
            for number in range(first, last + 1)
        ]
        await run(self._store, epoch_of(words), rows)

    async def _abort(self, words: list[str]) -> None:
        await abort(self._store, epoch_of(words), self._parts[words[1]])

    async def _vacuum(self, words: list[str]) -> list[str]:
        before = {each.key: each.size or 0 for each in await self._memory.list_objects("sink")}
        async with opened(self._store, 100) as log:
            done = await log.vacuum(3600)
        gone = [key for key in before if key not in await left_over(self._store)]
        assert (done.staged, done.staged_bytes) == (len(gone), sum(before[key] for key in gone))
        return gone

    async def _pass(self, words: list[str]) -> None:
        self._memory.ahead_s += float(words[0])

    async def _put(self, words: list[str]) -> None:
        await self._store.write(words[0], " ".join(words[1:]).encode())

    async def _lose(self, words: list[str]) -> None:
        del self._memory._objects[words[0]]

    async def _damaged(self, words: list[str]) -> None:
        self._store.times = int(words[0])

    async def _values(self, words: list[str]) -> list[str]:
        found = sorted(await contents(self._store))
        return [" ".join(map(str, found))] if found else []

    async def _left(self, words: list[str]) -> list[str]:
        return [key for key in await left_over(self._store) if all(word in key for word in words)]

    async def _fsck(self, words: list[str]) -> list[str]:
        report = await fsck.check(self._store)
        found = [f"{each.invariant}: {each.object}" for each in report.findings]
        return [*found, f"{report.staged} staged"]


def epoch_of(words: list[str]) -> Epoch:
    """The first word as an epoch of a writer."""
    writer, _, number = words[0].rpartition("/")
    return Epoch(writer, int(number))


def batch_of(words: list[str]) -> int:
    return int(chosen_of(words).get("batch", 100))
