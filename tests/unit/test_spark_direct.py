"""The plan of a read by Spark's own reader: its parts have each record once, whatever compaction does."""

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import anyio.to_thread
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from leaderless.api.log import Log
from leaderless.errors import Definite, OtherFormat, Unfit
from leaderless.spark.columns import SCHEMA
from leaderless.spark.direct import ScanPlan, plan_of
from leaderless.spark.predicate import Predicate, Range
from leaderless.spark.reader import Scan
from leaderless.spark.settings import Place, predicate_in
from leaderless.store.memory import MemoryStore
from leaderless.store.options import StoreOptions
from leaderless.store.sqlite import SqliteStore
from leaderless.table.retention import Policy
from tests.tables import small_log

pytestmark = pytest.mark.anyio
LARGE = "x" * 20_000
EVERY = Predicate()
Places = list[tuple[str, int]]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    found = SqliteStore(tmp_path / "log.db")
    yield found
    await found.aclose()


async def fill(log: Log, first: int, last: int) -> dict[int, Places]:
    """Append batches of some keys, one in seven with a large value; the records of each slot."""
    ends = await log.keys()
    slots: dict[int, Places] = {}
    for slot in range(first, last):
        keys = [f"k{(slot + place) % 3}" for place in range(3)]
        value = LARGE if slot % 7 == 0 else slot
        await log.append_named("filling", slot, [(key, value) for key in keys])
        slots[slot] = [(key, ends.get(key, 0)) for key in keys]
        ends |= {key: ends.get(key, 0) + 1 for key in keys}
    return slots


def in_files(plan: ScanPlan, keys: frozenset[str] | None = None) -> Places:
    """Part 1, as Spark's reader finds it."""
    found: Places = []
    for path in plan.files:
        table = pq.read_table(path)
        if plan.has_large:
            table = table.filter(pc.is_null(table["message"]))
        if plan.divided:
            table = table.filter(pc.less(table["slot"], plan.end))
        found += zip(table["key"].to_pylist(), table["offset"].to_pylist(), strict=True)
    return [place for place in found if keys is None or place[0] in keys]


def by_source(path: Path, predicate: Predicate, first: int, end: int) -> Places:
    """A part that the data source reads."""
    place = Place(f"sqlite:///{path}", None, StoreOptions())
    columns = pa.schema([SCHEMA.field("key"), SCHEMA.field("offset")])
    scan = Scan(place, columns, predicate.within("slot", Range(first=first)))
    return [
        (row["key"], row["offset"])
        for part in scan.parts(end, first)
        for batch in scan.read(part)
        for row in batch.to_pylist()
    ]


async def records(path: Path, plan: ScanPlan, asked: dict[str, str] | None = None) -> Places:
    """What the parts of a plan have, in order."""

    def parts() -> Places:
        wanted, large = predicate_in(asked or {}), predicate_in({**(asked or {}), "large": "true"})
        found = in_files(plan, wanted.keys) + by_source(path, wanted, plan.end, plan.version)
        if plan.has_large:
            found += by_source(path, large, plan.start, plan.sealed)
        return found

    return sorted(await anyio.to_thread.run_sync(parts))


@pytest.mark.parametrize("seed", range(2))
async def test_a_plan_has_each_record_once_whatever_is_compacted_after_it(
    store: SqliteStore, tmp_path: Path, seed: int
) -> None:
    """Plans are kept while the log grows, and is compacted and merged; each one stays what it was."""
    coin = Random(seed)
    slots: dict[int, Places] = {}
    plans: list[tuple[int, ScanPlan]] = []
    async with small_log(store) as log:
        while len(slots) < 28:
            slots |= await fill(log, len(slots), len(slots) + coin.randint(1, 6))
            if coin.random() < 0.6:
                await log.compact()
            plans.append((len(slots), await plan_of(store, None, EVERY)))
            older = coin.randrange(len(slots) + 1)
            plans.append((older, await plan_of(store, older, EVERY)))
        for version, plan in plans:
            wanted = sorted(place for slot in range(version) for place in slots[slot])
            assert plan.version == version
            assert await records(tmp_path / "log.db", plan) == wanted
    assert any(plan.divided for _, plan in plans)
    assert any(plan.has_large for _, plan in plans)
    assert any(plan.files and plan.end < plan.version for _, plan in plans)


async def test_a_plan_of_some_keys_has_no_file_without_them(
    store: SqliteStore, tmp_path: Path
) -> None:
    async with small_log(store) as log:
        slots = await fill(log, 0, 20)
        await log.compact()
        await log.append_named("other", 0, [("z", 1)])
    every = sorted(place for places in slots.values() for place in places)
    asked = {"keys": "k1,k2"}
    plan = await plan_of(store, None, predicate_in(asked))
    assert any("/merged/" in path for path in plan.files)
    assert await records(tmp_path / "log.db", plan, asked) == [
        place for place in every if place[0] in ("k1", "k2")
    ]
    asked = {"keys": "z"}
    plan = await plan_of(store, None, predicate_in(asked))
    assert not any("/merged/" in path for path in plan.files)  # others do not say their keys
    assert await records(tmp_path / "log.db", plan, asked) == [("z", 0)]


async def test_the_end_of_a_log_is_written_as_a_file_and_deleted_after_an_hour(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with small_log(store) as log:
        slots = await fill(log, 1, 3)
    paths: list[str] = []
    for kept_s in (3600.0, 3600.0, -1.0):
        monkeypatch.setattr("leaderless.spark.direct.KEPT_S", kept_s)
        plan = await plan_of(store, None, EVERY)
        assert plan.end == plan.version == 2
        assert len(await records(tmp_path / "log.db", plan)) == sum(map(len, slots.values()))
        paths += plan.files
    assert [await anyio.Path(path).exists() for path in paths] == [False, False, True]


async def test_what_retention_takes_from_a_plan_is_told(store: SqliteStore, tmp_path: Path) -> None:
    async with small_log(store) as log:
        await fill(log, 0, 5)
        plan = await plan_of(store, None, EVERY)
        await fill(log, 5, 40)
        await log.compact()
        await log.compact()
        retained = await log.retain(Policy(bytes=0))
        assert retained.start > 5
        with pytest.raises(Unfit, match=r"by retention|no version"):
            await records(tmp_path / "log.db", plan)
        later = await plan_of(store, None, EVERY)
        assert later.start == retained.start
        assert len(await records(tmp_path / "log.db", later)) == 3 * (40 - retained.start)


async def test_a_log_whose_files_are_elsewhere_is_left_to_the_data_source() -> None:
    for store, runs in [(MemoryStore(), "parquet"), (MemoryStore(), "json")]:
        async with small_log(store, runs) as log:  # type: ignore[arg-type]
            await fill(log, 0, 20)
            await log.compact()
        assert await plan_of(store, None, EVERY) == ScanPlan((), 0, 0, 20)


async def test_files_that_cannot_be_read_are_told_by_the_plan(store: SqliteStore) -> None:
    async with small_log(store) as log:
        await fill(log, 0, 20)
        await log.compact()
    plan = await plan_of(store, None, EVERY)
    file = anyio.Path(plan.files[0])
    content = await file.read_bytes()
    await file.write_bytes(content.replace(b"leaderless.format", b"another.p.format_"))
    with pytest.raises(OtherFormat, match="of another program"):
        await plan_of(store, None, EVERY)
    await file.unlink()
    with pytest.raises(Definite, match="read again"):
        await plan_of(store, None, EVERY)


@pytest.mark.parametrize(("option", "value"), [("large", "yes"), ("large", "1")])
def test_a_wrong_option_is_told(option: str, value: str) -> None:
    with pytest.raises(Unfit, match=option):
        predicate_in({option: value})
