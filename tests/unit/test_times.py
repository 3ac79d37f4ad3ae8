"""Times and headers of records: from the commit to a reader, whatever clocks say and wherever records are."""

import json
from datetime import UTC, datetime
from functools import partial
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leaderless.core.shape import LOG_FORMAT, Runs
from leaderless.errors import OtherFormat, Unfit
from leaderless.store.calls import objects_in
from leaderless.store.format import upgrade
from leaderless.store.memory import MemoryStore
from leaderless.table.schema import FORMAT_NAME, OLD_NAMES
from leaderless.table.snapshot import snapshot, table_in
from leaderless.upkeep.copying import Selection
from leaderless.upkeep.fsck import check
from tests.tables import small_log
from tests.unit.test_copying import copied

pytestmark = pytest.mark.anyio
CLOCKS = [100.0, 200.0, 150.0, 200.001, 300.0, 50.0, 400.0, 400.0]  # of processes that take turns
TIMES = [100_000, 200_000, 200_000, 200_001, 300_000, 300_000, 400_000, 400_000]
TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "ß": ""}


async def filled(runs: Runs) -> MemoryStore:
    """A log whose records have `TIMES`, most of them in runs: each process appends one to a key."""
    store = MemoryStore()
    for number, now in enumerate(CLOCKS):
        async with small_log(store, runs, 99) as log:
            log.host.clock.wall = partial(float, now)
            await log.append("eu", number, TRACE if number % 2 == 0 else None)
            await log.append("us", b"x" * 20_000, {"a": "b"})
            await log.compact()
    return store


@pytest.mark.parametrize("runs", ["json", "parquet"])
async def test_a_time_never_falls_and_is_found_again(runs: Runs) -> None:
    store = await filled(runs)
    async with small_log(store, runs, 99) as log:
        for _ in range(2):  # from runs, and again
            records = await log.read("eu")
            assert [record.time_ms for record in records] == TIMES
            assert [record.headers for record in records] == [TRACE, {}] * 4
            [large] = await log.read("us", 3, 1)
            assert (large.value, large.headers, large.time_ms) == (
                b"x" * 20_000,
                {"a": "b"},
                200_001,
            )
        for at in (0, 100, 100.0001, 199.9, 200, 200.001, 250, 300, 399, 400):
            first = next(n for n, time in enumerate(TIMES) if time >= at * 1000)
            assert await log.offset_at("eu", at) == first, at
            assert await log.read("eu", at=datetime.fromtimestamp(at, UTC)) == records[first:]
        assert (await log.offset_at("eu", 400.001), await log.offset_at("none", 1)) == (8, 0)
        tail = log.tail(["eu", "us"], at=300)
        assert {(await anext(tail)).offset for _ in range(2)} == {4, 5}
    found = await snapshot(store)
    tables = [found.tail, *[await table_in(store, ref) for ref in found.files]]
    rows = [row for table in tables for row in table.to_pylist() if row["key"] == "eu"]
    told = {
        row["offset"]: (row["appended_at"].timestamp(), dict(row["headers"] or ())) for row in rows
    }
    assert told == {r.offset: (r.time_ms / 1000, r.headers) for r in records if r.time_ms}
    assert (await check(store)).findings == []


async def test_what_is_no_time_and_no_header_is_refused() -> None:
    async with small_log(await filled("json"), "json") as log:
        for at in (datetime.now(), float("nan"), "now", True):
            with pytest.raises(Unfit, match="at must"):
                await log.offset_at("eu", at)  # type: ignore[arg-type]
        wrong: list[Any] = [7, "a", {"a": 1}, {1: "a"}, {"a": "\ud800"}, {"a": "x" * 9000}]
        for headers in wrong:
            with pytest.raises(Unfit, match="headers m"):
                await log.append("eu", 1, headers)
        deep: Any = 1
        for _ in range(199):
            deep = [deep]
        with pytest.raises(Unfit, match="more than 200 levels"):
            await log.append("eu", deep, TRACE)
        assert (await log.keys())["eu"] == len(TIMES)


@pytest.mark.lawless  # the objects of the log come at once
@pytest.mark.parametrize("runs", ["json", "parquet"])
async def test_an_old_log_is_read_and_takes_times_after_an_upgrade(runs: Runs) -> None:
    """Made as an earlier program wrote it: other numbers, entries of four values, runs without times."""
    old = await as_before(await filled(runs))
    async with small_log(old, runs, 99) as log:
        records = await log.read("eu")
        assert [record.value for record in records] == [*range(8)]
        assert runs == "parquet" or {record.time_ms for record in records} == {None}
        for change in (log.append("eu", 8), log.fence(), log.trim("eu", 1), log.vacuum()):
            with pytest.raises(OtherFormat, match="leaderless upgrade"):
                await change
        with pytest.raises(Unfit, match="no record of it has a time"):
            await log.offset_at("eu", 1)
    assert (await check(old)).findings == []
    await require_copied(old, runs)
    assert (await upgrade(old), await upgrade(old)) == ((4, LOG_FORMAT), (LOG_FORMAT, LOG_FORMAT))
    async with small_log(old, runs, 99) as log:
        log.host.clock.wall = partial(float, 4e9)
        assert await log.append("eu", 8, TRACE) == 8
        await log.compact()
        last, new = await log.read("eu", 7)
        assert (new.time_ms, new.headers) == (4_000_000_000_000, TRACE)
        assert last.time_ms is None or runs == "parquet"  # whose time is that of its segment
        assert (await log.offset_at("eu", 4e9), await log.offset_at("eu", 5e9)) == (8, 9)
    assert (await check(old)).findings == []
    await require_copied(old, runs, 1.0, 0 if runs == "parquet" else 8)


async def require_copied(
    old: MemoryStore, runs: Runs, at: float | None = None, records: int = 0
) -> None:
    """It can be copied to runs of each kind; `records`: those of a key before a time, None: it has no times."""
    for there in get_args(Runs):
        target = MemoryStore()
        await copied(old, target, there)
        async with small_log(old, runs, 99) as log, small_log(target, there, 99) as copy:
            for record, its_copy in zip(await log.read("eu"), await copy.read("eu"), strict=True):
                assert record == its_copy
                assert record.headers == its_copy.headers
                assert record.time_ms in (None, its_copy.time_ms)
        if at is None:
            with pytest.raises(Unfit, match="FROM has no times before `leaderless upgrade`"):
                await copied(old, MemoryStore(), there, Selection(at_ms=1))
        else:
            await copied(old, target := MemoryStore(), there, Selection(at_ms=int(at * 1000)))
            async with small_log(target, there, 99) as copy:
                assert (await copy.keys()).get("eu", 0) == records


async def as_before(store: MemoryStore) -> MemoryStore:
    """The log of a store as a program of format 4 would have written it, but for headers."""
    old = MemoryStore()
    async for each in objects_in(store):
        found = await store.read(each.key)
        assert found is not None
        value = json.loads(found.value) if not each.key.startswith(("data/", "clock")) else None
        if value:
            value |= {"format": 4} if "format" in value else {}
            value.pop("times", None)
            if "entries" in value:
                value["entries"] = [entry[:4] for entry in value["entries"]]
        await old.write(each.key, json.dumps(value).encode() if value else found.value)
    for listed in store.files.list_files("run"):
        content = store.files.read_range(listed.key, 0, store.files.size(listed.key))
        table = pq.read_table(pa.BufferReader(content))
        names = {**table.schema.metadata, FORMAT_NAME: b"4"}
        target = pa.BufferOutputStream()
        pq.write_table(table.select(OLD_NAMES).replace_schema_metadata(names), target)
        old.files.put(listed.key, bytes(target.getvalue()))
    return old
