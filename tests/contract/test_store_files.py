"""One contract for the files of every store that has them (`leaderless.store.files`)."""

import io
from pathlib import Path

import anyio.to_thread
import pytest

from leaderless.store.files import WHOLE_BYTES_MAX, Files, Gone, files_of
from leaderless.store.port import Store
from leaderless.store.wrapped import Within
from leaderless.table.parquet import RangeReader

pytestmark = pytest.mark.anyio

WITH_FILES = pytest.mark.parametrize(
    "place",
    [
        "memory",
        "sqlite",
        pytest.param("s3", marks=pytest.mark.process),
        pytest.param("ceph", marks=[pytest.mark.process, pytest.mark.stores]),
        pytest.param("azurite", marks=[pytest.mark.process, pytest.mark.stores]),
    ],
    indirect=True,
)


@pytest.fixture
def files(store: Store) -> Files:
    """The files of a store below a prefix."""
    found = files_of(Within(store, "topic/x"))
    assert found is not None
    return found


@WITH_FILES
async def test_a_file_is_read_in_ranges(files: Files) -> None:
    content = bytes(range(256)) * 40

    def use() -> None:
        files.put("run/0-1.parquet", content)
        files.put("run/0-1.parquet", b"another")  # it stays as it is
        assert files.size("run/0-1.parquet") == len(content)
        assert files.read_range("run/0-1.parquet", 1000, 500) == content[1000:1500]
        reader = RangeReader(files, "run/0-1.parquet")
        reader.seek(-8, io.SEEK_END)
        assert (reader.read(), reader.bytes_read) == (content[-8:], 8)

    await anyio.to_thread.run_sync(use)


@WITH_FILES
@pytest.mark.parametrize("opened", [False, True], ids=["path", "open"])
async def test_a_large_file_comes_from_the_disk_whole(
    files: Files, tmp_path: Path, opened: bool
) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"0123456789abcdef" * (WHOLE_BYTES_MAX // 16 + 1))

    def use() -> None:
        with source.open("rb") as content:
            files.put("merged/large.parquet", content if opened else source)
        size = source.stat().st_size
        assert files.size("merged/large.parquet") == size
        assert files.read_range("merged/large.parquet", size - 4, 4) == b"cdef"

    await anyio.to_thread.run_sync(use)


@WITH_FILES
async def test_files_are_listed_and_deleted(files: Files) -> None:
    def use() -> None:
        for name in ("merged/b.parquet", "merged/a.parquet", "run/c.parquet"):
            files.put(name, b"12345")
        listed = [*files.list_files("merged")]
        assert [(each.key, each.size) for each in listed] == [
            ("merged/a.parquet", 5), ("merged/b.parquet", 5),
        ]  # fmt: skip
        assert all(each.modified for each in listed)
        files.delete(["merged/a.parquet", "merged/none.parquet"])
        assert [each.key for each in files.list_files("merged")] == ["merged/b.parquet"]
        with pytest.raises(Gone):
            files.size("merged/a.parquet")
        with pytest.raises(Gone):
            files.read_range("merged/a.parquet", 0, 1)
        assert [*files.list_files("none")] == []
        assert files.location("run/c.parquet").endswith("topic/x/run/c.parquet")

    await anyio.to_thread.run_sync(use)
