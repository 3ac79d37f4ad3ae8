"""Logs that the older release made: read, appended to, compacted, upgraded and checked by this one."""

import gzip
import json
import shutil
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
from leaderless.store.calls import read_value
from leaderless.store.format import shape_in
from leaderless.store.options import StoreOptions
from leaderless.store.urls import open_store

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
