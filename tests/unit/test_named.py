"""Batches under names of the caller (`leaderless.hosting.named`): repeated, and in the log once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from leaderless import open_log
from leaderless.api.log import Log
from leaderless.errors import Fenced, Indefinite, Unfit
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.memory import MemoryStore
from leaderless.store.port import OutcomeUnknown, Version
from leaderless.store.values import Value

pytestmark = pytest.mark.anyio


async def contents(log: Log) -> dict[str, list[object]]:
    return {key: await _values(log, key, end) for key, end in (await log.keys()).items()}


async def _values(log: Log, key: str, end: int) -> list[object]:
    values: list[object] = []
    while len(values) < end:
        values += [each.value for each in await log.read(key, len(values))]
    return values


@asynccontextmanager
async def small(store: MemoryStore) -> AsyncIterator[Log]:
    """A log whose segments and runs are so small that a few appends fill them."""
    bounds = bounds_of(store, 5.0, 1.0)
    shape = replace(bounds.shape, seal_entries=2, segments_per_run=2, page_children=2)
    log = Log(store, bounds._replace(shape=shape))
    async with running(log.host):
        yield log


async def test_a_batch_is_appended_once_however_often_it_is_repeated(url: str) -> None:
    records: list[tuple[str, Value]] = [
        ("a", 1),
        ("b", {"x": [2]}),
        ("a", b"3"),
        ("a", "x" * 50_000),
    ]
    for _ in range(3):
        async with open_log(url) as log:
            assert await log.has_named("w", 7) == bool(await log.keys())
            await log.append_named("w", 7, records)
            await log.append_named("w", 7, records)
            assert await log.has_named("w", 7)
            assert not await log.has_named("w", 8)
    async with open_log(url) as log:
        assert await contents(log) == {"a": [1, b"3", "x" * 50_000], "b": [{"x": [2]}]}


async def test_one_with_a_lower_number_counts_as_appended(url: str) -> None:
    async with open_log(url) as log:
        await log.append_named("w", 7, [("a", 7)])
        await log.append_named("w", 6, [("a", 6)])
        await log.append_named("v", 6, [("a", "another writer")])
        await log.append_named("w", 8, [("a", 8)])
        assert await contents(log) == {"a": [7, "another writer", 8]}


async def test_racing_copies_of_a_batch_are_one(url: str) -> None:
    async with open_log(url) as one, open_log(url) as other, anyio.create_task_group() as tasks:
        for number in range(10):
            for log in (one, other, one):
                tasks.start_soon(log.append_named, f"w{number}", 1, [("a", number)])
    async with open_log(url) as log:
        assert sorted(map(str, (await contents(log))["a"])) == [*map(str, range(10))]


async def test_it_is_recognised_after_many_other_writers_and_compaction() -> None:
    store = MemoryStore("x")
    await initialise(store)
    async with small(store) as log:
        await log.append_named("old", 1, [("a", "old")])
        for number in range(60):
            await log.append_named(f"w{number}", 1, [("a", number)])
        assert await log.compact() > 20
    async with small(store) as log:
        await log.append_named("old", 1, [("a", "again")])
        await log.append_named("w3", 1, [("a", "again")])
        assert await contents(log) == {"a": ["old", *range(60)]}


async def test_an_answer_that_is_lost_makes_no_second_batch() -> None:
    class Forgetful(MemoryStore):
        """Every second compare-and-set is carried out, and its answer is lost."""

        calls = 0

        async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
            new = await super().compare_and_set(key, value, version)
            self.calls += 1
            if self.calls % 2:
                raise OutcomeUnknown("the answer is lost")
            return new

    store = Forgetful("x")
    await initialise(store)
    async with small(store) as log:
        for number in range(20):
            await log.append_named("w", number, [("a", number)])
        assert (await contents(log))["a"] == [*range(20)]
    assert store.calls > 10


async def test_a_silent_store_leaves_it_open() -> None:
    class Silent(MemoryStore):
        async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
            raise OutcomeUnknown("silence")

        async def create(self, key: str, value: bytes) -> Version:
            raise OutcomeUnknown("silence")

    store = Silent("x")
    log = Log(store, bounds_of(store, 0.3, 0.1))
    async with running(log.host):
        with pytest.raises(Indefinite, match=r"may have happened|under its name"):
            await log.append_named("w", 1, [("a", 1)])


async def test_a_fence_refuses_it_until_it_is_lifted(url: str) -> None:
    async with open_log(url) as log:
        await log.fence()
        with pytest.raises(Fenced):
            await log.append_named("w", 1, [("a", 1)])
        await log.unfence()
        await log.append_named("w", 1, [("a", 1)])
        await log.fence()
        await log.append_named("w", 1, [("a", 1)])
        async with open_log(url) as other:  # which has not read the log yet
            await other.append_named("w", 1, [("a", 1)])
        assert await contents(log) == {"a": [1]}


@pytest.mark.parametrize(
    ("writer", "seq", "records"),
    [
        ("", 1, [("a", 1)]),
        ("w", -1, [("a", 1)]),
        ("w", True, [("a", 1)]),
        ("w", 1, [("x" * 2000, 1)]),
    ],
)
async def test_what_is_no_name_or_no_key_is_refused(
    url: str, writer: str, seq: int, records: list[tuple[str, int]]
) -> None:
    async with open_log(url) as log:
        with pytest.raises(Unfit):
            await log.append_named(writer, seq, [*records])
        assert await log.keys() == {}


async def test_a_batch_has_its_size(url: str) -> None:
    async with open_log(url) as log:
        with pytest.raises(Unfit, match="make it smaller"):
            await log.append_named("w", 1, [("a", "x" * 10_000)] * 200)
        assert await log.keys() == {}
