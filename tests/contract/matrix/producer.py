"""S3-Queue's conformance matrix: its producer (3)."""

import pytest

from leaderless.api.log import Log
from leaderless.errors import Fenced, Unfit
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, initialise
from tests.contract.matrix.faulty import Faulty
from tests.contract.matrix.section import Section
from tests.contract.matrix.stage import KEY, Stage, at_once

SECTION = Section()


@SECTION.case("3 a single message")
async def single(stage: Stage) -> None:
    async with stage.log() as log:
        assert await log.append(KEY, {"a": 1}) == 0
    assert await stage.read_afresh() == [{"a": 1}]


@SECTION.case("3 a batch")
async def batch(stage: Stage) -> None:
    async with stage.log() as log:
        assert await log.append_many(KEY, ["a", "b", "c"]) == [0, 1, 2]
    assert await stage.read_afresh() == ["a", "b", "c"]


@SECTION.case("3 two at once: distinct offsets, all readable")
async def two_at_once(stage: Stage) -> None:
    async with stage.log() as one, stage.log() as two:
        offsets = await at_once(2, lambda number: (one, two)[number].append(KEY, number))
    assert sorted(offsets) == [0, 1]
    assert sorted(await stage.read_afresh()) == [0, 1]


@SECTION.case("3 fenced")
async def fenced(stage: Stage) -> None:
    async with stage.log() as log:
        await log.append(KEY, 0)
        await log.fence()
        with pytest.raises(Fenced):
            await log.append(KEY, 1)
    assert await stage.read_afresh() == [0]


@SECTION.case("3 an empty batch")
async def empty(stage: Stage) -> None:
    async with stage.log() as log:
        with pytest.raises(Unfit):
            await log.append_many(KEY, [])


@SECTION.case("3 too many messages")
async def too_many(stage: Stage) -> None:
    """Our bound is that of the bytes alone."""
    async with stage.log() as log:
        with pytest.raises(Unfit):
            await log.append_many(KEY, ["x" * 50] * 1000)
    assert await stage.read_afresh() == []


@SECTION.case("3 too large")
async def too_large(stage: Stage) -> None:
    store = Faulty(stage.store)
    await initialise(store, "json")
    log = Log(store, bounds_of(store, 5.0, 0.2)._replace(inline_bytes=64, value_bytes=1000))
    async with running(log.host):
        with pytest.raises(Unfit):
            await log.append(KEY, "x" * 1000)
    assert await stage.read_afresh() == []
