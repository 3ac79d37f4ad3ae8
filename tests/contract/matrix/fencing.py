"""S3-Queue's conformance matrix: its fences (6)."""

import pytest

from leaderless.errors import Fenced
from leaderless.hosting.place import initialise
from tests.contract.matrix.section import Section
from tests.contract.matrix.stage import KEY, Stage, at_once

SECTION = Section()


@SECTION.case("6 fence and unfence")
async def both_ways(stage: Stage) -> None:
    async with stage.log() as log:
        await log.fence()
        assert (await log.status()).state == "fenced"
        await log.unfence()
        assert (await log.status()).state == "open"
        assert await log.append(KEY, 0) == 0


@SECTION.case("6 twice")
async def twice(stage: Stage) -> None:
    async with stage.log() as log:
        assert await log.fence() == await log.fence()
        assert await log.unfence() == await log.unfence()


@SECTION.case("6 fence, unfence, fence")
async def again(stage: Stage) -> None:
    async with stage.log() as log:
        epochs = [await log.fence(), await log.unfence(), await log.fence()]
        assert epochs == sorted(epochs)
        assert epochs[0] < epochs[2]
        with pytest.raises(Fenced):
            await log.append(KEY, 0)


@SECTION.case("6 initialise, also at once")
async def initialised(stage: Stage) -> None:
    made = await at_once(5, lambda _: initialise(stage.store, "json"))
    assert sum(each.new for each in made) == 1
    assert not (await initialise(stage.store, "json")).new
