"""Stores for tests of `vacuum`: values that are old at once, and vacuums in the midst of an append."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from leaderless.api.log import Log
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found, Store, Version, all_of
from leaderless.upkeep.fsck import check
from tests.around import READS, Fate, Happens
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


def reach(place: str, meanwhile: Happens, times: int = 1) -> Fate:
    """Something happens at a place of an append: at `read`, before the head is read; at `written`, before the
    answer that a value's object is there; at `head`, before a compare-and-set of the head.
    """
    if place == "written":
        return Fate(["write"], "data/", after=meanwhile, times=times)
    kinds = READS if place == "read" else ["compare_and_set"]
    return Fate(kinds, "head", before=meanwhile, times=times)


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
