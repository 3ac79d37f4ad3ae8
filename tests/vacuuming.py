"""Stores for tests of `vacuum`, with values that are old at once."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from leaderless.api.log import Log
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found, Store, Version
from leaderless.upkeep.fsck import check
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


async def values_of(store: Store, key: str = "k") -> list[object]:
    """All values of a key, each of them read; the log is whole."""
    assert (await check(store)).findings == []
    async with log_on(store) as log:
        return (await values_of_keys(log)).get(key, [])
