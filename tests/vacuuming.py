"""Stores for tests of `vacuum`: values that are old at once, and vacuums in the midst of an append."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from leaderless.api.log import Log
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found, Store, Version, all_of
from leaderless.upkeep.fsck import check
from tests.around import Around, Call, Kind
from tests.tables import values_of_keys

LARGE = "x" * 20_000
OLD_S = 7200.0
ORPHAN = f"data/0-1-{0:024x}"  # an object that no record refers to


class Aged(MemoryStore):
    """A store whose objects of large values are two hours old."""

    async def write(self, key: str, value: bytes) -> Version:
        version = await super().write(key, value)
        if key.startswith("data/"):
            self._objects[key] = Found(value, version), time.time() - OLD_S
        return version


class Reached(Around):
    """What one process sees of `shared`. At a place of an append it waits for `meanwhile`, `times` times.

    The places: `read` (before the head is read), `written` (before the answer that a value's object is there),
    `head` (before a compare-and-set of the head).
    """

    def __init__(self, shared: Aged) -> None:
        super().__init__(shared)
        self.at: dict[str, Callable[[], Awaitable[object]]] = {}
        self.times = 1
        self.values_written = 0

    async def _pass(self, place: str) -> None:
        if (meanwhile := self.at.get(place)) and self.times:
            self.times -= 1
            await meanwhile()

    async def around(self, kind: Kind, key: str, call: Call) -> Any:
        if key == "head" and kind in ("read", "compare_and_set"):
            await self._pass("read" if kind == "read" else "head")
        answer = await call()
        if kind == "write" and key.startswith("data/"):
            self.values_written += 1
            await self._pass("written")
        return answer


async def aged() -> Aged:
    """A store with a log."""
    store = Aged()
    await initialise(store, "json")
    return store


@asynccontextmanager
async def log_on(
    store: Store, patience_s: float = 30.0, timeout_s: float = 5.0
) -> AsyncIterator[Log]:
    """An open log whose tails are full soon."""
    bounds = bounds_of(store, patience_s, timeout_s)
    log = Log(store, bounds._replace(limits=replace(bounds.limits, lanes=2)))
    async with running(log.host):
        yield log


async def vacuum(store: Store, retention_s: float = 3600.0) -> int:
    """A vacuum of another process; returns how many values it deleted."""
    async with log_on(store) as log:
        return (await log.vacuum(retention_s)).deleted


async def values_of(store: Store, key: str = "k") -> list[object]:
    """All values of a key, each of them read; the log is whole."""
    assert (await check(store)).findings == []
    async with log_on(store) as log:
        return (await values_of_keys(log)).get(key, [])


async def objects_of(store: Store) -> list[str]:
    """The objects of values."""
    return [listed.key async for listed in all_of(store, "data")]
