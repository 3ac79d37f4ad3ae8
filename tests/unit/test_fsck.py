"""`fsck` names each invariant that a log breaks, and finds nothing in one that is whole."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from leaderless.library.fsck import check
from leaderless.library.host import running
from leaderless.library.log import Log
from leaderless.library.place import Bounds, bounds_of, initialise
from leaderless.store.memory import MemoryStore
from leaderless.store.port import all_of

pytestmark = pytest.mark.anyio


def small(store: MemoryStore) -> Bounds:
    """Bounds of a log with many small segments and runs."""
    bounds = bounds_of(store, 5.0, 1.0)
    limits = replace(bounds.limits, seal_entries=2, segments_per_run=2)
    return bounds._replace(limits=limits, inline_bytes=100)


@pytest.fixture
async def store() -> MemoryStore:
    """A log with runs, segments, a tail, large values, and a cursor."""
    store = MemoryStore()
    await initialise(store)
    log = Log(store, small(store))
    async with running(*log.hosts):
        for number in range(21):
            await log.append("ab"[number % 2], number)
            if number % 7 == 0:
                await log.append("large", "x" * 200)
        await log.compact()
        for number in range(5):
            await log.append("c", number)
        await log.commit("group", {"a": 3})
    return store


async def names(store: MemoryStore, folder: str) -> list[str]:
    return [listed.key async for listed in all_of(store, folder)]


async def change(store: MemoryStore, name: str, edit: Callable[[Any], object]) -> None:
    found = await store.read(name)
    assert found is not None
    value = orjson.loads(found.value)
    edit(value)
    await store.write(name, orjson.dumps(value))


async def broken(store: MemoryStore) -> set[str]:
    return {finding.invariant for finding in (await check(store)).findings}


async def test_a_whole_log_has_no_findings(store: MemoryStore) -> None:
    report = await check(store)
    assert report.findings == []
    assert (report.batches, report.messages, report.orphans) == (29, 29, 0)
    assert await names(store, "run")


async def test_an_empty_log_has_no_findings() -> None:
    store = MemoryStore()
    await initialise(store)
    assert (await check(store)).findings == []


async def test_no_log_at_all() -> None:
    assert await broken(MemoryStore()) == {"FormatKnown"}


async def test_a_register_that_makes_no_sense(store: MemoryStore) -> None:
    for name, text in (("head", b"{"), ("segment/99", b"[]"), ("run/0-1", b'{"base": 0}')):
        found = await store.read(name)
        await store.write(name, text)
        assert "RegistersReadable" in await broken(store), name
        if found:
            await store.write(name, found.value)
        else:
            await store.delete([name])
    assert await broken(store) == set()


async def test_a_run_that_is_gone(store: MemoryStore) -> None:
    first, *_ = await names(store, "run")
    await store.delete([first])
    assert {"CommittedReadable", "CursorNeverPassesCompacted", "OffsetsDense"} <= await broken(
        store
    )


async def test_a_gap_before_the_head(store: MemoryStore) -> None:
    await change(store, "head", lambda head: head.update(base=head["base"] + 1))
    assert "CommittedReadable" in await broken(store)


async def test_an_offset_that_is_left_out(store: MemoryStore) -> None:
    def skip(head: Any) -> None:
        block = next(iter(head["tail"][-1][2].values()))
        block[0] += 1

    await change(store, "head", skip)
    assert await broken(store) == {"OffsetsDense"}


async def test_a_batch_that_is_there_twice(store: MemoryStore) -> None:
    await change(store, "head", lambda head: head["tail"].append(head["tail"][-1]))
    assert await broken(store) == {"AckedExactlyOnce", "OffsetsDense"}


async def test_a_segment_that_differs_from_its_run(store: MemoryStore) -> None:
    """As after a compaction that stopped before it deleted, and a segment that changed."""
    [name, *_] = await names(store, "run")
    found = await store.read(name)
    assert found is not None
    key, (first, messages) = next(iter(orjson.loads(found.value)["keys"].items()))
    entry = ["w", 1, {key: [first, messages[:1]]}, {}]
    await store.write("segment/0", orjson.dumps({"base": 0, "entries": [entry]}))
    assert await broken(store) == set()
    entry[2] = {key: [first, ["another"]]}
    await store.write("segment/0", orjson.dumps({"base": 0, "entries": [entry]}))
    assert await broken(store) == {"SegmentsImmutable"}


async def test_a_large_value_that_is_gone_or_cut(store: MemoryStore) -> None:
    [first, second, *_] = await names(store, "data")
    await store.write(first, b"short")
    assert await broken(store) == {"DataReadable"}
    await store.delete([first, second])
    report = await check(store)
    assert [finding.object for finding in report.findings] == [first, second]


async def test_orphans_are_counted(store: MemoryStore) -> None:
    await store.write("data/0-orphan", b"x")
    report = await check(store)
    assert (report.findings, report.orphans) == ([], 1)
