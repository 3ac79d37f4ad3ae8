"""`fsck` names each invariant that a log breaks, and finds nothing in one that is whole."""

from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import orjson
import pyarrow as pa
import pytest

from leaderless.api.log import Log
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.memory import MemoryStore
from leaderless.store.port import all_of
from leaderless.table.check import FileContent, contents
from leaderless.table.parquet import write_file
from leaderless.table.schema import COLUMNS
from leaderless.table.snapshot import file_refs, reader_of
from leaderless.upkeep.fsck import check
from tests.around import READS, Fate, Fated, cut_off
from tests.tables import compact, small_log

pytestmark = [pytest.mark.anyio, pytest.mark.lawless]
ORPHAN = f"data/0-1-{0:024x}"  # an object that no record refers to
Edit = Callable[[MemoryStore], Awaitable[object]]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes no sense is read again, at once: here it is the object that is damaged."""
    monkeypatch.setattr("leaderless.store.calls.PAUSE_S", 0.0)


MADE: dict[Callable[[], Awaitable[MemoryStore]], MemoryStore] = {}


async def copied(make: Callable[[], Awaitable[MemoryStore]]) -> MemoryStore:
    """A log as it was when `make` made it for the first time."""
    if make not in MADE:
        MADE[make] = await make()
    return deepcopy(MADE[make])


@pytest.fixture
async def store() -> MemoryStore:
    return await copied(log_of_all)


@pytest.fixture
async def table() -> MemoryStore:
    return await copied(log_with_files)


async def log_of_all() -> MemoryStore:
    """A log with runs, pages, segments, a tail, large values, a cursor, and a group with a member."""
    store = MemoryStore()
    bounds = bounds_of(store, 5.0, 1.0)
    shape = replace(bounds.shape, seal_entries=2, segments_per_run=2, page_children=2)
    await initialise(store, shape=shape)
    log = Log(store, bounds._replace(shape=shape, inline_bytes=100))
    async with running(log.host):
        for number in range(21):
            await log.append("ab"[number % 2], number)
            if number % 7 == 0:
                await log.append("large", "x" * 200)
        await log.compact()
        for number in range(7):
            await log.append("c", number)
        await log.commit("group", {"a": 3})
        async with log.consumer("members", ["a"]) as consumer:
            await consumer.ack(await anext(consumer))
    return store


async def log_with_files() -> MemoryStore:
    """A log with runs of Parquet, some of them merged."""
    store = MemoryStore()
    async with small_log(store) as log:
        for number in range(40):
            await log.append("ab"[number % 2], "x" * 20_000 if number % 9 == 0 else number)
        await compact(log)
    return store


async def names(store: MemoryStore, folder: str) -> list[str]:
    return [listed.key async for listed in all_of(store, folder)]


async def found(store: MemoryStore) -> set[tuple[str, str]]:
    return {(finding.invariant, finding.object) for finding in (await check(store)).findings}


async def broken(store: MemoryStore) -> set[str]:
    return {invariant for invariant, _ in await found(store)}


# ---------------------------------------------------------------- one change of a whole log


ANY = object()  # the first name of a table


def edited(name: str, edit: Callable[[Any], object], having: str = "", which: int = 0) -> Edit:
    """Changes an object, or the one of a folder that comes at place `which` of those that have `having`."""

    async def act(store: MemoryStore) -> None:
        there = {key: await store.read(key) for key in await names(store, name) or [name]}
        values = {key: orjson.loads(each.value) for key, each in there.items() if each}
        key = [key for key, value in values.items() if not having or value.get(having)][which]
        edit(values[key])
        await store.write(key, orjson.dumps(values[key]))

    return act


def plus(*path: Any, by: int = 1) -> Callable[[Any], None]:
    """Adds to the number at the end of a path."""

    def edit(value: Any) -> None:
        for step in path[:-1]:
            value = value[next(iter(value)) if step is ANY else step]
        value[path[-1]] += by

    return edit


def update(**fields: Any) -> Callable[[Any], None]:
    return lambda value: value.update(fields)


def parts(count: int) -> Callable[[Any], None]:
    return lambda index: index["listed"][0].__setitem__(5, count)


async def without_a_run(store: MemoryStore) -> None:
    await store.delete((await names(store, "run"))[:1])


async def without_a_page(store: MemoryStore) -> None:
    await store.delete((await names(store, "page"))[:1])


async def with_short_values(store: MemoryStore) -> None:
    await store.write((await names(store, "data"))[0], b"short")


def deleted(segment: dict[str, Any]) -> None:
    segment.clear()
    segment["deleted"] = True


# What is done, what is found at least, and the object that is named.
CHANGES: dict[str, tuple[Edit, set[str], str]] = {
    "a run that is gone": (without_a_run, {"CommittedReadable", "OffsetsDense"}, ""),
    "a gap before the head": (edited("head", plus("base")), {"CommittedReadable"}, ""),
    "an offset that is left out": (
        edited("head", plus("entries", -1, 2, ANY, 0)),
        {"OffsetsDense"},
        "head",
    ),
    "a batch that is there twice": (
        edited("head", lambda head: head["entries"].append(head["entries"][-1])),
        {"AckedExactlyOnce", "OffsetsDense"},
        "",
    ),
    "a large value that is cut": (with_short_values, {"DataReadable"}, ""),
    **{
        f"an index with {count} parts of a page": (
            edited("compacted", parts(count)),
            {"RegistersReadable"},
            "compacted",
        )
        for count in (0, 3, 1 << 40)
    },
    "an index that leaves a run out": (
        edited("compacted", lambda index: index["listed"].pop(0)),
        {"CommittedReadable", "IndexMatchesRuns"},
        "",
    ),
    **{
        f"an index that says what is not so at place {place}": (
            edited("compacted", plus("listed", -1, place)),
            {"CommittedReadable" if place == 2 else "IndexMatchesRuns"},
            "",
        )
        for place in (1, 2, 3, 4)
    },
    "a cursor that passed what is compacted": (
        edited("compacted", plus("cursor", by=2)),
        {"CursorNeverPassesCompacted"},
        "",
    ),
    "a segment that was deleted before it was compacted": (
        edited("segment", deleted, having="entries", which=-1),
        {"CommittedReadable"},
        "",
    ),
    "a page that is gone": (without_a_page, {"CommittedReadable"}, ""),
    "a page that says what its runs do not": (
        edited("page", plus("keys", ANY, -1)),
        {"IndexMatchesRuns"},
        "",
    ),
    # Then a batch of that writer could come a second time.
    "a page that forgot a writer": (
        edited("page", lambda page: page["writers"].clear(), having="writers"),
        {"IndexMatchesRuns"},
        "",
    ),
    "an epoch that nobody claimed": (edited("compacted", plus("epoch")), {"OneLiveClaim"}, ""),
    # To take a claim of epoch 0 raises it to 1.
    **{
        f"a claim that no program takes for one, {wrong}": (
            edited("claim/compaction", update(**wrong)),
            {"RegistersReadable"},
            "claim/compaction",
        )
        for wrong in ({"epoch": 0}, {"owner": 7}, {"beat": -1}, {"task": None})
    },
    "members that no member writes": (
        edited("group/members/members", update(keys={"a": [0, "w"]})),
        {"RegistersReadable", "OneLiveClaim"},
        "group/members/members",
    ),
    "a cursor of an epoch that nobody claimed": (
        edited("group/members/cursor/a", update(epoch=99)),
        {"OneLiveClaim"},
        "group/members/cursor/a",
    ),
    "a head of another shape than format": (
        edited("format", lambda format_: format_["shape"].update(seal_bytes=77)),
        {"ShapeNeverChanges"},
        "",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_is_found_by_its_name(store: MemoryStore, change: str) -> None:
    edit, wanted, name = CHANGES[change]
    await edit(store)
    there = await found(store)
    there = await found(store)
    assert {invariant for invariant, _ in there} >= wanted
    assert not name or name in {each for _, each in there}


# ---------------------------------------------------------------- whole logs, and what is told beside


async def test_a_whole_log_has_no_findings(store: MemoryStore, table: MemoryStore) -> None:
    report = await check(store)
    assert (report.findings, report.batches, report.messages, report.orphans) == ([], 31, 31, 0)
    assert await names(store, "run")
    assert (
        await check(Fated(store, Fate(READS, ends=cut_off, times=1, each=True)))
    ).findings == []  # damaged on the way
    report = await check(table)
    assert (report.findings, report.messages, report.orphans) == ([], 40, 0)
    assert [*table.files.list_files("merged")]
    empty = MemoryStore()
    assert await broken(empty) == {"FormatKnown"}
    await initialise(empty)
    assert await broken(empty) == set()


async def test_a_register_that_makes_no_sense(store: MemoryStore) -> None:
    folders = ("head", "compacted", "segment/", "run/", "page/", "claim/", "group/")
    there = [*(name for name in await names(store, "") if name.startswith(folders)), "segment/99"]
    assert len({name.partition("/")[0] for name in there}) == len(folders)
    for name in there:
        before = await store.read(name)
        for text in (b"{", b"[]", b'{"base": -1, "epoch": "1"}'):
            await store.write(name, text)
            assert "RegistersReadable" in await broken(store), name
        if before:
            await store.write(name, before.value)
        else:
            await store.delete([name])
    assert await broken(store) == set()


@pytest.mark.parametrize("same", [True, False])
async def test_a_segment_that_is_left_is_compared_with_its_run(
    store: MemoryStore, table: MemoryStore, same: bool
) -> None:
    """As after a compaction that stopped before it deleted, and a segment that changed."""
    run = await store.read("run/0-1")
    assert run is not None
    key, (first, messages) = next(iter(orjson.loads(run.value)["keys"].items()))
    left = [(store, 0, key, first, messages[0]), (table, 1, "b", 0, 1)]
    for each, base, key, first, message in left:
        entry = ["w", 1, {key: [first, [message if same else "another"]]}, {}]
        await edited("compacted", update(cursor=0))(each)
        await each.write("segment/0", orjson.dumps({"base": base, "entries": [entry]}))
        assert await broken(each) == (set() if same else {"SegmentsImmutable"})


async def test_large_values_that_are_gone_and_orphans(store: MemoryStore) -> None:
    await store.write(ORPHAN, b"x")
    report = await check(store)
    assert (report.findings, report.orphans) == ([], 1)
    gone = [name for name in await names(store, "data") if name != ORPHAN][:2]
    await store.delete(gone)
    assert [finding.object for finding in (await check(store)).findings] == gone


@pytest.mark.parametrize(
    "name",
    [
        "group/members/cursor/..",
        "group/x",
        "group/=/cursor/=5",
        "data/2026/report.csv",
        "segment/01",
    ],
)
async def test_what_the_log_did_not_write_is_counted_and_not_judged(
    store: MemoryStore, name: str
) -> None:
    await store.write(name, b"{}")
    report = await check(store)
    assert (report.findings, report.foreign, report.foreign_example) == ([], 1, name)


# ---------------------------------------------------------------- runs of Parquet


async def test_a_file_that_is_gone_or_makes_no_sense(table: MemoryStore) -> None:
    merged, *others = [
        each.key for folder in ("merged", "run") for each in table.files.list_files(folder)
    ]
    table.files.delete([merged])
    assert {"CommittedReadable"} <= await broken(table)
    table.files.put(merged, table.files.read_range(others[0], 0, table.files.size(others[0])))
    assert merged in {name for _, name in await found(table)}
    table.files.delete([merged])
    table.files.put(merged, b"no Parquet")
    assert {"RegistersReadable", "CommittedReadable"} <= await broken(table)


async def test_of_files_without_a_segment_no_message_is_kept(table: MemoryStore) -> None:
    references = 0
    async for _, content in contents(table, lambda _: False):
        assert isinstance(content, FileContent)
        assert all({*messages} == {None} for _, _, messages in content.blocks)
        references += len(content.references)
    assert references > 0


async def test_a_file_whose_rows_are_not_in_order(table: MemoryStore) -> None:
    *_, run = await file_refs(table)
    reader = reader_of(table, run)
    shuffled = reader.read().sort_by([("key", "descending"), ("offset", "ascending")])
    table.files.delete([run.path])
    table.files.put(run.path, write_file(shuffled, reader.run))
    findings = (await check(table)).findings
    assert [each.text for each in findings if each.invariant == "RegistersReadable"] == [
        "its rows are not in the order of key and offset"
    ]


async def test_a_message_in_a_file_that_no_program_writes(table: MemoryStore) -> None:
    *_, run = await file_refs(table)
    reader = reader_of(table, run)
    rows = reader.read().to_pylist()
    rows[0] |= {"value": None, "message": '{"$new": 1}'}
    table.files.delete([run.path])
    table.files.put(run.path, write_file(pa.Table.from_pylist(rows, COLUMNS), reader.run))
    assert ("RegistersReadable", run.path) in await found(table)
