"""S3-Queue's conformance matrix: its vacuum (7)."""

import anyio

from leaderless.api.log import Log
from tests.contract.matrix.section import Section
from tests.contract.matrix.stage import LARGE, Stage

SECTION = Section()
RETENTION_S = 3600.0


def orphan(at: int) -> str:
    """The name of a large value that was written at a time and that no record refers to."""
    return f"data/{at}-1-{0:024x}"


async def deleted_after(log: Log, age_s: float) -> int:
    """How many objects a vacuum deletes when the newest has this age."""
    await anyio.sleep(age_s)
    return (await log.vacuum(RETENTION_S)).deleted


@SECTION.case("7 orphans older than the retention go", aged=True)
async def orphans_go(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log, 1)  # before the first append there is no epoch to raise, and all stay
        await stage.store.write(orphan(1), b"12345")
        assert await deleted_after(log, RETENTION_S + 400) == 1
    assert await stage.store.read(orphan(1)) is None


@SECTION.case("7 never what is referred to", aged=True)
async def referred_stays(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log, 3, LARGE)
        assert await deleted_after(log, RETENTION_S + 400) == 0
    assert await stage.is_whole(3)


@SECTION.case("7 never a younger one", aged=True)
async def younger_stays(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.store.write(orphan(9_999_999_999), b"12345")
        assert await deleted_after(log, RETENTION_S - 600) == 0


@SECTION.case("7 never compacted data or entries", aged=True)
async def compacted_stays(stage: Stage) -> None:
    async with stage.log() as log:
        await stage.fill(log, 10, LARGE)
        assert await log.compact() > 0
        assert await deleted_after(log, RETENTION_S + 400) == 0
    assert await stage.is_whole()
