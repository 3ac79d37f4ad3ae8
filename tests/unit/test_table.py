"""Runs as Parquet files: what they hold, how they are read, the snapshot and the register that list them."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pyarrow.parquet as pq
import pytest

from leaderless import open_log
from leaderless.api.log import Log
from leaderless.core.coordination import Json, Misfit
from leaderless.core.shape import Runs, Shape
from leaderless.errors import NotInitialised, OtherFormat, Unfit
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, ensure_log, initialise
from leaderless.store.files import MemoryFiles, files_of
from leaderless.store.format import shape_in
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Refused, Store
from leaderless.store.registers import canonical
from leaderless.store.sqlite import SqliteStore
from leaderless.store.values import Value
from leaderless.store.wrapped import Counted, Within
from leaderless.table import parquet, registers
from leaderless.table.manifest import Manifest, Merged, Replaced, Start, manifest_of
from leaderless.table.parquet import Reader, write_file
from leaderless.table.registers import Kept, Shelf
from leaderless.table.schema import COLUMNS, Row, messages_of, reference_of, rows_in
from leaderless.table.snapshot import snapshot
from leaderless.upkeep.fsck import check
from tests.tables import (
    Model,
    append,
    append_numbers,
    compact,
    content_of,
    filled,
    merged,
    messages,
    rows_of_snapshot,
    small_log,
    table_of,
)

pytestmark = pytest.mark.anyio

VALUES: list[Value] = [
    None, True, 0, -1.5, "", "é\u0000\U0001f600", [], [1, [2]], {}, {"a": 1, "b": None}, {"$": 1},
    {"$bytes": "AAA="}, {"$json": 1}, {"$data": ["x", 1, "json"]}, {"$json": {"$json": 1}}, b"", b"\x00\xff",
    1, 1.0, 1e300, 2**64 - 1, -(2**63), {"b": 1.0, "a": 1},
]  # fmt: skip
NAME = f"0-1-{0:024x}"
STRANGE: list[Json] = [
    {"$bytes": 5},
    {"$bytes": "A"},
    {"$json": 5},
    {"$what": 1},
    {"$data": [NAME, 3, "bytes"]},
]


@pytest.fixture(params=["memory", "sqlite", "topic"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return MemoryStore()
    store = SqliteStore(tmp_path / "log.db")
    return Within(store, "topic/x") if request.param == "topic" else store


def row(key: str, offset: int, message: Json) -> Row:
    return Row(key, offset, message, "w", offset, offset, 1.5)


def test_every_message_comes_back_as_it_was() -> None:
    from leaderless.store.values import message_of

    kept: list[Json] = [message_of(value) for value in VALUES] + STRANGE
    table = table_of(row("k", offset, message) for offset, message in enumerate(kept))
    assert messages_of(table) == kept
    assert [each.message for each in rows_in(table)] == kept
    assert table["value"].null_count == 2 + len(STRANGE)  # two of bytes, and what is no value


@pytest.mark.parametrize(
    "special", ["", '"', "\\", "\n", "\x00", "\x1f", "\x7f", "é", "\u2028", "\U0001f600"]
)
def test_strings_are_the_json_that_one_by_one_is(special: str) -> None:
    kept = ["plain", f"a{special}b"]
    table = table_of(row("k", offset, message) for offset, message in enumerate(kept))
    assert table["value"].to_pylist() == [canonical(each).decode() for each in kept]
    assert messages_of(table) == kept


def test_a_reference_is_known_by_its_text() -> None:
    [text] = table_of([row("k", 0, {"$data": [NAME, 3, "bytes"]})])["message"].to_pylist()
    assert reference_of(text) == (NAME, 3, "bytes")
    assert reference_of('{"$what":1}') is None


@pytest.mark.parametrize("runs", ["json", "parquet"])
async def test_a_log_reads_back_what_was_appended_from_any_offset(store: Store, runs: Runs) -> None:
    model: Model = {}
    random = Random(1)
    async with small_log(store, runs) as log:
        for number in range(60):
            await append(log, model, random.choice("abc"), number, *VALUES[number % 12 :: 12])
        await compact(log)
    async with small_log(store, runs) as log:  # it has nothing in memory
        for key, values in model.items():
            for offset in random.sample(range(len(values)), 9):
                [first, *_] = await log.read(key, offset)
                assert (first.offset, first.value) == (offset, values[offset])
                assert type(first.value) is type(values[offset])
    assert await content_of(store) == messages(model)


async def test_a_run_is_a_file_with_statistics_and_a_page_index(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    async with small_log(store) as log:
        await append_numbers(log, {}, [f"k{number}" for number in range(9)], 9)
        await compact(log)
    found = await snapshot(store)
    first = found.files[0]
    files = files_of(store)
    assert files is not None
    column = pq.read_metadata(files.location(first.path)).row_group(0).column(0)
    assert column.compression == "ZSTD"
    assert column.has_column_index
    assert column.statistics.min == "k0"
    assert (first.kind, first.base, first.end) == ("parquet", 0, 4)
    rows = await rows_of_snapshot(store, found)
    assert [each.slot for each in rows] == [each.offset for each in rows] or len(rows) == 9
    assert all(each.writer and each.seq is not None for each in rows)


async def test_a_version_that_divides_a_run_of_json_is_refused(store: Store) -> None:
    async with small_log(store, "json") as log:
        await append_numbers(log, {}, [f"k{number}" for number in range(8)], 8)
        await compact(log)
    assert len(await content_of(store, 4)) == 4
    with pytest.raises(Unfit, match="ask for 0 or 4"):
        await snapshot(store, 3)


async def test_the_format_of_a_log_is_chosen_once(store: Store) -> None:
    assert (await initialise(store, "parquet")).new
    again = await initialise(store)
    assert (again.new, again.shape.runs) == (False, "parquet")
    with pytest.raises(Unfit, match="has runs of parquet, not json"):
        await initialise(store, "json")
    made = await initialise(Within(store, "topic/t"), shape=Shape(runs="parquet"))
    assert made.shape == Shape(runs="parquet")


async def test_open_log_makes_a_log_of_files(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'log.db'}"
    async with open_log(url, runs="parquet") as log:
        await log.append("k", 1)
    async with open_log(url) as log:
        assert [each.value for each in await log.read("k")] == [1]


async def test_a_file_and_a_link_to_it_are_one_store(tmp_path: Path) -> None:
    path, link = tmp_path / "log.db", tmp_path / "elsewhere" / "link.db"
    model: Model = {}
    link.parent.mkdir()
    link.symlink_to(path)
    stores = SqliteStore(path), SqliteStore(link)
    for number in range(8):  # the first through the link, which leads nowhere yet
        async with small_log(stores[number % 2 - 1], timeout_s=5.0) as log:
            await append(log, model, "k", number)
            await compact(log)
    for store in stores:
        assert await content_of(store) == messages(model)
        await store.aclose()
    assert [each.name for each in link.parent.iterdir()] == ["link.db"]


def test_a_file_with_two_names_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.touch()
    (tmp_path / "other.db").hardlink_to(path)
    with pytest.raises(Refused, match=r"log\.db has 2 names: .* Remove the others"):
        SqliteStore(path)


class Counting(MemoryFiles):
    """Counts the bytes that are read."""

    read = sizes = 0

    def size(self, path: str) -> int:
        self.sizes += 1
        return super().size(path)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self.read += length
        return super().read_range(path, start, length)


def test_a_slice_reads_the_row_groups_that_it_needs_and_no_other() -> None:
    files = Counting()
    rows = [row(f"key {key:03}", offset, "x" * 1000) for key in range(100) for offset in range(200)]
    files.put("big.parquet", write_file(table_of(rows), {}))
    groups = Reader(files, "big.parquet").metadata.num_row_groups
    assert groups > 5
    shelf, footer, size = Shelf(files), files.read, files.size("big.parquet")
    files.sizes = 0
    assert shelf.read("big.parquet", "key 050", 150, 10)["offset"].to_pylist() == [*range(150, 160)]
    assert files.read - 2 * footer < 3 * size / groups
    assert shelf.read("big.parquet", "key 050", 200, 10).num_rows == 0
    assert files.sizes == 1
    assert Shelf(files).read("big.parquet", "key 001", 0, 1, size=size).num_rows == files.sizes == 1
    assert shelf.read("big.parquet", "none", 0, 10).schema == COLUMNS


def test_a_file_of_another_program_or_format_is_refused() -> None:
    store = MemoryStore()
    content = write_file(table_of([row("k", 0, 1)]), {})
    store.files.put("new.parquet", content.replace(b"leaderless.format", b"leaderless.tamrof"))
    with pytest.raises(OtherFormat, match="of another program"):
        Reader(store.files, "new.parquet")


def test_values_that_were_read_are_kept_within_a_bound() -> None:
    kept: Kept[str, int] = Kept(100)
    for number in range(9):
        kept.put(f"{number}", number, 40)
        kept.put("0", -1, 40)  # it is there already, or comes back
    assert (kept.get("8"), kept.get("7"), kept.bytes) == (8, None, 80)
    kept.put("large", 1, 1_000)
    assert (kept.get("large"), kept.get("8"), kept.bytes) == (1, None, 1_000)


async def test_a_place_without_a_log_is_none(store: Store) -> None:
    with pytest.raises(NotInitialised):
        await snapshot(store)
    async with small_log(store, "json"):
        assert (await snapshot(store)).version == 0


# ---------------------------------------------------------------- the register


FILE = Merged(f"merged/0-3-{0:016x}.parquet", 1, 0, 3, 0, 40, 80, 9_000, ("a", "b"))
NEXT = Merged(f"merged/4-4-{0:016x}.parquet", 0, 4, 4, 40, 50, 10, 900, None)
STARTS = f"starts/{0:016x}.json"
MANIFEST = Manifest(2, 7, (FILE, NEXT), (Replaced("run/3-4.parquet", 1.5),), Start(0, 0, STARTS))
VALUE: dict[str, Any] = MANIFEST.value
[LISTED, LAST] = VALUE["files"]
NO_PATHS = [
    "/home/me/.ssh/id_rsa", "../x", "", "merged", "merged/", f"merged/{FILE.path}", f"{FILE.path}/x",
    f"/{FILE.path}", f"{FILE.path}\n", FILE.path.replace("0-3", "00-3"), FILE.path.replace("0-3", "0-³"),
    FILE.path.replace(".", "x"), FILE.path[:-1], f"merged/0-3-{0:015x}.parquet", "run/3-4", "run/4.parquet",
]  # fmt: skip


def test_it_comes_back_as_it_was() -> None:
    assert manifest_of(VALUE) == MANIFEST
    assert manifest_of(Manifest().value) == Manifest()


@pytest.mark.parametrize(
    "wrong",
    [
        {"epoch": "2"}, {"epoch": -1}, {"version": 1.0}, {"version": True}, {"start": [0, 0]},
        {"start": [0, "0", None]}, {"replaced": [["x"]]}, {"replaced": [["x", "1.5"]]}, {"files": {}},
        {"files": [LISTED[:-1]]}, {"files": [[7, *LISTED[1:]]]}, {"files": [["a", "1", *LISTED[2:]]]},
        {"files": [[*LISTED[:-1], ["a"]]]}, {"format": "1"}, {"format": None},
        *({"replaced": [[path, 0]]} for path in [*NO_PATHS, FILE.path, STARTS, "run/4-5.parquet"]),
        *({"files": [[path, *LISTED[1:]]]} for path in [*NO_PATHS, STARTS, "run/3-4.parquet"]),
        *({"start": [0, 0, path]} for path in [*NO_PATHS, NEXT.path]),
        {"files": [LAST]}, {"files": [LAST, LISTED]}, {"start": [1, 0, None]}, {"start": [0, 1, None]},
        {"files": [[*LISTED[:4], 0, 0, *LISTED[6:]]]}, {"files": [[*LISTED[:2], 0, -1, *LISTED[4:]]]},
    ],
    ids=str,
)  # fmt: skip
def test_what_no_program_writes_is_a_misfit(wrong: dict[str, Any]) -> None:
    with pytest.raises(Misfit):
        manifest_of(VALUE | wrong)


# ---------------------------------------------------------------- the page


PAGE = Path(__file__).parents[2] / "docs" / "log" / "table.md"


async def make(file: Path) -> Model:
    """A log with merged files, runs, segments and a head."""
    model: Model = {}
    store = SqliteStore(file)
    async with small_log(store) as log:
        for number in range(30):
            await append(log, model, "eu" if number % 3 else "us", {"amount": number})
        await compact(log)
        await append(log, model, "eu", {"amount": 1000})
    await store.aclose()
    return model


def test_the_programs_of_the_page_count_each_record_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = anyio.run(make, tmp_path / "orders.db")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for program in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(program, names)
    records = {key: len(values) for key, values in model.items()}
    assert names["everything"] == (sum(records.values()),)
    in_files = {key: records for key, records, _ in names["orders"].fetchall()}
    in_tail = Counter(names["found"].tail["key"].to_pylist())
    assert {key: in_files[key] + in_tail[key] for key in records} == records
    assert len(names["frame"]) == sum(in_files.values())
    assert {*zip(names["newest"]["key"], names["newest"]["offset"], strict=True)} == {
        (key, count - 1) for key, count in in_files.items()
    }
    amounts = {key: amount for key, _, amount in names["orders"].fetchall()}
    wanted = {
        key: sum(each["amount"] for each in values[: in_files[key]] if isinstance(each, dict))
        for key, values in model.items()
    }
    assert amounts == wanted


@pytest.mark.anyio
async def test_files_of_an_earlier_log_are_refused_and_found() -> None:
    """The compaction of a log beside them would stop at the first run, without a word."""
    earlier, store = MemoryStore(), MemoryStore()
    await filled(earlier, 24)
    await merged(earlier)
    store.files = earlier.files
    with pytest.raises(
        Unfit, match=r"earlier log .* move its folders run, merged, starts away first"
    ):
        await ensure_log(store, "parquet")
    async with small_log(store) as log:  # as an older release let it be made
        for number in range(8):
            await log.append("a", number)
    assert {(each.invariant, each.object) for each in (await check(store)).findings} >= {
        ("SegmentsImmutable", "run/0-1.parquet")
    }


@pytest.mark.anyio
@pytest.mark.parametrize(("runs", "keys", "ratio"), [("json", 5, 1.2), ("parquet", 20, 0.9)])
async def test_of_many_keys_that_are_behind_a_tail_fetches_each_byte_about_once(
    monkeypatch: pytest.MonkeyPatch, runs: Runs, keys: int, ratio: float
) -> None:
    """All is a 128th of its size, but footers, and some files are merged. Parquet compresses these texts."""
    monkeypatch.setattr(parquet, "GROUP_BYTES", 1 << 14)
    monkeypatch.setattr(parquet, "TAIL_BYTES", 1 << 12)
    for name in ("GROUP_BYTES", "SLICES_BYTES"):
        monkeypatch.setattr(registers, name, 1 << 18)
    store, random, ends = MemoryStore(), Random(0), Counter[str]()
    size = 4 if runs == "json" else 16  # of an append: its runs are smaller
    async with small_log(store, runs, fan=8) as log:
        for number in range(80):
            key = f"{(number + random.randrange(3)) % keys:02}"
            ends[key] += size
            texts = [random.randbytes(500).hex() for _ in range(size)]
            await log.append_many(key, texts)
        await compact(log)
    counted = Counted(store)
    bounds = bounds_of(counted, 5.0, 1.0, await shape_in(store))
    limits = replace(bounds.limits, answer_bytes=1 << 13, memory_bytes=5 << 16, ahead_bytes=1 << 17)
    log = Log(counted, bounds._replace(limits=limits))
    async with running(log.host):
        tail = log.tail([*ends], "earliest")
        found = Counter([(await anext(tail)).key for _ in range(ends.total())])
    assert found == ends
    assert counted.bytes_read < ratio * 1000 * ends.total()
