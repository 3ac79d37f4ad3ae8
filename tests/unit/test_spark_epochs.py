"""Epochs of the Spark sink, without Spark: drivers that die or stand still (`leaderless.spark.epochs`).

`tests/datadriven/sinks/epochs.txt` has what becomes of an epoch step by step.
"""

import anyio
import pytest

from leaderless.hosting.data import written_at
from leaderless.hosting.place import initialise
from leaderless.spark.encoding import values_by_key
from leaderless.spark.epochs import batches, commit
from leaderless.spark.settings import Place
from leaderless.spark.sink import BatchSink, Target
from leaderless.spark.staging import Epoch, groups
from leaderless.store.memory import MemoryStore
from leaderless.store.options import StoreOptions
from leaderless.store.port import Listed
from leaderless.upkeep.staged import Plan, attempt_name, staged_at
from tests.epochs import (
    Encoded,
    begin,
    contents,
    left_over,
    opened,
    shape_on,
    stage,
    table,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store() -> MemoryStore:
    return await new_store()


async def new_store() -> MemoryStore:
    store = MemoryStore("x")
    await initialise(store, shape=shape_on(store))
    return store


def test_the_groups_of_rows_are_part_of_the_format() -> None:
    """A driver of another version finishes a plan by the same groups: else rows come twice, or never."""
    rows = [Encoded("k", b"x" * size, True) for size in (1, 30, 60, 20, 200, 1, 1, 1)]
    found = [[len(text) for text in some["text"].to_pylist()] for some in groups(table(rows), 100)]
    assert found == [[1, 30], [60], [20], [200], [1, 1, 1]]


async def test_a_batch_has_few_keys_and_each_of_them_in_order(store: MemoryStore) -> None:
    """Rows come with the keys mixed; a batch with one block for each row costs the log far more."""
    rows = [Encoded(f"k{number % 7}", b"%d" % number, True) for number in range(70)]
    epoch = Epoch("q", 0)
    plan = Plan(tuple(await stage(store, f"{epoch.folder}/0-a", rows)), 100)
    async with opened(store, 100) as log:
        found = [values_by_key(rows) async for _, rows in batches(store, epoch, plan)]
        await commit(log, store, epoch, [*plan.parts])
        for key in range(7):
            assert [each.value for each in await log.read(f"k{key}")] == [*range(key, 70, 7)]
    assert len(found) == 14
    assert max(map(len, found)) <= 2


# ---------------------------------------------------------------- a plan is finished, or the load is refused


def test_a_write_without_any_message_looks_for_its_own_plan() -> None:
    place = Place("memory:no-message", None, StoreOptions())
    sink, store = BatchSink(Target(place, plain_text=False), "load"), place.store()
    sink.commit([None])  # there is no log, and nothing to write
    assert anyio.run(store.list_objects) == []

    async def prepare() -> None:
        await initialise(store, shape=shape_on(store))
        await begin(store, Epoch("spark/load", 0), "first")

    anyio.run(prepare)
    sink.commit([None, None])
    assert sorted(anyio.run(contents, store)) == [*range(16)]
    BatchSink(Target(place, plain_text=False), "other").commit([])
    assert anyio.run(left_over, store) == []


# ---------------------------------------------------------------- a vacuum of what sinks have staged

EPOCH = Epoch("spark/q", 0)


def test_a_store_without_times_has_them_in_the_names() -> None:
    name, other = (f"{EPOCH.folder}/{attempt_name(3, 7)}/000000" for _ in range(2))
    assert name != other
    assert 0 < staged_at(Listed(name, None, None), 1e12) < 1e12
    assert staged_at(Listed(f"{EPOCH.folder}/000003-7/000000", None, None), 5.0) == 5.0
    assert staged_at(Listed(f"{EPOCH.folder}/plan", None, None), 5.0) == 0.0
    times = [written_at(Listed("data/7-1-b", 1, modified)) for modified in (None, 9.0)]
    assert times == [7.0, 9.0]
