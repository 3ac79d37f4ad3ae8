"""The generated log of the measurements has what a log of the same messages has after compaction and upkeep."""

from functools import partial
from pathlib import Path

import anyio
import pyarrow as pa
import pytest

from leaderless import open_log
from leaderless.library.fsck import check
from leaderless.store.urls import open_store
from leaderless.table.merge import ORDER
from leaderless.table.pieces import Stretch, table_of_stretches
from leaderless.table.snapshot import snapshot, table_in
from performance.compacted_log import compacted, generate
from performance.generated_rows import AT, Shape

SHAPE = Shape(messages=40 * 5 * 30 - 7, keys=50, width=31, batch=30)  # 38 runs, two pages


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The store of the log."""
    found = f"sqlite:///{tmp_path / 'log.db'}"
    anyio.run(partial(_generate, found))
    return found


async def _generate(url: str) -> None:
    store = open_store(url)
    await generate(store, SHAPE)
    await store.aclose()


async def _files(url: str) -> list[pa.Table]:
    store = open_store(url)
    found = await snapshot(store)
    tables = [await table_in(store, ref) for ref in found.files]
    await store.aclose()
    assert [ref.kind for ref in found.files] == ["parquet"] * len(tables)
    assert [ref.base for ref in found.files[1:]] == [ref.end for ref in found.files[:-1]]
    assert found.version == SHAPE.batches
    return tables


def test_rows_made_by_numpy_are_those_of_the_segments(url: str) -> None:
    """Merged files and runs together have the rows of the segments that they are said to be made of."""
    tables = anyio.run(_files, url)
    assert len(tables) < 38, "upkeep merges files"
    found = pa.concat_tables(tables).sort_by(ORDER)
    segments = map(SHAPE.segment, range(compacted(SHAPE)))
    expected = table_of_stretches(Stretch(each.base, each.entries, AT) for each in segments)
    assert found.equals(expected.sort_by(ORDER).slice(0))


def test_the_library_finds_no_fault(url: str) -> None:
    """The index, its pages and the files pass the library's own check, and every record can be read."""

    async def look() -> None:
        store = open_store(url)
        report = await check(store)
        await store.aclose()
        assert (report.findings, report.messages) == ([], SHAPE.messages)
        async with open_log(url, create=False) as log:
            ends = await log.keys()
            assert sum(ends.values()) == SHAPE.messages
            for offset in (0, 50, ends["k000007"] - 1):
                [record] = await log.read("k000007", offset, 1)
                assert str(record.value).startswith(f"{offset * 50 + 7:015}")

    anyio.run(look)
