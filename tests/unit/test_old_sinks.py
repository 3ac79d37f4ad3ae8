"""An epoch that an older release has left half in the log is finished by this one, row for row."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from leaderless import open_log
from leaderless.spark.epochs import commit
from leaderless.spark.staging import Epoch, stage
from leaderless.store.port import Store
from leaderless.store.sqlite import SqliteStore
from leaderless.store.values import Encoded
from tests.epochs import left_over

pytestmark = pytest.mark.anyio
HALF = Path(__file__).parents[1] / "fixtures" / "old-sinks" / "half-ee7df00.db"
ROWS, IN_THE_LOG = 42, 15


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    shutil.copy(HALF, tmp_path / "log.db")
    found = SqliteStore(tmp_path / "log.db")
    yield found
    await found.aclose()


async def rows_of(store: Store, writer: str) -> list[Any]:
    """The values of keys of a writer, and of the keys that both have, in order."""
    async with open_log(store.url, create=False) as log:
        keys = [f"{writer}/{place}" for place in range(3)]
        found = {key: await log.read(key) for key in keys}
    for place, key in enumerate(keys):
        values = [record.value for record in found[key]]
        assert values == [*range(place, place + 3 * len(values), 3)]
    return sorted(record.value for records in found.values() for record in records)


@pytest.mark.parametrize(
    ("writer", "epoch", "rows"),
    [("spark/load", 0, 0), ("spark/load", 0, 5), ("spark/stream", 3, 0), ("spark/stream", 4, 5)],
)
async def test_an_epoch_of_an_older_release_is_finished_by_its_plan(
    store: SqliteStore, writer: str, epoch: int, rows: int
) -> None:
    """By a repetition that brings nothing, or other rows; or by the next epoch, which adds its own."""
    assert len(await rows_of(store, writer)) == IN_THE_LOG
    now = Epoch(writer, epoch)
    new = [Encoded("new", b"%d" % place, True) for place in range(rows)]
    parts = await stage(store, f"{now.folder}/0-second", new)
    async with open_log(store.url, create=False) as log:
        for _ in range(2):
            await commit(log, store, now, parts)
        values = [record.value for record in await log.read("bytes")]
        assert values == [b"\xff" * 30]
        assert [record.value for record in await log.read("é")] == ["é"]
        assert len(await log.read("new")) == (rows if epoch == 4 else 0)
    assert await rows_of(store, writer) == [*range(ROWS - 2)]
    assert all(writer.replace("/", "=2F") not in key for key in await left_over(store))
