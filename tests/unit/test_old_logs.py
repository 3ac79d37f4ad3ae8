"""Logs and half-written epochs of an older release: read, appended to, upgraded and finished by this one."""

import gzip
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from leaderless import open_log
from leaderless.core.headlog.index import FORMAT, Index, index_of
from leaderless.core.headlog.records import Head, head_of
from leaderless.errors import Fenced
from leaderless.library.fsck import check
from leaderless.library.log import Log
from leaderless.library.upgrade import write_shape
from leaderless.spark.epochs import commit
from leaderless.spark.staging import Epoch
from leaderless.store.calls import read_value
from leaderless.store.format import shape_in
from leaderless.store.options import StoreOptions
from leaderless.store.port import Store
from leaderless.store.sqlite import SqliteStore
from leaderless.store.urls import open_store
from leaderless.store.values import Encoded
from tests.epochs import left_over, stage

pytestmark = pytest.mark.anyio
FOLDER = Path(__file__).parents[1] / "fixtures/old-logs"
NAMES = ("programs-json", "programs-parquet", "pages")
FILLING = ["x" * 9_000] * 20  # fills tails and runs


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(name: str, tmp_path: Path) -> str:
    shutil.copy(FOLDER / f"{name}.db", tmp_path / "log.db")
    return f"sqlite:///{tmp_path}/log.db"


def expected(name: str) -> dict[str, Any]:
    """What a log holds."""
    if name == "pages":
        with gzip.open(FOLDER / "pages.json.gz") as file:
            return {"records": json.load(file), "named": ["loader", 3], "state": "open"}
    with gzip.open(FOLDER / "expected.json.gz") as file:
        found: dict[str, Any] = json.load(file)[name]
        return found


def as_json(value: Any) -> Any:
    return {"$bytes": value.hex()} if isinstance(value, bytes) else value


async def records_of(log: Log) -> dict[str, list[Any]]:
    """All values of a log."""
    found: dict[str, list[Any]] = {}
    for key, end in (await log.keys()).items():
        values: list[Any] = []
        while len(values) < end:
            values += [as_json(each.value) for each in await log.read(key, len(values), 1000)]
        found[key] = values
    return found


async def head_and_index(url: str) -> tuple[Head, Index]:
    store = open_store(url, StoreOptions())
    head = await read_value(store, "head", head_of)
    index = await read_value(store, "compacted", index_of)
    await store.aclose()
    assert head
    return head.value, index.value if index else Index()


async def require_sound(url: str) -> None:
    store = open_store(url, StoreOptions())
    assert (await check(store)).findings == []
    await store.aclose()


async def test_a_log_of_the_older_release_is_read_and_written(name: str, url: str) -> None:
    known = expected(name)
    async with open_log(url) as log:
        assert await records_of(log) == known["records"]
        assert await log.has_named(*known["named"])
        if known["state"] == "fenced":
            with pytest.raises(Fenced):
                await log.append("k", 1)
            await log.unfence()
        for place, value in enumerate(FILLING):
            assert await log.append("new", value) == place
        await log.compact()
    async with open_log(url) as log:
        assert await records_of(log) == known["records"] | {"new": FILLING}
        writer, seq = known["named"]
        await log.append_named(writer, seq, [("new", "again")])
        assert len((await records_of(log))["new"]) == len(FILLING)
    head, _ = await head_and_index(url)
    assert head.shape.is_old
    await require_sound(url)


async def test_an_upgrade_keeps_all_of_it(name: str, url: str) -> None:
    known = expected(name)
    async with open_log(url) as log:
        assert await log.upgrade() is True
        assert await records_of(log) == known["records"]
        if known["state"] == "fenced":
            await log.unfence()
        for value in FILLING:
            await log.append("new", value)
        await log.compact()
        assert await log.upgrade() is False
    async with open_log(url) as log:
        assert await records_of(log) == known["records"] | {"new": FILLING}
        committed = known.get("committed", {"billing": {"k0": 3}})["billing"]
        assert await log.committed("billing", committed) == committed
    head, index = await head_and_index(url)
    store = open_store(url, StoreOptions())
    assert head.shape == await shape_in(store)
    await store.aclose()
    assert not head.shape.is_old
    assert index.format == FORMAT
    await require_sound(url)


async def test_an_upgrade_that_was_cut_off_is_done_again(url: str) -> None:
    """After its first step the head has no shape yet, and `format` has one."""
    store = open_store(url, StoreOptions())
    shape = await write_shape(store)
    await store.aclose()
    async with open_log(url) as log:
        await log.unfence()
        before = await records_of(log)
        await log.append("new", 1)
        assert await log.upgrade() is True
        await log.append("new", 2)
        assert await records_of(log) == before | {"new": [1, 2]}
    head, _ = await head_and_index(url)
    assert head.shape == shape
    await require_sound(url)


# ---------------------------------------------------------------- sinks


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
