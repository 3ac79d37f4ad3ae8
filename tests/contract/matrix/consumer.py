"""S3-Queue's conformance matrix: its consumer (4)."""

from leaderless.api.groups import ack, consume
from leaderless.store.port import all_of
from tests.contract.matrix.section import Section
from tests.contract.matrix.stage import GROUP, KEY, LARGE, Stage, at_once, read_all

SECTION = Section()


@SECTION.case("4 consume twice: the same message")
async def consume_twice(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log, 2)
        first = await consume(log, GROUP, KEY)
        assert first
        assert first == await consume(log, GROUP, KEY)
        assert first.offset == 0


@SECTION.case("4 the three answers of ack")
async def three_answers(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log, 3)
        answers = [(await ack(log.cursors, GROUP, KEY, at)).status for at in (0, 0, 2, 1)]
    assert answers == ["advanced", "already_processed", "offset_mismatch", "advanced"]


@SECTION.case("4 a crash before ack")
async def crash_before_ack(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log, 2)
        before = await consume(log, GROUP, KEY)
    async with stage.log() as log:
        assert before == await consume(log, GROUP, KEY)


@SECTION.case("4 the first consume makes one cursor, also at once")
async def first_consume(stage: Stage) -> None:
    """Ours is made by the first acknowledgement."""
    async with stage.log() as log:
        await stage.fill(log, 2)
        assert [
            record.offset for record in await at_once(5, lambda _: consume(log, GROUP, KEY))
        ] == [0] * 5
        await at_once(5, lambda _: ack(log.cursors, GROUP, KEY, 0))
    assert len([each async for each in all_of(stage.store, "group")]) == 1


@SECTION.case("4 consume from inside a batch")
async def consume_inside(stage: Stage) -> None:
    async with stage.log() as log:
        await log.append_many(KEY, ["a", "b", "c"])
        await ack(log.cursors, GROUP, KEY, 0)
        found = await consume(log, GROUP, KEY)
    assert found
    assert (found.offset, found.value) == (1, "b")


@SECTION.case("4 the data is gone under a reader: it reads again")
async def data_gone(stage: Stage) -> None:
    """Compaction moves messages and leaves their large values; a reader with an old view finds both."""
    async with stage.log() as writer:
        await stage.fill(writer, value=LARGE)
        async with stage.log() as reader:
            assert len(await reader.read(KEY, 0, 1)) == 1
            await writer.compact()
            records = await read_all(reader)
    assert [record.value for record in records] == [[number, LARGE] for number in range(10)]
