"""Files of runs are merged into larger ones: which, in how much memory, cut off, overtaken, or without room."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from threading import Event

import anyio
import anyio.to_thread
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderless.core.headlog.index import COMPACTED, index_of
from leaderless.errors import Definite
from leaderless.store.files import FolderFiles, MemoryFiles
from leaderless.store.memory import MemoryStore
from leaderless.store.port import OutcomeUnknown
from leaderless.table import upkeep
from leaderless.table.manifest import (
    Levels,
    Manifest,
    Merged,
    next_merge,
    read_manifest,
)
from leaderless.table.merge import PIECE_SHARE, merge_rows
from leaderless.table.parquet import GROUP_BYTES, FileWriter, Reader, write_file
from leaderless.table.schema import Row, rows_in
from leaderless.table.snapshot import snapshot, table_in
from tests.full_disk import room
from tests.tables import (
    compact,
    content_of,
    filled,
    merged,
    messages,
    small_log,
    table_of,
)

pytestmark = pytest.mark.anyio


keys = st.lists(st.sampled_from("abcd"), max_size=60)


@given(keys, st.lists(st.integers(0, 60), max_size=5), st.integers(1, 7))
def test_a_merge_is_a_sort(appended: list[str], cuts: list[int], rows: int) -> None:
    """Whatever the files and however small their row groups."""
    whole = [
        Row(key, appended[:place].count(key), f"{place}", "w", place, place, None)
        for place, key in enumerate(appended)
    ]
    files = MemoryFiles()
    bounds = [0, *sorted(cuts), len(whole)]
    readers = []
    for place, (start, end) in enumerate(pairwise(bounds)):
        target = pa.BufferOutputStream()
        with FileWriter(target, {}) as writer:
            table = table_of(whole[start:end])
            for first in range(0, table.num_rows, rows):
                writer.write(table.slice(first, rows))
                writer.flush()
        files.put(f"{place}", bytes(target.getvalue()))
        readers.append(Reader(files, f"{place}"))
    target = pa.BufferOutputStream()
    with FileWriter(target, {}) as writer:
        merge_rows(readers, writer)
    files.put("merged", bytes(target.getvalue()))
    assert [*rows_in(Reader(files, "merged").read())] == sorted(
        whole, key=lambda row: (row.key, row.offset)
    )
    assert writer.content.rows == len(whole)


def _files(*sizes: tuple[int, int]) -> tuple[Merged, ...]:
    return tuple(
        Merged(f"{place}", level, place, place, place, place + 1, 1, size, None)
        for place, (level, size) in enumerate(sizes)
    )


@pytest.mark.parametrize(
    ("sizes", "merged"),
    [
        ([(1, 5), (1, 5)], []),
        ([(1, 5), (1, 5), (1, 5)], ["0", "1", "2"]),
        ([(2, 5), (1, 5), (1, 5), (1, 5)], ["1", "2", "3"]),
        ([(2, 5), (2, 5), (1, 5), (2, 5)], []),  # no more than a level, and no gap
        ([(1, 60), (1, 60)], ["0", "1"]),  # enough bytes
        ([(1, 99), (1, 100), (1, 5), (1, 5)], []),  # a large one stays as it is
        ([(2, 100), (1, 5), (1, 5), (1, 5), (1, 5)], ["1", "2", "3"]),
    ],
)
def test_files_of_a_level_are_merged_until_they_are_large(
    sizes: list[tuple[int, int]], merged: list[str]
) -> None:
    levels = Levels(fan=3, large_bytes=100, top_bytes=120)
    assert [each.path for each in next_merge(Manifest(files=_files(*sizes)), [], levels)] == merged


def test_a_record_is_written_once_a_level() -> None:
    """The write amplification of the docstring, for runs of 100 kB and 1000 of them."""
    levels, manifest, written = Levels(), Manifest(), 0
    for place in range(1000):
        runs = list(_files(*[(0, 100_000)])) if not written else []
        file = Merged(f"r{place}", 0, place, place, place, place + 1, 1, 100_000, None)
        manifest = manifest._replace(files=(*manifest.files, file, *runs[1:]))
        while some := next_merge(manifest, [], levels):
            size = sum(each.bytes for each in some)
            written += size
            new = some[0]._replace(
                path=f"m{written}", level=some[0].level + 1, last=some[-1].last, bytes=size
            )
            manifest = manifest.with_merged(some, new, 0.0)
    assert written / (1000 * 100_000) < 3
    assert max(file.bytes for file in manifest.files) < 256 << 20
    assert manifest.files[0].bytes >= levels.large_bytes or len(manifest.files) < 40


# ---------------------------------------------------------------- a log with merges


async def test_files_are_in_order_and_leave_the_runs_that_a_start_reads(store: MemoryStore) -> None:
    """Files that are merged have all their metadata."""
    await filled(store, 40)
    await merged(store)
    found = await snapshot(store)
    for ref in found.files:
        table = await table_in(store, ref)
        places = [*zip(table["key"].to_pylist(), table["offset"].to_pylist(), strict=True)]
        assert places == sorted(places)
        assert all(ref.base <= slot < ref.end for slot in table["slot"].to_pylist())
        if ref.rows is not None:
            assert (ref.rows, ref.keys) == (table.num_rows, (places[0][0], places[-1][0]))
        assert table["appended_at"].null_count in (0, table.num_rows)
    assert [ref.base for ref in found.files] == [0, *(ref.end for ref in found.files)][:-1]
    index = await store.read(COMPACTED)
    assert index
    direct = [each for each in index_of(orjson.loads(index.value)).listed if not each.level]
    there = {each.key for each in store.files.list_files("run")}
    assert {f"{each.register()}.parquet" for each in direct} <= there
    assert (await read_manifest(store))[0].sealed <= min(each.first for each in direct)


class Weighed(FileWriter):
    """Knows the `most` bytes that it was given at once."""

    most = 0

    def write(self, table: pa.Table) -> None:
        self.most = max(self.most, table.nbytes)
        super().write(table)


@pytest.mark.parametrize("rows", [4_000, 8_000])
def test_a_merge_holds_a_piece_of_each_file_however_large_the_files_are(rows: int) -> None:
    """Row groups have 2 MiB, and so about 2 000 of these rows; a piece is a quarter of one."""
    files, count = MemoryFiles(), 3
    for place in range(count):
        files.put(f"{place}", write_file(wide_rows(place, count, rows), {}))
    readers = [Reader(files, f"{place}") for place in range(count)]
    assert all(reader.row_groups == rows // 2_000 + 1 for reader in readers)
    target = pa.BufferOutputStream()
    with Weighed(target, {}) as writer:
        merge_rows(readers, writer)
    assert writer.most <= 1.05 * count * GROUP_BYTES / PIECE_SHARE
    merged = pq.ParquetFile(target.getvalue())
    assert merged.read()["offset"].to_pylist() == [*range(count * rows)]
    assert all(
        merged.metadata.row_group(place).total_byte_size <= GROUP_BYTES
        for place in range(merged.num_row_groups)
    )


def wide_rows(place: int, count: int, rows: int) -> pa.Table:
    """Every `count`-th offset of a key from `place` on, each with a value of a kilobyte."""
    found = [
        Row("k", offset, "x" * 998, "w", 0, 0, 0.0) for offset in range(place, count * rows, count)
    ]
    return table_of(found, ordered=True)


async def test_who_is_cancelled_does_not_wait_for_a_merge_which_ends(
    store: MemoryStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = await filled(store, 30)
    begun, goes_on, ended = Event(), Event(), Event()

    def slow(readers: Sequence[Reader], writer: FileWriter, *cancelled: Event) -> None:
        begun.set()
        goes_on.wait(10)
        try:
            merge_rows(readers, writer, *cancelled)
        finally:
            ended.set()

    with monkeypatch.context() as patch:
        patch.setattr(upkeep, "merge_rows", slow)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(merged, store)
            await anyio.to_thread.run_sync(begun.wait)
            tasks.cancel_scope.cancel()
        assert not ended.is_set()
        goes_on.set()
        await anyio.to_thread.run_sync(ended.wait)
    assert not [*store.files.list_files("merged")]
    await merged(store)
    assert await content_of(store) == messages(model)


# ---------------------------------------------------------------- faults


async def test_a_merge_on_a_full_disk_changes_nothing_and_is_made_later(store: MemoryStore) -> None:
    model = await filled(store, 18)
    with room(100):
        async with small_log(store) as log:
            with pytest.raises(Definite, match=r"it needs room in .*TMPDIR.*File too large"):
                await compact(log)
    assert (await read_manifest(store))[0].files == ()
    assert [*store.files.list_files("merged")] == []
    assert await content_of(store) == messages(model)
    await merged(store)
    assert (await read_manifest(store))[0].files
    assert await content_of(store) == messages(model)


def test_a_file_that_finds_no_room_leaves_nothing(tmp_path: Path) -> None:
    files = FolderFiles(tmp_path)
    with room(100), pytest.raises(OutcomeUnknown, match="File too large"):
        files.put("merged/a.parquet", b"x" * 200)
    assert [*files.list_files("merged")] == []
