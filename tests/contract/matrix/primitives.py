"""S3-Queue's conformance matrix: its primitives (2)."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from leaderless.core.headlog.compaction import CLAIM
from leaderless.errors import NotInitialised
from leaderless.hosting.cursors import Cursors
from leaderless.hosting.place import require_log
from leaderless.store.port import OutcomeUnknown, all_of
from tests.contract.matrix.faulty import Faulty
from tests.contract.matrix.section import Section
from tests.contract.matrix.stage import GROUP, KEY, Stage, at_once, read_all

SECTION = Section()


@SECTION.case("2 increment: topic not initialised")
async def not_initialised(stage: Stage) -> None:
    with pytest.raises(NotInitialised):
        await require_log(stage.store)


@SECTION.case("2 increment: from a value")
async def from_a_value(stage: Stage) -> None:
    async with stage.log() as log:
        assert [await log.append(KEY, number) for number in range(3)] == [0, 1, 2]


@SECTION.case("2 increment: with an entry of another that is pending")
async def after_a_death(stage: Stage) -> None:
    """Nothing is pending here: a writer that dies after its commit has published the entry with it."""
    store = Faulty(stage.store)
    async with stage.log(store) as dying:
        store.lose_answers = True
        store.before = _dies_after(store, "head")
        with anyio.move_on_after(0.5):
            await dying.append(KEY, "first")
    async with stage.log() as log:
        assert await log.append(KEY, "second") == 1
    assert await stage.read_afresh() == ["first", "second"]


def _dies_after(store: Faulty, name: str) -> Callable[[str, str], Awaitable[None]]:
    async def before(_kind: str, _key: str) -> None:
        if name in store.writes:
            store.dead = True
            raise OutcomeUnknown("the process is dead")

    return before


@SECTION.case("2 increment: concurrent callers, unique and monotonic")
async def concurrent_increments(stage: Stage) -> None:
    async with stage.log() as log:
        offsets = await at_once(20, lambda number: log.append(KEY, number))
    assert sorted(offsets) == [*range(20)]


@SECTION.case("2 ceiling: beyond the end")
async def beyond_the_end(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log, 3)
        assert await log.read(KEY, 3) == []


@SECTION.case("2 ceiling: inside a batch")
async def inside_a_batch(stage: Stage) -> None:
    async with stage.log() as log:
        await log.append_many(KEY, [*range(5)])
    async with stage.log() as log:
        assert [record.offset for record in await log.read(KEY, 2, 2)] == [2, 3]


@SECTION.case("2 ceiling: the entry vanishes between list and get")
async def entry_vanishes(stage: Stage) -> None:
    """A new reader has read the head; then the segments that it needs are compacted and deleted."""
    held, may_compact = Faulty(stage.store), anyio.Event()

    async def hold_the_claim(_: str, key: str) -> None:
        if key == CLAIM:  # else the writer compacts by itself, perhaps before the reader comes
            await may_compact.wait()

    held.before = hold_the_claim
    async with stage.log(held) as writer:
        await stage.fill(writer)
        store = Faulty(stage.store)
        done: list[str] = []

        async def before(kind: str, key: str) -> None:
            if kind == "read" and key.startswith("segment/") and not done:
                done.append(key)
                may_compact.set()
                await writer.compact()

        store.before = before
        async with stage.log(store) as reader:
            assert len(await read_all(reader)) == 10
    assert done
    assert await stage.deleted_segments()


@SECTION.case("2 compare-and-set: with and without a change")
async def compare_and_set(stage: Stage) -> None:
    store = Faulty(stage.store)
    cursors = Cursors(store)
    await cursors.commit(GROUP, {KEY: 3})
    assert len(store.writes) == 1
    await cursors.commit(GROUP, {KEY: 3})
    assert len(store.writes) == 1


@SECTION.case("2 range delete: the rest stays")
async def range_delete(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log)
        await log.compact()
        segments = {each.key async for each in all_of(stage.store, "segment")}
    gone = set(await stage.deleted_segments())
    assert gone
    assert segments - gone
    assert await stage.is_whole()
