"""`fsck` names each invariant that a log breaks, and finds nothing in one that is whole."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from random import Random
from typing import Any

import anyio
import anyio.lowlevel
import orjson
import pytest

from leaderless.api.log import Log
from leaderless.core.shape import Runs
from leaderless.hosting.fsck import check
from leaderless.hosting.host import running
from leaderless.hosting.place import Bounds, bounds_of, initialise
from leaderless.store.files import files_of
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found, Version, all_of
from leaderless.store.values import Value
from leaderless.table.check import FileContent, contents
from leaderless.table.parquet import write_file
from leaderless.table.snapshot import file_refs, reader_of
from tests.around import CutOff
from tests.lawful import lawful_memory
from tests.tables import compact, small_log
from tests.vacuuming import ORPHAN

pytestmark = [pytest.mark.anyio, pytest.mark.lawless]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes no sense is read again, at once: here it is the object that is damaged."""
    monkeypatch.setattr("leaderless.store.calls.PAUSE_S", 0.0)


def small(store: MemoryStore) -> Bounds:
    """Bounds of a log with many small segments, runs and pages."""
    bounds = bounds_of(store, 5.0, 1.0)
    shape = replace(bounds.shape, seal_entries=2, segments_per_run=2, page_children=2)
    return bounds._replace(shape=shape, inline_bytes=100)


@pytest.fixture
async def store() -> MemoryStore:
    """A log with runs, pages, segments, a tail, large values, a cursor, and a group with a member."""
    store = MemoryStore()
    await initialise(store, shape=small(store).shape)
    log = Log(store, small(store))
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


async def names(store: MemoryStore, folder: str) -> list[str]:
    return [listed.key async for listed in all_of(store, folder)]


async def change(store: MemoryStore, name: str, edit: Callable[[Any], object]) -> None:
    found = await store.read(name)
    assert found is not None
    value = orjson.loads(found.value)
    edit(value)
    await store.write(name, orjson.dumps(value))


async def broken(store: MemoryStore) -> set[str]:
    return {finding.invariant for finding in (await check(store)).findings}


async def test_a_whole_log_has_no_findings(store: MemoryStore) -> None:
    report = await check(store)
    assert report.findings == []
    assert (report.batches, report.messages, report.orphans) == (31, 31, 0)
    assert await names(store, "run")


async def test_an_empty_log_has_no_findings() -> None:
    store = MemoryStore()
    await initialise(store)
    assert (await check(store)).findings == []


async def test_no_log_at_all() -> None:
    assert await broken(MemoryStore()) == {"FormatKnown"}


async def test_a_register_that_makes_no_sense(store: MemoryStore) -> None:
    objects = [listed.key async for listed in all_of(store)]
    folders = ("head", "compacted", "segment/", "run/", "page/", "claim/", "group/")
    names = [*(name for name in objects if name.startswith(folders)), "segment/99"]
    assert len({name.partition("/")[0] for name in names}) == len(folders)
    for name in names:
        found = await store.read(name)
        for text in (b"{", b"[]", b'{"base": -1, "epoch": "1"}'):
            await store.write(name, text)
            assert "RegistersReadable" in await broken(store), name
        if found:
            await store.write(name, found.value)
        else:
            await store.delete([name])
    assert await broken(store) == set()


async def test_an_answer_that_was_damaged_on_the_way_is_no_finding(store: MemoryStore) -> None:
    assert (await check(CutOff(store, each=1))).findings == []


async def test_a_run_that_is_gone(store: MemoryStore) -> None:
    first, *_ = await names(store, "run")
    await store.delete([first])
    assert {"CommittedReadable", "OffsetsDense"} <= await broken(store)


async def test_a_gap_before_the_head(store: MemoryStore) -> None:
    await change(store, "head", lambda head: head.update(base=head["base"] + 1))
    assert "CommittedReadable" in await broken(store)


async def test_an_offset_that_is_left_out(store: MemoryStore) -> None:
    def skip(head: Any) -> None:
        block = next(iter(head["entries"][-1][2].values()))
        block[0] += 1

    await change(store, "head", skip)
    assert await broken(store) == {"OffsetsDense"}


async def test_a_batch_that_is_there_twice(store: MemoryStore) -> None:
    await change(store, "head", lambda head: head["entries"].append(head["entries"][-1]))
    assert await broken(store) == {"AckedExactlyOnce", "OffsetsDense"}


async def test_a_segment_that_differs_from_its_run(store: MemoryStore) -> None:
    """As after a compaction that stopped before it deleted, and a segment that changed."""
    found = await store.read("run/0-1")
    assert found is not None
    key, (first, messages) = next(iter(orjson.loads(found.value)["keys"].items()))
    entry = ["w", 1, {key: [first, messages[:1]]}, {}]
    await store.write("segment/0", orjson.dumps({"base": 0, "entries": [entry]}))
    assert await broken(store) == set()
    entry[2] = {key: [first, ["another"]]}
    await store.write("segment/0", orjson.dumps({"base": 0, "entries": [entry]}))
    assert await broken(store) == {"SegmentsImmutable"}


async def test_a_large_value_that_is_gone_or_cut(store: MemoryStore) -> None:
    [first, second, *_] = await names(store, "data")
    await store.write(first, b"short")
    assert await broken(store) == {"DataReadable"}
    await store.delete([first, second])
    report = await check(store)
    assert [finding.object for finding in report.findings] == [first, second]


async def test_orphans_are_counted(store: MemoryStore) -> None:
    await store.write(ORPHAN, b"x")
    report = await check(store)
    assert (report.findings, report.orphans) == ([], 1)


# ---------------------------------------------------------------- index, claims, groups


def set_parts(parts: int, index: Any) -> None:
    index["listed"][0][5] = parts


async def test_an_index_that_names_more_parts_than_a_page_can_have(store: MemoryStore) -> None:
    for parts in (0, 3, 1 << 40):
        await change(store, "compacted", partial(set_parts, parts))
        found = (await check(store)).findings
        assert ("RegistersReadable", "compacted") in {
            (each.invariant, each.object) for each in found
        }


async def test_an_index_that_leaves_a_run_out(store: MemoryStore) -> None:
    await change(store, "compacted", lambda index: index["listed"].pop(0))
    assert {"CommittedReadable", "IndexMatchesRuns"} <= await broken(store)


@pytest.mark.parametrize("place", [1, 2, 3, 4])
async def test_an_index_that_says_what_is_not_so(store: MemoryStore, place: int) -> None:
    def shift(index: Any) -> None:
        index["listed"][-1][place] += 1

    await change(store, "compacted", shift)
    assert await broken(store) & {"IndexMatchesRuns", "CommittedReadable"}


async def test_a_cursor_that_passed_what_is_compacted(store: MemoryStore) -> None:
    def pass_by(index: Any) -> None:
        index["cursor"] = index["listed"][-1][2] + 2

    await change(store, "compacted", pass_by)
    assert await broken(store) == {"CursorNeverPassesCompacted"}


async def test_a_segment_that_was_deleted_before_it_was_compacted(store: MemoryStore) -> None:
    [*_, last] = [name for name in await names(store, "segment") if await holds(store, name)]
    await store.write(last, orjson.dumps({"deleted": True}))
    assert {"CommittedReadable", "CursorNeverPassesCompacted"} <= await broken(store)


async def holds(store: MemoryStore, name: str) -> bool:
    found = await store.read(name)
    return found is not None and b"entries" in found.value


async def test_a_page_that_is_gone(store: MemoryStore) -> None:
    [page, *_] = await names(store, "page")
    await store.delete([page])
    assert "CommittedReadable" in await broken(store)


async def test_a_page_that_says_what_its_runs_do_not(store: MemoryStore) -> None:
    [page, *_] = await names(store, "page")

    def longer(value: Any) -> None:
        next(iter(value["keys"].values()))[-1] += 1

    await change(store, page, longer)
    assert await broken(store) == {"IndexMatchesRuns"}


async def test_a_page_that_forgot_a_writer(store: MemoryStore) -> None:
    """Then a batch of that writer could come a second time."""
    for page in await names(store, "page"):
        found = await store.read(page)
        assert found is not None
        if orjson.loads(found.value)["writers"]:
            await change(store, page, lambda value: value["writers"].clear())
            assert await broken(store) == {"IndexMatchesRuns"}
            return
    raise AssertionError("no page has a writer")


async def test_an_epoch_that_nobody_claimed(store: MemoryStore) -> None:
    def raised(index: dict[str, Any]) -> None:
        index["epoch"] += 1

    await change(store, "compacted", raised)
    assert await broken(store) == {"OneLiveClaim"}


@pytest.mark.parametrize("wrong", [{"epoch": 0}, {"owner": 7}, {"beat": -1}, {"task": None}])
async def test_what_no_program_takes_for_a_claim_is_none(
    store: MemoryStore, wrong: dict[str, Any]
) -> None:
    """A claim of epoch 0 among them: to take it raises it to 1."""
    await change(store, "claim/compaction", lambda claim: claim.update(wrong))
    assert "claim/compaction" in [each.object for each in (await check(store)).findings]
    assert "RegistersReadable" in await broken(store)


async def test_what_no_member_writes_is_no_list_of_members(store: MemoryStore) -> None:
    await change(store, "group/members/members", lambda roster: roster.update(keys={"a": [0, "w"]}))
    findings = {(each.invariant, each.object) for each in (await check(store)).findings}
    assert findings == {
        ("RegistersReadable", "group/members/members"),
        ("OneLiveClaim", "group/members/cursor/a"),
    }


async def test_a_cursor_of_an_epoch_that_nobody_claimed(store: MemoryStore) -> None:
    await change(store, "group/members/cursor/a", lambda cursor: cursor.update(epoch=99))
    [finding] = (await check(store)).findings
    assert (finding.invariant, finding.object) == ("OneLiveClaim", "group/members/cursor/a")


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


@pytest.fixture
async def table() -> MemoryStore:
    """A log with runs of Parquet, some of them merged."""
    store = MemoryStore()
    async with small_log(store) as log:
        for number in range(40):
            await log.append("ab"[number % 2], "x" * 20_000 if number % 9 == 0 else number)
        await compact(log)
    return store


async def files(store: MemoryStore) -> list[str]:
    found = files_of(store)
    assert found
    return [listed.key for folder in ("run", "merged") for listed in found.list_files(folder)]


async def test_a_table_has_no_findings(table: MemoryStore) -> None:
    report = await check(table)
    assert report.findings == []
    assert (report.messages, report.orphans) == (40, 0)
    assert any(name.startswith("merged") for name in await files(table))


async def test_a_file_that_is_gone_or_makes_no_sense(table: MemoryStore) -> None:
    manifest = await table.read("table")
    assert manifest
    [merged, *_] = orjson.loads(manifest.value)["files"]
    content = files_of(table)
    assert content
    content.delete([merged[0]])
    assert {"CommittedReadable"} <= await broken(table)
    content.put(merged[0], b"no Parquet")
    assert {"RegistersReadable", "CommittedReadable"} <= await broken(table)


@pytest.mark.parametrize("value", [1, "another"])
async def test_a_segment_that_is_left_is_compared_with_its_file(
    table: MemoryStore, value: Value
) -> None:
    entry = ["w", 1, {"b": [0, [value]]}, {}]
    await table.write("segment/0", orjson.dumps({"base": 1, "entries": [entry]}))
    assert await broken(table) == (set() if value == 1 else {"SegmentsImmutable"})


async def test_of_files_without_such_a_segment_no_message_is_kept(table: MemoryStore) -> None:
    references = 0
    async for _, found in contents(table, lambda _: False):
        assert isinstance(found, FileContent)
        assert all(isinstance(messages, range) for _, _, messages in found.blocks)
        references += len(found.references)
    assert references > 0


async def test_a_file_whose_rows_are_not_in_order(table: MemoryStore) -> None:
    *_, run = await file_refs(table)
    content = files_of(table)
    assert content
    reader = reader_of(table, run)
    shuffled = reader.read().sort_by([("key", "descending"), ("offset", "ascending")])
    content.delete([run.path])
    content.put(run.path, write_file(shuffled, reader.run))
    findings = (await check(table)).findings
    assert [each.text for each in findings if each.invariant == "RegistersReadable"] == [
        "its rows are not in the order of key and offset"
    ]


async def test_a_list_of_files_of_an_epoch_that_nobody_claimed(table: MemoryStore) -> None:
    await change(table, "table", lambda manifest: manifest.update(epoch=99))
    assert await broken(table) == {"OneLiveClaim"}


# ---------------------------------------------------------------- in use


class Slow(MemoryStore):
    """A store each of whose calls lets others go first, some turns or none."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = Random(seed)

    async def _wait(self) -> None:
        for _ in range(self._random.choice((0, 1, 1, 2, 9))):
            await anyio.lowlevel.checkpoint()

    async def read(self, key: str) -> Found | None:
        await self._wait()
        return await super().read(key)

    async def write(self, key: str, value: bytes) -> Version:
        version = await super().write(key, value)
        await self._wait()
        return version


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("runs", ["json", "parquet"])
async def test_a_log_in_use_has_no_findings(seed: int, runs: Runs) -> None:
    """Two processes append large and small values and compact, and members of a group work, meanwhile."""
    with lawful_memory():
        await use(seed, runs)


async def use(seed: int, runs: Runs) -> None:
    store = Slow(seed)
    checked = 0
    async with small_log(store, runs) as one, small_log(store, runs) as other:
        await one.append("a", 0)
        async with anyio.create_task_group() as tasks:

            async def work(log: Log) -> None:
                for number in count():
                    await log.append("ab"[number % 2], "x" * 20_000 if number % 9 == 0 else number)
                    if number > 40 and checked > 3:  # so it was checked while it was used
                        break
                async with log.consumer("g", "ab", lease_s=0.2, latency_s=0.01) as consumer:
                    for _ in range(5):
                        await consumer.ack(await anext(consumer))

            async def watch() -> None:
                nonlocal checked
                while True:
                    assert (await check(store)).findings == []
                    checked += 1

            tasks.start_soon(watch)
            async with anyio.create_task_group() as workers:
                workers.start_soon(work, one)
                workers.start_soon(work, other)
            tasks.cancel_scope.cancel()
    assert (await check(store)).findings == []


async def test_a_head_that_says_another_shape_than_format(store: MemoryStore) -> None:
    await change(store, "format", lambda format_: format_["shape"].update(seal_bytes=77))
    assert await broken(store) == {"ShapeNeverChanges"}
