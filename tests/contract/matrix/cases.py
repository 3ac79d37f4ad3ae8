"""S3-Queue's conformance matrix (2 to 7) and its tests of concurrency, in the terms of our log."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from leaderless.api.consumer import Answer, ack, consume
from leaderless.api.log import Log
from leaderless.core.headlog.compaction import CLAIM
from leaderless.errors import Fenced, Indefinite, NotInitialised, Unfit
from leaderless.hosting.cursors import Cursors
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, initialise, require_log
from leaderless.store.port import OutcomeUnknown, all_of
from leaderless.store.wrapped import Within
from tests.contract.matrix.stage import (
    GROUP,
    KEY,
    LARGE,
    Faulty,
    Stage,
    at_once,
    case,
    compacted_to,
    read_all,
)

# ---------------------------------------------------------------- section 2, primitives


@case("2 increment: topic not initialised")
async def not_initialised(stage: Stage) -> None:
    with pytest.raises(NotInitialised):
        await require_log(stage.store)


@case("2 increment: from a value")
async def from_a_value(log: Log) -> None:
    assert [await log.append(KEY, number) for number in range(3)] == [0, 1, 2]


@case("2 increment: with an entry of another that is pending")
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


@case("2 increment: concurrent callers, unique and monotonic")
async def concurrent_increments(log: Log) -> None:
    offsets = await at_once(20, lambda number: log.append(KEY, number))
    assert sorted(offsets) == [*range(20)]


@case("2 ceiling: beyond the end")
async def beyond_the_end(stage: Stage, log: Log) -> None:
    await stage.fill(log, 3)
    assert await log.read(KEY, 3) == []


@case("2 ceiling: inside a batch")
async def inside_a_batch(stage: Stage) -> None:
    async with stage.log() as log:
        await log.append_many(KEY, [*range(5)])
    async with stage.log() as log:
        assert [record.offset for record in await log.read(KEY, 2, 2)] == [2, 3]


@case("2 ceiling: the entry vanishes between list and get")
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


@case("2 compare-and-set: with and without a change")
async def compare_and_set(stage: Stage) -> None:
    store = Faulty(stage.store)
    cursors = Cursors(store)
    await cursors.commit(GROUP, {KEY: 3})
    assert len(store.writes) == 1
    await cursors.commit(GROUP, {KEY: 3})
    assert len(store.writes) == 1


@case("2 range delete: the rest stays")
async def range_delete(stage: Stage, log: Log) -> None:
    await stage.fill(log)
    await log.compact()
    segments = {each.key async for each in all_of(stage.store, "segment")}
    gone = set(await stage.deleted_segments())
    assert gone
    assert segments - gone
    assert await stage.is_whole()


# ---------------------------------------------------------------- section 3, producer


@case("3 a single message")
async def single(stage: Stage, log: Log) -> None:
    assert await log.append(KEY, {"a": 1}) == 0
    assert await stage.read_afresh() == [{"a": 1}]


@case("3 a batch")
async def batch(stage: Stage, log: Log) -> None:
    assert await log.append_many(KEY, ["a", "b", "c"]) == [0, 1, 2]
    assert await stage.read_afresh() == ["a", "b", "c"]


@case("3 two at once: distinct offsets, all readable")
async def two_at_once(stage: Stage) -> None:
    async with stage.log() as one, stage.log() as two:
        offsets = await at_once(2, lambda number: (one, two)[number].append(KEY, number))
    assert sorted(offsets) == [0, 1]
    assert sorted(await stage.read_afresh()) == [0, 1]


@case("3 fenced")
async def fenced(stage: Stage, log: Log) -> None:
    await log.append(KEY, 0)
    await log.fence()
    with pytest.raises(Fenced):
        await log.append(KEY, 1)
    assert await stage.read_afresh() == [0]


@case("3 an empty batch")
async def empty(log: Log) -> None:
    with pytest.raises(Unfit):
        await log.append_many(KEY, [])


@case("3 too many messages")
async def too_many(stage: Stage, log: Log) -> None:
    """Our bound is that of the bytes alone."""
    with pytest.raises(Unfit):
        await log.append_many(KEY, ["x" * 50] * 1000)
    assert await stage.read_afresh() == []


@case("3 too large")
async def too_large(stage: Stage) -> None:
    store = Faulty(stage.store)
    await initialise(store, "json")
    log = Log(store, bounds_of(store, 5.0, 0.2)._replace(inline_bytes=64, value_bytes=1000))
    async with running(log.host):
        with pytest.raises(Unfit):
            await log.append(KEY, "x" * 1000)
    assert await stage.read_afresh() == []


# ---------------------------------------------------------------- section 4, consumer


@case("4 consume twice: the same message")
async def consume_twice(stage: Stage, log: Log) -> None:
    await stage.fill(log, 2)
    first = await consume(log, GROUP, KEY)
    assert first
    assert first == await consume(log, GROUP, KEY)
    assert first.offset == 0


@case("4 the three answers of ack")
async def three_answers(stage: Stage, log: Log) -> None:
    await stage.fill(log, 3)
    answers = [(await ack(log.cursors, GROUP, KEY, at)).status for at in (0, 0, 2, 1)]
    assert answers == ["advanced", "already_processed", "offset_mismatch", "advanced"]


@case("4 a crash before ack")
async def crash_before_ack(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log, 2)
        before = await consume(log, GROUP, KEY)
    async with stage.log() as log:
        assert before == await consume(log, GROUP, KEY)


@case("4 the first consume makes one cursor, also at once")
async def first_consume(stage: Stage, log: Log) -> None:
    """Ours is made by the first acknowledgement."""
    await stage.fill(log, 2)
    assert [record.offset for record in await at_once(5, lambda _: consume(log, GROUP, KEY))] == [
        0
    ] * 5
    await at_once(5, lambda _: ack(log.cursors, GROUP, KEY, 0))
    assert len([each async for each in all_of(stage.store, "group")]) == 1


@case("4 consume from inside a batch")
async def consume_inside(log: Log) -> None:
    await log.append_many(KEY, ["a", "b", "c"])
    await ack(log.cursors, GROUP, KEY, 0)
    found = await consume(log, GROUP, KEY)
    assert found
    assert (found.offset, found.value) == (1, "b")


@case("4 the data is gone under a reader: it reads again")
async def data_gone(stage: Stage) -> None:
    """Compaction moves messages and leaves their large values; a reader with an old view finds both."""
    async with stage.log() as writer:
        await stage.fill(writer, value=LARGE)
        async with stage.log() as reader:
            assert len(await reader.read(KEY, 0, 1)) == 1
            await writer.compact()
            records = await read_all(reader)
    assert [record.value for record in records] == [[number, LARGE] for number in range(10)]


# ---------------------------------------------------------------- section 5, compaction


@case("5 the whole cycle")
async def whole_cycle(stage: Stage, log: Log) -> None:
    await stage.fill(log)
    cursor = await log.compact()
    assert cursor > 0
    assert (await log.status()).compacted == cursor
    assert await stage.runs()
    assert await stage.is_whole()


@case("5 the order is kept")
async def order_kept(stage: Stage, log: Log) -> None:
    await log.append_many(KEY, ["a", "b", "c"])
    for value in "defghij":
        await log.append(KEY, value)
    await log.compact()
    assert "".join(await stage.read_afresh()) == "abcdefghij"


@case("5 a read inside the range")
async def read_inside(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log)
        await log.compact()
    async with stage.log() as log:
        assert (await log.read(KEY, 2, 3))[0].offset == 2
        assert [record.offset for record in await read_all(log, 2)] == [*range(2, 10)]


@case("5 a misaligned range")
async def misaligned(stage: Stage, log: Log) -> None:
    """Nobody can ask for a range: a run takes whole segments, which begin and end with whole batches."""
    for start in range(0, 30, 3):
        assert await log.append_many(KEY, [start, start + 1, start + 2]) == [
            *range(start, start + 3)
        ]
    await log.compact()
    assert await stage.read_afresh() == [*range(30)]


@case("5 a range with gaps")
async def gaps(stage: Stage, log: Log) -> None:
    """Segments have no gaps; fewer than fill a run are left alone."""
    await stage.fill(log, 3)
    assert await log.compact() == 0
    assert await stage.runs() == []


@case("5 resumed after a crash at each step", aged=True)
async def resumed(stage: Stage) -> None:
    steps = 0
    while not await _crashed_compaction(stage, steps):
        steps += 1
        assert steps < 50
    assert steps >= 3


async def _crashed_compaction(stage: Stage, writes: int) -> bool:
    """A compaction that dies before its write number `writes`, and another one; whether the first ended."""
    inner = Stage(Within(stage.store, f"crash{writes}"), ages=stage.ages)
    dying = Faulty(inner.store)
    async with inner.log() as log:
        await inner.fill(log)
    async with inner.log(dying) as log:
        await log.keys()
        dying.writes_left = writes
        try:
            with anyio.move_on_after(10.0):
                await log.compact()
        except Indefinite:
            pass
    assert await inner.is_whole()
    async with inner.log() as log:
        await compacted_to(log, 1)
    assert await inner.is_whole()
    return not dying.dead


@case("5 the cursor never goes back", aged=True)
async def cursor_never_back(log: Log) -> None:
    cursors = []
    for start in range(3):
        for number in range(8):
            await log.append(KEY, [8 * start + number, None])
        cursors.append(await log.compact())
    assert cursors == sorted(set(cursors))


@case("5 old data is deleted")
async def old_data_deleted(stage: Stage, log: Log) -> None:
    await stage.fill(log)
    cursor = await log.compact()
    assert len(await stage.deleted_segments()) == cursor


# ---------------------------------------------------------------- section 6, fences


@case("6 fence and unfence")
async def both_ways(log: Log) -> None:
    await log.fence()
    assert (await log.status()).state == "fenced"
    await log.unfence()
    assert (await log.status()).state == "open"
    assert await log.append(KEY, 0) == 0


@case("6 twice")
async def twice(log: Log) -> None:
    assert await log.fence() == await log.fence()
    assert await log.unfence() == await log.unfence()


@case("6 fence, unfence, fence")
async def again(log: Log) -> None:
    epochs = [await log.fence(), await log.unfence(), await log.fence()]
    assert epochs == sorted(epochs)
    assert epochs[0] < epochs[2]
    with pytest.raises(Fenced):
        await log.append(KEY, 0)


@case("6 initialise, also at once")
async def initialised(stage: Stage) -> None:
    made = await at_once(5, lambda _: initialise(stage.store, "json"))
    assert sum(each.new for each in made) == 1
    assert not (await initialise(stage.store, "json")).new


# ---------------------------------------------------------------- section 7, vacuum


RETENTION_S = 3600.0


def orphan(at: int) -> str:
    """The name of a large value that was written at a time and that no record refers to."""
    return f"data/{at}-1-{0:024x}"


async def deleted_after(log: Log, age_s: float) -> int:
    """How many objects a vacuum deletes when the newest has this age."""
    await anyio.sleep(age_s)
    return (await log.vacuum(RETENTION_S)).deleted


@case("7 orphans older than the retention go", aged=True)
async def orphans_go(stage: Stage, log: Log) -> None:
    await stage.fill(log, 1)  # before the first append there is no epoch to raise, and all stay
    await stage.store.write(orphan(1), b"12345")
    assert await deleted_after(log, RETENTION_S + 400) == 1
    assert await stage.store.read(orphan(1)) is None


@case("7 never what is referred to", aged=True)
async def referred_stays(stage: Stage, log: Log) -> None:
    await stage.fill(log, 3, LARGE)
    assert await deleted_after(log, RETENTION_S + 400) == 0
    assert await stage.is_whole(3)


@case("7 never a younger one", aged=True)
async def younger_stays(stage: Stage, log: Log) -> None:
    await stage.store.write(orphan(9_999_999_999), b"12345")
    assert await deleted_after(log, RETENTION_S - 600) == 0


@case("7 never compacted data or entries", aged=True)
async def compacted_stays(stage: Stage, log: Log) -> None:
    await stage.fill(log, 10, LARGE)
    assert await log.compact() > 0
    assert await deleted_after(log, RETENTION_S + 400) == 0
    assert await stage.is_whole()


# ---------------------------------------------------------------- twelve tests of concurrency


@case("C1 ten producers, five messages each: distinct, dense, all readable")
async def ten_producers(stage: Stage) -> None:
    async def produce(number: int) -> list[int]:
        async with stage.log() as log:
            return [await log.append(KEY, [number, each]) for each in range(5)]

    offsets = sum(await at_once(10, produce), list[int]())
    assert sorted(offsets) == [*range(50)]
    found = await stage.read_afresh()
    assert sorted(found) == [[number, each] for number in range(10) for each in range(5)]
    assert all(
        [value for value in found if value[0] == n] == [[n, e] for e in range(5)] for n in range(10)
    )


@case("C2 the counter after five times ten")
async def the_counter(stage: Stage) -> None:
    async def produce(_: int) -> list[int]:
        async with stage.log() as log:
            return await log.append_many(KEY, [*range(10)])

    await at_once(5, produce)
    async with stage.log() as log:
        assert await log.keys() == {KEY: 50}


@case("C3 ten first consumers, one cursor")
async def ten_consumers(stage: Stage, log: Log) -> None:
    await stage.fill(log, 2)
    await at_once(10, lambda _: consume(log, GROUP, KEY))
    answers = await at_once(10, lambda _: ack(log.cursors, GROUP, KEY, 0))
    statuses: list[Answer] = [answer.status for answer in answers]
    assert statuses.count("advanced") == 1
    assert statuses.count("already_processed") == 9
    assert len([each async for each in all_of(stage.store, "group")]) == 1


@case("C4 ten racing appends all succeed")
async def ten_appends(stage: Stage) -> None:
    async def produce(number: int) -> int:
        async with stage.log() as log:
            return await log.append(KEY, number)

    assert sorted(await at_once(10, produce)) == [*range(10)]


@case("C5 ten initialisers")
async def ten_initialisers(stage: Stage) -> None:
    made = await at_once(10, lambda _: initialise(stage.store, "json"))
    assert sum(each.new for each in made) == 1


@case("C6 the cursor's maximum under two compactors", aged=True)
async def two_compactors(stage: Stage) -> None:
    async with stage.log() as one, stage.log() as two:
        await stage.fill(one, 12)
        cursors = await at_once(2, lambda number: (one, two)[number].compact())
        await compacted_to(two, max(cursors))
        assert (await one.status()).compacted >= max(cursors)
    assert await stage.is_whole(12)


@case("C7 redelivery")
async def redelivery(stage: Stage, log: Log) -> None:
    await stage.fill(log, 1)
    found = await at_once(5, lambda _: consume(log, GROUP, KEY))
    assert len({record.offset for record in found}) == 1


@case("C8 the cursor rises strictly")
async def strictly(stage: Stage, log: Log) -> None:
    await stage.fill(log, 5)
    moved = [(await ack(log.cursors, GROUP, KEY, at)).next for at in range(5)]
    assert moved == [1, 2, 3, 4, 5]


@case("C9 compaction keeps data, beside appends")
async def keeps_data(stage: Stage) -> None:
    async with stage.log() as log, stage.log() as other:
        await stage.fill(log)

        async def appends(_: int) -> None:
            for number in range(10, 20):
                await other.append(KEY, [number, None])

        async def compacts(_: int) -> None:
            await log.compact()

        await at_once(2, lambda number: (appends, compacts)[number](number))
    assert await stage.is_whole(20)


@case("C10 reading ten while five are compacted")
async def reads_beside(stage: Stage, log: Log) -> None:
    await stage.fill(log)

    async def reads(_: int) -> int:
        async with stage.log() as reader:
            return len(await read_all(reader))

    async def compacts(_: int) -> int:
        return await log.compact()

    calls = [reads, compacts, reads, reads]
    found = await at_once(4, lambda number: calls[number](number))
    assert [found[0], found[2], found[3]] == [10, 10, 10]


@case("C11 fence, unfence, fence: versions 1, 2, 3")
async def versions(log: Log) -> None:
    """An epoch is raised by each fence; opening keeps it."""
    epochs = [await log.fence(), await log.unfence(), await log.fence()]
    assert epochs == [1, 2, 3]


@case("C12 part is compacted: the rest keeps its entries, and one run covers the part")
async def part_compacted(stage: Stage, log: Log) -> None:
    """Ours compacts the oldest segments: of ten entries, sealed by twos, those that fill runs of two."""
    await stage.fill(log)
    cursor = await log.compact()
    segments = [each.key async for each in all_of(stage.store, "segment")]
    gone = await stage.deleted_segments()
    assert len(gone) == cursor
    assert set(segments) > set(gone) or cursor == len(segments)
    assert len(await stage.runs()) == cursor // 2
    assert await stage.is_whole()
