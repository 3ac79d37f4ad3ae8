"""Appends of large values, kills, suspensions, lost answers and vacuums in any order, on a clock that jumps.

What must hold: the value of every record can be read, also of one whose append was left open; what was
acknowledged is in the log once; what failed for certain is not in it.
"""

from contextlib import suppress
from random import Random
from typing import Any

import anyio
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderless.api.log import Log
from leaderless.errors import Definite, LogError
from leaderless.store.port import OutcomeUnknown
from tests.around import Around, Call, Kind
from tests.vacuuming import Aged, aged, log_on, values_of

APPENDERS, APPENDS = 3, 4
LARGE = "x" * 17_000
NEVER_S = 20_000.0


class Erratic(Around):
    """What one process sees of `shared`: calls and answers take their time, hours at times, or get lost."""

    def __init__(self, shared: Aged, random: Random) -> None:
        super().__init__(shared)
        self._random = random

    async def _way(self) -> None:
        """The way of a request or of an answer. A long one is as good as a process that stood still."""
        fate = self._random.random()
        await anyio.sleep(self._random.random() * (1000 if fate < 0.05 else 0.3))
        if fate > 0.97:
            raise OutcomeUnknown("it was lost")

    async def around(self, kind: Kind, key: str, call: Call) -> Any:
        if kind in ("list_objects", "delete"):
            return await call()
        await self._way()
        answer = await call()
        await self._way()
        return answer


class World:
    """A log and its appenders; `acknowledged` and `refused` are what they were told."""

    def __init__(self, shared: Aged, random: Random) -> None:
        self._shared, self._random = shared, random
        self.acknowledged: list[str] = []
        self.refused: list[str] = []
        self.deleted = 0

    def _seen(self) -> Erratic:
        return Erratic(self._shared, self._random)

    async def append_all(self, name: int) -> None:
        """One appender after another of this name; some are killed in the midst of it."""
        for number in range(APPENDS):
            patience_s = self._random.choice([2.0, 30.0, NEVER_S])
            with anyio.move_on_after(self._random.choice([0.5, 3.0, NEVER_S, NEVER_S])):
                async with log_on(self._seen(), patience_s, 1.0) as log:
                    await self._append(log, f"{name}-{number}")

    async def _append(self, log: Log, mark: str) -> None:
        try:
            if self._random.random() < 0.4:
                await log.append_named(mark, 1, [("k", [mark, LARGE])])
            else:
                await log.append("k", [mark, LARGE])
        except Definite:
            self.refused.append(mark)
        except LogError:
            pass
        else:
            self.acknowledged.append(mark)

    async def vacuum(self) -> None:
        """Vacuums now and then."""
        for _ in range(2 * APPENDS):
            await anyio.sleep(self._random.random() * 4)
            with suppress(LogError):
                async with log_on(self._seen(), 30.0, 1.0) as log:
                    self.deleted += (await log.vacuum(3600)).deleted


async def keeps_every_value(seed: int) -> World:
    shared, random = await aged(), Random(seed)
    world = World(shared, random)
    async with log_on(shared) as log:
        await log.append("k", ["first", ""])
    async with anyio.create_task_group() as tasks:
        for name in range(APPENDERS):
            tasks.start_soon(world.append_all, name)
        tasks.start_soon(world.vacuum)
    marks = [value[0] for value in await values_of(shared) if isinstance(value, list)]
    assert sorted(set(marks)) == sorted(marks)
    assert set(world.acknowledged) <= set(marks)
    assert not set(world.refused) & set(marks)
    return world


def run(seed: int) -> World:
    return trio.run(keeps_every_value, seed, clock=trio.testing.MockClock(autojump_threshold=0))


@settings(max_examples=40)
@given(st.integers(0, 1 << 32))
def test_every_value_can_be_read_whatever_happens(seed: int) -> None:
    run(seed)


def test_the_runs_are_no_idle_ones() -> None:
    worlds = [run(seed) for seed in range(10)]
    assert sum(world.deleted for world in worlds) > 5
    assert sum(len(world.acknowledged) for world in worlds) > 30
