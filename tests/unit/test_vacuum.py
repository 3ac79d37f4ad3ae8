"""`vacuum` deletes what no record refers to, and nothing else (`leaderless.library.maintenance`)."""

import time
from collections.abc import AsyncIterator

import pytest

from leaderless.errors import Indefinite, Unfit
from leaderless.library.host import running
from leaderless.library.log import Log
from leaderless.library.maintenance import Vacuumed
from leaderless.library.place import bounds_of, initialise
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found, Version, all_of

pytestmark = pytest.mark.anyio
LARGE = "x" * 20_000


class Aged(MemoryStore):
    """A store whose objects of large values are two hours old."""

    async def write(self, key: str, value: bytes) -> Version:
        version = await super().write(key, value)
        if key.startswith("data/"):
            self._objects[key] = Found(value, version), time.time() - 7200
        return version


@pytest.fixture
async def store() -> Aged:
    store = Aged()
    await initialise(store)
    return store


@pytest.fixture
async def log(store: Aged) -> AsyncIterator[Log]:
    log = Log(store, bounds_of(store, 5.0, 1.0))
    async with running(*log.hosts):
        yield log


async def data(store: Aged) -> list[str]:
    return [listed.key async for listed in all_of(store, "data")]


async def test_orphans_older_than_the_retention_go(store: Aged, log: Log) -> None:
    await store.write("data/0-orphan", b"12345")
    await log.append("k", LARGE)
    vacuumed = await log.vacuum(3600)
    assert vacuumed == Vacuumed(1, 5, 1)
    assert [record.value for record in await log.read("k")] == [LARGE]
    assert await log.vacuum(3600) == Vacuumed(0, 0, 1)


async def test_younger_ones_stay(store: Aged, log: Log) -> None:
    await store.write("data/0-orphan", b"12345")
    assert await log.vacuum(7300) == Vacuumed(0, 0, 1)


async def test_what_runs_and_segments_refer_to_stays(store: Aged, log: Log) -> None:
    for _ in range(3):
        await log.append_many("k", ["y" * 10_000, LARGE, "y" * 10_000] * 10)
    await store.write("data/0-orphan", b"12345")
    assert (await log.status()).segments > 0
    assert (await log.vacuum()).deleted == 1
    assert len([record for record in await log.read("k") if record.value == LARGE]) == 30


async def test_an_append_that_was_under_way_fails(store: Aged, log: Log) -> None:
    """(1) An append writes its object. (2) A vacuum finds no reference. (3) The append commits: too late."""
    await log.append("k", 0)
    message, _ = await log.data.message(LARGE)  # (1)
    found = await store.read("head")
    assert found is not None
    assert (await log.vacuum()).deleted == 1  # (2)
    after = await store.read("head")
    assert after is not None
    assert after.version != found.version  # so (3), a compare-and-set from `found`, fails
    with pytest.raises(Indefinite, match="not there as it was"):
        await log.data.values([message])


async def test_a_short_retention_is_refused(log: Log) -> None:
    with pytest.raises(Unfit, match="600 s or more"):
        await log.vacuum(599)
    with pytest.raises(Unfit, match="600 s or more"):
        await log.vacuum(float("nan"))


async def test_appends_go_on_after_a_vacuum(store: Aged, log: Log) -> None:
    await log.append("k", 1)
    await store.write("data/0-orphan", b"12345")
    other = Log(store, bounds_of(store, 5.0, 1.0))
    async with running(*other.hosts):
        await other.append("k", 2)
        await log.vacuum()
        assert await other.append("k", 3) == 2
        assert await log.append("k", 4) == 3
