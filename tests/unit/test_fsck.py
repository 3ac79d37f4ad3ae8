"""What `fsck` tells beside the laws that a log breaks, which `tests/unit/test_golden.py` has."""

import pyarrow as pa
import pytest

from leaderless.conformance.golden import cases
from leaderless.hosting.place import initialise
from leaderless.store.memory import MemoryStore
from leaderless.table.check import FileContent, contents
from leaderless.table.parquet import write_file
from leaderless.table.schema import COLUMNS
from leaderless.table.snapshot import file_refs, reader_of
from leaderless.upkeep.fsck import check
from tests.around import READS, Fate, Fated, cut_off
from tests.golden import stored

pytestmark = [pytest.mark.anyio, pytest.mark.lawless]
LOGS = {case.name: case.store for case in cases()}


@pytest.fixture
async def store() -> MemoryStore:
    return await stored(LOGS["fenced/0"])


@pytest.fixture
async def table() -> MemoryStore:
    return await stored(LOGS["files/22"])


async def found(store: MemoryStore) -> set[tuple[str, str]]:
    return {(finding.invariant, finding.object) for finding in (await check(store)).findings}


async def test_a_whole_log_has_no_findings(table: MemoryStore) -> None:
    damaged_on_the_way = Fate(READS, ends=cut_off, times=1, each=True)
    for log, messages in ((await stored(LOGS["compaction/0"]), 19), (table, 18)):
        report = await check(Fated(log, damaged_on_the_way))
        assert (report.findings, report.messages, report.orphans) == ([], messages, 0)
    empty = MemoryStore()
    assert {invariant for invariant, _ in await found(empty)} == {"FormatKnown"}
    await initialise(empty)
    assert await found(empty) == set()


async def test_large_values_that_are_gone_and_orphans(store: MemoryStore) -> None:
    gone, other, orphan = sorted(name for name in LOGS["fenced/0"] if name.startswith("data/"))
    report = await check(store)
    assert (report.findings, report.orphans) == ([], 1)
    await store.delete([gone, other, orphan])
    assert await found(store) == {("DataReadable", gone), ("DataReadable", other)}


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


async def test_a_file_that_holds_another_one(table: MemoryStore) -> None:
    merged, run = "merged/0-3-0000000000000006.parquet", "run/4-5.parquet"
    table.files.delete([merged])
    table.files.put(merged, LOGS["files/22"][run])
    assert merged in {name for _, name in await found(table)}


async def test_of_files_without_a_segment_no_message_is_kept(table: MemoryStore) -> None:
    references = 0
    async for _, content in contents(table, lambda _: False):
        assert isinstance(content, FileContent)
        assert all({*messages} == {None} for _, _, messages in content.blocks)
        references += len(content.references)
    assert references > 0


async def test_a_file_whose_rows_are_not_in_order(table: MemoryStore) -> None:
    _, run, _ = await file_refs(table)
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
