"""A log touches only what it can have written: names parsed whole, places apart, files in its folder."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from leaderless.api.log import Log
from leaderless.errors import Unfit
from leaderless.hosting.fsck import check
from leaderless.hosting.place import ensure_log, initialise
from leaderless.spark.epochs import commit
from leaderless.spark.staging import Epoch
from leaderless.store.files import FolderFiles
from leaderless.store.memory import MemoryStore
from leaderless.store.names import is_own
from leaderless.store.port import PAGE, Listed, OutcomeUnknown, Refused, Store, all_of
from leaderless.store.wrapped import Within, Wrapped
from tests.tables import LATER_S, small_log

pytestmark = pytest.mark.anyio
TOKEN, HEX = f"{0:016x}", f"{0:024x}"
FILES = [f"merged/0-1-{TOKEN}.parquet", f"starts/{TOKEN}.json", "run/0-1.parquet"]
OWN = [
    "head", "format", "compacted", "table", "clock", "claim/table", "segment/0", "run/10-12",
    "page/1/0-3/0-of-1", "page/1/0-3/1-of-2", "committed/0", f"data/17-4-{HEX}", f"probe/{TOKEN}",
    "group/g/cursor/=", "group/=2E/cursor/k", "group/g/members",
    f"sink/q/{7:020}/plan", f"sink/q/{7:020}/000003-0-17-{HEX}/000000",
    f"merged/unfinished-{TOKEN}", *FILES,
]  # fmt: skip
NEARLY = [
    "heads", "segment/", "segment/00", "segment/-1", "segment/0/x", "segment/0\n", "segment/٣", "run/0",
    "run/0-1-2", "page/1/0-3", "page/1/0-3/1-of-", "data/17", f"data/17-{HEX}", f"data/17-4-{HEX}.csv",
    f"data/17-4-{HEX}/x", f"x/data/17-4-{HEX}", f"data/17-4-{0:025x}", "data/2026-11-report",
    "merged/theirs.csv", f"merged/0-1-{TOKEN}.csv",
    "group/g/cursor/..", "group/g/cursor/=2f", "group//cursor/k", "group/g/cursor/a/b", "group/g/cursor/é",
    f"sink/q/{7:019}/plan", f"sink/q/{7:020}/plans", f"sink/q/{7:020}/0-0/0", f"starts/{TOKEN}.jsonl",
    "topic/a/head",
]  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_a_name_that_a_log_writes(name: str) -> None:
    assert is_own(name)


@pytest.mark.parametrize("name", NEARLY)
def test_a_name_that_is_nearly_one(name: str) -> None:
    assert not is_own(name)


# ------------------------------------------------------------ what others keep there


@pytest.mark.lawless
async def test_a_vacuum_leaves_another_log_and_files_of_others(tmp_path: Path) -> None:
    store = MemoryStore()
    inner = Within(store, "data")  # as an older release let it be made
    theirs = ["data/2026/report.csv", "merged/theirs.csv", "starts/x.json", "sink/a/b"]
    await initialise(inner, "json")
    async with small_log(inner, "json", timeout_s=1.0) as log:
        await log.append("k", "x" * 20_000)
    async with small_log(store, timeout_s=1.0) as log:
        await log.append("k", 1)
        for name in theirs:
            await store.write(name, b"theirs")
            store.files.put(name, b"theirs")
        before = [each.key async for each in all_of(store)]
        store.ahead_s = LATER_S
        vacuumed = await log.vacuum(600)
    assert (vacuumed.deleted, vacuumed.files, vacuumed.staged) == (0, 0, 0)
    assert [each.key async for each in all_of(store)] == sorted({*before, "clock"})
    assert [store.files.size(name) for name in theirs] == [6] * len(theirs)
    report = await check(store)
    assert (report.findings, report.orphans) == ([], 0)
    others = {f"data/{each.key}" async for each in all_of(inner)}
    assert report.foreign == len({*theirs, *others})
    assert report.foreign_example == "data/2026/report.csv"


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ("", "data", "memory:/data is inside the log at memory:"),
        ("p", "p/q/r", "memory:/p/q/r is inside the log at memory:/p;"),
        ("p/data", "p", "memory:/p has the log at memory:/p/data inside it"),
        ("log", "", "memory: has the log at memory:/log inside it"),
        ("", "topic/a", ""),
        ("topic/a", "", ""),
        ("topic/a", "topic/b", ""),
        ("p", "p2", ""),
        ("p2", "p", ""),
    ],
)
async def test_a_log_is_made_apart_from_others(old: str, new: str, refused: str) -> None:
    store = MemoryStore("")
    await ensure_log(Within(store, old) if old else store)
    place = Within(store, new) if new else store
    if refused:
        with pytest.raises(Unfit, match=refused):
            await ensure_log(place)
    else:
        assert (await ensure_log(place)).new


async def test_who_may_read_only_below_a_prefix_makes_a_log_there() -> None:
    class Restricted(MemoryStore):
        async def read(self, key: str) -> Any:
            if not key.startswith("mine/"):
                raise Refused("403")
            return await super().read(key)

    assert (await ensure_log(Within(Restricted(), "mine"))).new


# ------------------------------------------------------------ one answer that is lost


class Unanswered(Wrapped):
    """Every other listing gets no answer."""

    asked = 0

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        self.asked += 1
        if self.asked % 2:
            raise OutcomeUnknown("no answer")
        return await super().list_objects(folder, after, limit)


USES: dict[str, Callable[[Store, Log], Awaitable[object]]] = {
    "vacuum": lambda _, log: log.vacuum(600),
    "fsck": lambda store, _: check(store),
    "a sink's commit": lambda store, log: commit(log, store, Epoch("q", 1), []),
    "groups": lambda _, log: log.cursors.groups(),
    "committed": lambda _, log: log.committed_by_nodes(),
    "init": lambda store, _: ensure_log(Within(store, "topic/a")),
}


@pytest.mark.parametrize("use", USES)
async def test_a_listing_without_an_answer_is_asked_again(
    use: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leaderless.store.calls.PAUSE_S", 0.0)
    store = Unanswered(MemoryStore())
    async with small_log(store, "json", timeout_s=1.0) as log:
        await log.append("k", 1)
        await USES[use](store, log)
    assert store.asked > 1


# ------------------------------------------------------------ files


async def test_no_file_outside_the_folder_is_touched(tmp_path: Path) -> None:
    outside, files = tmp_path / "outside", FolderFiles(tmp_path / "log.db-files")
    outside.mkdir()
    (outside / "0-1.parquet").write_bytes(b"theirs")
    files.put("merged/a.parquet", b"ours")
    (tmp_path / "log.db-files" / "run").symlink_to(outside)
    (tmp_path / "log.db-files" / "merged" / "link.parquet").symlink_to(outside / "0-1.parquet")
    paths = [f"{outside}/0-1.parquet", "../outside/0-1.parquet", "merged/../../outside/0-1.parquet"]
    for path in [*paths, "run/0-1.parquet", "", ".", "merged//a.parquet"]:
        for call in (
            lambda path=path: files.put(path, b"ours"),
            lambda path=path: files.size(path),
            lambda path=path: files.read_range(path, 0, 1),
            lambda path=path: files.delete([path]),
        ):
            with pytest.raises(Refused, match="nothing outside is touched"):
                call()
    with pytest.raises(Refused):
        [*files.list_files("run")]
    with pytest.raises(OutcomeUnknown):
        files.read_range("merged/link.parquet", 0, 1)
    files.delete(["merged/link.parquet"])  # the link goes, and not what it shows
    assert (outside / "0-1.parquet").read_bytes() == b"theirs"
    assert [each.key for each in files.list_files("merged")] == ["merged/a.parquet"]
