"""Slices, positions and predicates of the Spark source, without Spark, on logs that are compacted meanwhile."""

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import anyio.to_thread
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from leaderless.api.log import Log
from leaderless.core.shape import Runs
from leaderless.errors import Definite, OtherFormat, Unfit
from leaderless.spark.frames import ScanPlan, plan_of
from leaderless.spark.positions import advance, end_of
from leaderless.spark.predicate import Predicate, Range
from leaderless.spark.reader import Scan, TableReader
from leaderless.spark.reading import SCHEMA, Slice, places_of, slices, wanted_rows
from leaderless.spark.settings import Place, predicate_in
from leaderless.spark.source import COLUMNS as ALL_COLUMNS
from leaderless.spark.source import LeaderlessDataSource
from leaderless.store.memory import MemoryStore
from leaderless.store.options import StoreOptions
from leaderless.store.port import Store
from leaderless.store.sqlite import SqliteStore
from leaderless.table.parquet import Reader
from leaderless.table.retention import Policy
from leaderless.table.snapshot import snapshot
from tests.tables import compact, small_log

pytestmark = pytest.mark.anyio
LARGE = "x" * 20_000
COLUMNS = pa.schema([SCHEMA.field(name) for name in ("key", "offset", "value", "bytes", "slot")])


class Reads(NamedTuple):
    """A log of a test, as a source reads it."""

    store: Store
    place: Place

    async def read(self, parts: list[Slice], predicate: Predicate, columns: pa.Schema) -> list[Any]:
        """What tasks read, in the order of the slices."""

        def tasks() -> list[Any]:
            found = [wanted_rows(self.place, part, predicate, columns) for part in parts]
            tables = [batch.to_pydict() for batches in found for batch in batches]
            return [row for table in tables for row in zip(*table.values(), strict=True)]

        return await anyio.to_thread.run_sync(tasks)

    async def rows(self, parts: list[Slice], predicate: Predicate | None = None) -> list[Any]:
        """Key, offset, value and slot of what tasks read."""
        found = await self.read(parts, predicate or Predicate(), COLUMNS)
        return [
            (key, at, orjson.loads(value) if value is not None else content, slot)
            for key, at, value, content, slot in found
        ]

    async def planned(
        self, predicate: Predicate | None = None, as_of: int | None = None
    ) -> list[Slice]:
        return slices(await snapshot(self.store, as_of), predicate or Predicate())


@pytest.fixture
def reads(request: pytest.FixtureRequest) -> Reads:
    place = Place(f"memory:{request.node.nodeid}", None, StoreOptions())
    return Reads(place.store(), place)


async def fill(log: Log, batches: int, first: int = 0) -> list[Any]:
    """Append batches of some keys; returns the rows, in the order of the log."""
    ends = await log.keys()
    rows: list[Any] = []
    for slot in range(first, first + batches):
        values: list[Any] = [slot, {"a": [slot]}, b"\xff", LARGE if slot % 5 == 0 else "s"]
        records = [(f"k{(slot + place) % 3}", value) for place, value in enumerate(values)]
        await log.append_named("filling", slot, records)
        for key in dict.fromkeys(key for key, _ in records):
            for value in (value for other, value in records if other == key):
                rows.append((key, ends.get(key, 0), value, slot))
                ends[key] = ends.get(key, 0) + 1
    return rows


async def compacted(
    store: Store, batches: int = 16, behind: int = 5, runs: Runs = "parquet"
) -> list[Any]:
    """A log with so many batches in files, and others behind them; returns its rows."""
    async with small_log(store, runs) as log:
        rows = await fill(log, batches)
        await log.compact()
        return rows + await fill(log, behind, batches)


def by_place(rows: list[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: row[:2])


# ---------------------------------------------------------------- batches


@pytest.mark.parametrize("as_of", [0, 1, 7, 8, 20, 21])
async def test_an_older_version_is_read_as_it_was(reads: Reads, as_of: int) -> None:
    rows = await compacted(reads.store)
    found = await reads.rows(await reads.planned(as_of=as_of))
    assert by_place(found) == by_place([row for row in rows if row[3] < as_of])
    with pytest.raises(Unfit, match="no version 22"):
        await reads.planned(as_of=22)


@pytest.mark.parametrize(
    "predicate",
    [
        Predicate(frozenset({"k1"})),
        Predicate(frozenset({"k0", "k2", "other"}), Range(5, 9)),
        Predicate(offset=Range(first=12)),
        Predicate(slot=Range(3, 17)),
        Predicate(frozenset()),
        Predicate(offset=Range(last=-1)),
    ],
)
async def test_a_predicate_is_met_exactly(reads: Reads, predicate: Predicate) -> None:
    rows = await compacted(reads.store)
    wanted = [
        row
        for row in rows
        if (predicate.keys is None or row[0] in predicate.keys)
        and predicate.offset.first <= row[1] <= predicate.offset.last
        and predicate.slot.first <= row[3] <= predicate.slot.last
    ]
    parts = await reads.planned(predicate)
    assert by_place(await reads.rows(parts, predicate)) == by_place(wanted)
    assert bool(parts) == (not predicate.empty)
    # The predicate is met where its columns are not asked for.
    for place, name in enumerate(("key", "offset")):
        alone = await reads.read(parts, predicate, pa.schema([SCHEMA.field(name)]))
        assert sorted(alone) == sorted((row[place],) for row in wanted)


async def test_files_without_wanted_slots_are_in_no_slice(reads: Reads) -> None:
    await compacted(reads.store, 21, 0)
    every = (await snapshot(reads.store)).files
    for slots in (Range(5, 6), Range(17, 18)):
        [part] = await reads.planned(Predicate(slot=slots))
        wanted = [ref for ref in every if ref.base <= slots.last and ref.end > slots.first]
        assert [*part.files] == wanted
    assert every


async def test_runs_of_json_are_read_too_but_not_divided(reads: Reads) -> None:
    rows = await compacted(reads.store, runs="json")
    found = await reads.rows(await reads.planned())
    assert by_place([row[:3] for row in found]) == by_place([row[:3] for row in rows])
    with pytest.raises(Definite, match="runs of Parquet"):
        await reads.rows(await reads.planned(Predicate(slot=Range(5, 6))))


@pytest.mark.parametrize(("count", "shares"), [(0, 3), (1, 3), (7, 3), (9, 3), (100, 7)])
def test_shares_of_a_file_have_each_group_once(count: int, shares: int) -> None:
    assert [at for share in range(shares) for at in places_of(count, share, shares)] == [
        *range(count)
    ]


@pytest.mark.parametrize(("asked", "warned"), [(Predicate(), 1), (Predicate(frozenset({"k1"})), 0)])
async def test_a_read_of_a_whole_large_log_says_how_to_read_less(
    reads: Reads,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    asked: Predicate,
    warned: int,
) -> None:
    await compacted(reads.store, behind=0)
    monkeypatch.setattr("leaderless.spark.reader.SLICE_BYTES", 0)
    reader = TableReader(Scan(reads.place, COLUMNS, asked), None, None)
    assert await anyio.to_thread.run_sync(reader.partitions)
    assert caplog.text.count("keys=") == warned


@pytest.mark.parametrize("keys", [None, ["k1"]])
async def test_a_read_without_columns_counts_records_and_reads_no_column(
    reads: Reads, monkeypatch: pytest.MonkeyPatch, keys: list[str] | None
) -> None:
    rows = await compacted(reads.store)
    asked = Predicate(None if keys is None else frozenset(keys))
    parts = await reads.planned(asked, 17)
    columns: list[str] = []
    read_columns = Reader.read

    def noting(self: Reader, places: Any = None, names: Any = None) -> pa.Table:
        columns.extend(names)
        return read_columns(self, places, names)

    def count() -> int:
        found = [wanted_rows(reads.place, part, asked, pa.schema([])) for part in parts]
        return sum(batch.num_rows for batches in found for batch in batches)

    monkeypatch.setattr(Reader, "read", noting)
    wanted = [row for row in rows if row[3] < 17 and (keys is None or row[0] in keys)]
    assert await anyio.to_thread.run_sync(count) == len(wanted)
    assert {*columns} == ({"key"} if keys else {*()})


# ---------------------------------------------------------------- streams


@pytest.mark.parametrize("rows_max", [1, 4, 10, 1000])
async def test_a_stream_sees_each_record_once_while_the_log_grows(
    reads: Reads, rows_max: int
) -> None:
    """Steps of a stream, with appends and compaction between plan, read and next step."""
    coin = Random(rows_max)
    async with small_log(reads.store) as log:
        rows: list[Any] = []
        seen: list[Any] = []
        position = slot = 0
        while slot < 24 or position < slot:
            if slot < 24 and coin.random() < 0.7:
                more = coin.randint(1, 6)
                rows += await fill(log, more, slot)
                slot += more
            end = await advance(reads.store, position, rows_max) if position < slot else position
            step = Predicate(slot=Range(position, end - 1))
            parts = await reads.planned(step, end)
            if coin.random() < 0.5:
                await log.compact()
            found = await reads.rows(parts, step)
            assert len(found) <= max(rows_max, 4)
            seen += found
            position = end
        assert await end_of(reads.store) == slot
    assert sorted(seen, key=lambda row: row[0]) == by_place(rows)  # of each key in order


# ---------------------------------------------------------------- streams and retention


def stream(place: Place, start: str = "earliest", *, strict: bool = True) -> Any:
    options = {"url": place.url, "start": start, "failOnDataLoss": f"{strict}".lower()}
    return LeaderlessDataSource(options).streamReader(ALL_COLUMNS)


async def offsets_of(place: Place, first: int, end: int, *, strict: bool = True) -> list[int]:
    """The slots that a micro-batch of a stream reads."""

    def work() -> list[int]:
        reader = stream(place, strict=strict)
        parts = reader.partitions({"slot": first}, {"slot": end})
        rows = [row for part in parts for each in reader.read(part) for row in each.to_pylist()]
        return sorted({row["slot"] for row in rows})

    return await anyio.to_thread.run_sync(work)


async def retained(reads: Reads, batches: int = 40) -> int:
    """A log whose oldest files a retention has deleted; where it begins."""
    async with small_log(reads.store) as log:
        await fill(log, batches)
        await compact(log)
        return (await log.retain(Policy(bytes=0))).start


async def test_a_stream_that_lags_behind_a_retention_is_told(reads: Reads) -> None:
    """Or goes on without what is gone, where it is asked to."""
    start = await retained(reads)
    assert start > 4
    text = f"batches 4 to {start - 1} .*begins at {start}.*failOnDataLoss.*start={start}"
    for end in (40, 5):
        with pytest.raises(Definite, match=text):
            await offsets_of(reads.place, 4, end)
    rest = [*range(start, 40)]
    assert await offsets_of(reads.place, start, 40) == rest
    for first, end, left in ((4, 40, rest), (4, start, []), (0, start + 1, [start])):
        assert await offsets_of(reads.place, first, end, strict=False) == left


async def test_a_stream_begins_where_the_log_does(reads: Reads) -> None:
    start = await retained(reads)

    def begin(at: str, *, strict: bool = True) -> Any:
        return stream(reads.place, at, strict=strict).initialOffset()["slot"]

    def work() -> None:
        assert begin("earliest") == start
        assert begin("latest") == 40
        assert begin(f"{start}") == start
        with pytest.raises(Definite, match=f"begins at {start}"):
            begin(f"{start - 1}")
        assert begin("0", strict=False) == 0
        with pytest.raises(Unfit, match="no position 41"):
            begin("41")

    await anyio.to_thread.run_sync(work)


async def test_what_a_retention_takes_between_plan_and_read_is_told(reads: Reads) -> None:
    """The slots were in no file when the read was planned, and in files that are gone when it is made."""
    async with small_log(reads.store) as log:
        await fill(log, 3)
        parts = await reads.planned()
        assert [part.files for part in parts] == [()]
        await fill(log, 40, 3)
        await compact(log)
        start = (await log.retain(Policy(bytes=0))).start
    assert start > 3
    with pytest.raises(Definite):
        await reads.rows(parts)
    rest = [Slice((), 0, 1, Range(start - 1, start))]
    with pytest.raises(Definite, match=f"batches {start - 1} to {start - 1}.*read again"):
        await reads.rows(rest)
    assert {row[3] for row in await reads.rows([*await reads.planned()])} == {*range(start, 43)}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, Predicate()),
        ({"keys": "a,b"}, Predicate(frozenset("ab"))),
        ({"startOffset": "3"}, Predicate(offset=Range(first=3))),
        ({"startOffset": "3", "endOffset": "5"}, Predicate(offset=Range(3, 4))),
    ],
)
def test_options_say_which_records_are_wanted(options: dict[str, str], wanted: Predicate) -> None:
    assert predicate_in(options) == wanted


# ---------------------------------------------------------------- the plan of a read by Spark's own reader

EVERY = Predicate()
Places = list[tuple[str, int]]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    found = SqliteStore(tmp_path / "log.db")
    yield found
    await found.aclose()


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
    scan = Scan(place, pa.schema([SCHEMA.field("key"), SCHEMA.field("offset")]), predicate)
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
    coin, end = Random(seed), 0
    rows: list[Any] = []
    plans: list[tuple[int, ScanPlan]] = []
    async with small_log(store, timeout_s=2.0) as log:
        while end < 28:
            more = coin.randint(1, 6)
            rows += await fill(log, more, end)
            end += more
            if coin.random() < 0.6:
                await log.compact()
            plans.append((end, await plan_of(store, None, EVERY)))
            older = coin.randrange(end + 1)
            plans.append((older, await plan_of(store, older, EVERY)))
        for version, plan in plans:
            assert plan.version == version
            wanted = sorted(row[:2] for row in rows if row[3] < version)
            assert await records(tmp_path / "log.db", plan) == wanted
    assert any(plan.divided for _, plan in plans)
    assert any(plan.has_large for _, plan in plans)
    assert any(plan.files and plan.end < plan.version for _, plan in plans)


async def test_a_plan_of_some_keys_has_no_file_without_them(
    store: SqliteStore, tmp_path: Path
) -> None:
    async with small_log(store, timeout_s=2.0) as log:
        rows = await fill(log, 20)
        await log.compact()
        await log.append_named("other", 0, [("z", 1)])
    asked = {"keys": "k1,k2"}
    plan = await plan_of(store, None, predicate_in(asked))
    assert any("/merged/" in path for path in plan.files)
    wanted = sorted(row[:2] for row in rows if row[0] != "k0")
    assert await records(tmp_path / "log.db", plan, asked) == wanted
    asked = {"keys": "z"}
    plan = await plan_of(store, None, predicate_in(asked))
    assert not any("/merged/" in path for path in plan.files)  # others do not say their keys
    assert await records(tmp_path / "log.db", plan, asked) == [("z", 0)]


async def test_the_end_of_a_log_is_written_as_a_file_and_deleted_after_an_hour(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with small_log(store, timeout_s=2.0) as log:
        rows = await fill(log, 2, 1)
    paths: list[str] = []
    for kept_s in (3600.0, 3600.0, -1.0):
        monkeypatch.setattr("leaderless.spark.frames.KEPT_S", kept_s)
        plan = await plan_of(store, None, EVERY)
        assert plan.end == plan.version == 2
        assert len(await records(tmp_path / "log.db", plan)) == len(rows)
        paths += plan.files
    assert [await anyio.Path(path).exists() for path in paths] == [False, False, True]


async def test_what_retention_takes_from_a_plan_is_told(store: SqliteStore, tmp_path: Path) -> None:
    async with small_log(store, timeout_s=2.0) as log:
        await fill(log, 5)
        plan = await plan_of(store, None, EVERY)
        await fill(log, 35, 5)
        await log.compact()
        await log.compact()
        retained = await log.retain(Policy(bytes=0))
        assert retained.start > 5
        with pytest.raises(Unfit, match=r"by retention|no version"):
            await records(tmp_path / "log.db", plan)
        later = await plan_of(store, None, EVERY)
        assert later.start == retained.start
        assert len(await records(tmp_path / "log.db", later)) == 4 * (40 - retained.start)


async def test_a_log_whose_files_are_elsewhere_is_left_to_the_data_source() -> None:
    every: list[Runs] = ["parquet", "json"]
    for runs in every:
        store = MemoryStore()
        await compacted(store, 20, 0, runs)
        assert await plan_of(store, None, EVERY) == ScanPlan((), 0, 0, 20)


async def test_files_that_cannot_be_read_are_told_by_the_plan(store: SqliteStore) -> None:
    await compacted(store, 20, 0)
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
