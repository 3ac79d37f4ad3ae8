"""S3-Queue's conformance matrix: its compaction (5)."""

import anyio

from leaderless.errors import Indefinite
from leaderless.store.wrapped import Within
from tests.contract.matrix.faulty import Faulty
from tests.contract.matrix.section import Section
from tests.contract.matrix.stage import KEY, Stage, compacted_to, read_all

SECTION = Section()


@SECTION.case("5 the whole cycle")
async def whole_cycle(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log)
        cursor = await log.compact()
        assert cursor > 0
        assert (await log.status()).compacted == cursor
    assert await stage.runs()
    assert await stage.is_whole()


@SECTION.case("5 the order is kept")
async def order_kept(stage: Stage) -> None:
    async with stage.log() as log:
        await log.append_many(KEY, ["a", "b", "c"])
        for value in "defghij":
            await log.append(KEY, value)
        await log.compact()
    assert "".join(await stage.read_afresh()) == "abcdefghij"


@SECTION.case("5 a read inside the range")
async def read_inside(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log)
        await log.compact()
    async with stage.log() as log:
        assert (await log.read(KEY, 2, 3))[0].offset == 2
        assert [record.offset for record in await read_all(log, 2)] == [*range(2, 10)]


@SECTION.case("5 a misaligned range")
async def misaligned(stage: Stage) -> None:
    """Nobody can ask for a range: a run takes whole segments, which begin and end with whole batches."""
    async with stage.log() as log:
        for start in range(0, 30, 3):
            assert await log.append_many(KEY, [start, start + 1, start + 2]) == [
                *range(start, start + 3)
            ]
        await log.compact()
    assert await stage.read_afresh() == [*range(30)]


@SECTION.case("5 a range with gaps")
async def gaps(stage: Stage) -> None:
    """Segments have no gaps; fewer than fill a run are left alone."""
    async with stage.log() as log:
        await stage.fill(log, 3)
        assert await log.compact() == 0
    assert await stage.runs() == []


@SECTION.case("5 resumed after a crash at each step", aged=True)
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


@SECTION.case("5 the cursor never goes back", aged=True)
async def cursor_never_back(stage: Stage) -> None:
    async with stage.log() as log:
        cursors = []
        for start in range(3):
            for number in range(8):
                await log.append(KEY, [8 * start + number, None])
            cursors.append(await log.compact())
    assert cursors == sorted(set(cursors))


@SECTION.case("5 old data is deleted")
async def old_data_deleted(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log)
        cursor = await log.compact()
    assert len(await stage.deleted_segments()) == cursor
