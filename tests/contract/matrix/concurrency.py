"""S3-Queue's conformance matrix: its twelve tests of concurrency."""

from leaderless.api.groups import Answer, ack, consume
from leaderless.hosting.place import initialise
from leaderless.store.port import all_of
from tests.contract.matrix.section import Section
from tests.contract.matrix.stage import GROUP, KEY, Stage, at_once, compacted_to, read_all

SECTION = Section()


@SECTION.case("C1 ten producers, five messages each: distinct, dense, all readable")
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


@SECTION.case("C2 the counter after five times ten")
async def the_counter(stage: Stage) -> None:
    async def produce(_: int) -> list[int]:
        async with stage.log() as log:
            return await log.append_many(KEY, [*range(10)])

    await at_once(5, produce)
    async with stage.log() as log:
        assert await log.keys() == {KEY: 50}


@SECTION.case("C3 ten first consumers, one cursor")
async def ten_consumers(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log, 2)
        await at_once(10, lambda _: consume(log, GROUP, KEY))
        answers = await at_once(10, lambda _: ack(log.cursors, GROUP, KEY, 0))
    statuses: list[Answer] = [answer.status for answer in answers]
    assert statuses.count("advanced") == 1
    assert statuses.count("already_processed") == 9
    assert len([each async for each in all_of(stage.store, "group")]) == 1


@SECTION.case("C4 ten racing appends all succeed")
async def ten_appends(stage: Stage) -> None:
    async def produce(number: int) -> int:
        async with stage.log() as log:
            return await log.append(KEY, number)

    assert sorted(await at_once(10, produce)) == [*range(10)]


@SECTION.case("C5 ten initialisers")
async def ten_initialisers(stage: Stage) -> None:
    made = await at_once(10, lambda _: initialise(stage.store, "json"))
    assert sum(each.new for each in made) == 1


@SECTION.case("C6 the cursor's maximum under two compactors", aged=True)
async def two_compactors(stage: Stage) -> None:
    async with stage.log() as one, stage.log() as two:
        await stage.fill(one, 12)
        cursors = await at_once(2, lambda number: (one, two)[number].compact())
        await compacted_to(two, max(cursors))
        assert (await one.status()).compacted >= max(cursors)
    assert await stage.is_whole(12)


@SECTION.case("C7 redelivery")
async def redelivery(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log, 1)
        found = await at_once(5, lambda _: consume(log, GROUP, KEY))
    assert len({record.offset for record in found}) == 1


@SECTION.case("C8 the cursor rises strictly")
async def strictly(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log, 5)
        moved = [(await ack(log.cursors, GROUP, KEY, at)).next for at in range(5)]
    assert moved == [1, 2, 3, 4, 5]


@SECTION.case("C9 compaction keeps data, beside appends")
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


@SECTION.case("C10 reading ten while five are compacted")
async def reads_beside(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log)

        async def reads(_: int) -> int:
            async with stage.log() as reader:
                return len(await read_all(reader))

        async def compacts(_: int) -> int:
            return await log.compact()

        calls = [reads, compacts, reads, reads]
        found = await at_once(4, lambda number: calls[number](number))
    assert [found[0], found[2], found[3]] == [10, 10, 10]


@SECTION.case("C11 fence, unfence, fence: versions 1, 2, 3")
async def versions(stage: Stage) -> None:
    """An epoch is raised by each fence; opening keeps it."""
    async with stage.log() as log:
        epochs = [await log.fence(), await log.unfence(), await log.fence()]
    assert epochs == EPOCHS


EPOCHS = [1, 2, 3]


@SECTION.case("C12 part is compacted: the rest keeps its entries, and one run covers the part")
async def part_compacted(stage: Stage) -> None:
    """Ours compacts the oldest segments: of ten entries, sealed by twos, those that fill runs of two."""
    async with stage.log() as log:
        await stage.fill(log)
        cursor = await log.compact()
        segments = [each.key async for each in all_of(stage.store, "segment")]
    gone = await stage.deleted_segments()
    assert len(gone) == cursor
    assert set(segments) > set(gone) or cursor == len(segments)
    assert len(await stage.runs()) == cursor // 2
    assert await stage.is_whole()
