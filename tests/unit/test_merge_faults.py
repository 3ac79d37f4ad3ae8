"""Merges that are cut off, overtaken, or find no room, and readers and vacuums beside them."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

import anyio
import pytest

from leaderless.errors import Definite, LogError
from leaderless.library.fsck import check
from leaderless.store.files import FolderFiles, Gone, MemoryFiles, Source
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Listed, OutcomeUnknown, Version
from leaderless.table.manifest import read_manifest, replace_manifest
from leaderless.table.snapshot import snapshot, table_in
from tests.full_disk import room
from tests.tables import (
    LATER_S,
    Model,
    append,
    compact,
    content_of,
    filled,
    merged,
    messages,
    require_readable,
    small_log,
)

pytestmark = pytest.mark.anyio
T = TypeVar("T")


class Mortal(MemoryStore):
    """A store whose client dies before or after the n-th change that it asks for, of objects and files."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 1 << 30
        self.after = False
        self.files = MortalFiles(self)
        self.shift_s = 0.0

    def change(self, make: Callable[[], T]) -> T:
        self.left -= 1
        if self.left < 0 or (self.left == 0 and not self.after):
            raise OutcomeUnknown("the client is dead")
        result = make()
        if self.left == 0:
            raise OutcomeUnknown("the client died before the answer")
        return result

    def _keep(self, key: str, value: bytes) -> Version:
        return self.change(lambda: super(Mortal, self)._keep(key, value))

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = 1000
    ) -> list[Listed]:
        page = await super().list_objects(folder, after, limit)
        return [each._replace(modified=(each.modified or 0) + self.shift_s) for each in page]


class MortalFiles(MemoryFiles):
    def __init__(self, store: Mortal) -> None:
        super().__init__()
        self._store = store

    def put(self, path: str, source: Source) -> None:
        self._store.change(lambda: super(MortalFiles, self).put(path, source))

    def delete(self, paths: Sequence[str]) -> None:
        self._store.change(lambda: super(MortalFiles, self).delete(paths))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    "chosen", [[7], pytest.param(range(1, 40), marks=pytest.mark.slow)], ids=len
)
async def test_a_worker_that_dies_at_any_step_leaves_a_log_that_the_next_one_merges(
    chosen: Iterable[int], after: bool
) -> None:
    deaths: list[bool] = []
    for steps in chosen:
        store, model = Mortal(), Model()
        await filled(store, 14, model)
        store.left, store.after = steps, after
        died = False
        try:
            await merged(store)
        except LogError:
            died = True
        died = died or store.left <= 0
        store.left = 1 << 30
        assert await content_of(store) == messages(model)
        await merged(store)
        assert await content_of(store) == messages(model)
        manifest, _ = await read_manifest(store)
        assert manifest.files
        await vacuumed(store)
        assert await content_of(store) == messages(model)
        deaths.append(died)
        if not died:
            break  # it had no further step
    assert deaths[0]
    assert not deaths[-1] or deaths == [True]


async def vacuumed(store: Mortal) -> None:
    """Long after, what is not needed is deleted, and nothing else."""
    store.shift_s += LATER_S
    async with small_log(store) as log:
        await log.vacuum()
    manifest, _ = await read_manifest(store)
    there = {each.key for each in store.files.list_files("merged")}
    assert there == {file.path for file in manifest.files}
    assert not manifest.replaced
    found = await snapshot(store)
    runs = {each.key for each in store.files.list_files("run")}
    assert runs == {ref.path for ref in found.files} - there


async def test_a_reader_keeps_its_files_until_the_retention_has_passed() -> None:
    store, model = Mortal(), Model()
    await filled(store, 18, model)
    async with small_log(store) as log:
        while not (slow := await snapshot(store)).files:  # compaction goes on beside appends
            await append(log, model, "a", "beside")
            await anyio.sleep(0.01)
    async with small_log(store) as reader:
        await require_readable(reader, model)  # it keeps an index, and a list of files
        await merged(store)
        async with small_log(store) as log:
            await log.vacuum()
        for ref in slow.files:
            await table_in(store, ref)
        await vacuumed(store)
        with pytest.raises(Gone, match="not any more"):
            await table_in(store, slow.files[0])
        await require_readable(reader, model)


async def test_a_vacuum_stops_a_worker_that_was_about_to_name_what_it_deletes() -> None:
    store, model = Mortal(), Model()
    await filled(store, 18, model)
    uploaded, go_on = anyio.Event(), anyio.Event()

    class Slow(MortalFiles):
        def put(self, path: str, source: Source) -> None:
            super().put(path, source)
            if path.startswith("merged/") and not uploaded.is_set():
                anyio.from_thread.run_sync(uploaded.set)
                anyio.from_thread.run(go_on.wait)

    fast_files, slow_files = store.files, Slow(store)
    slow_files._files = fast_files._files
    async with anyio.create_task_group() as tasks:
        store.files = slow_files
        tasks.start_soon(merged, store)
        await uploaded.wait()
        store.files = fast_files
        orphans = [each.key for each in fast_files.list_files("merged")]
        assert orphans
        store.shift_s += LATER_S
        async with small_log(store) as log:
            await log.vacuum()
        go_on.set()
    assert await content_of(store) == messages(model)
    manifest, _ = await read_manifest(store)
    assert not {file.path for file in manifest.files} & set(orphans)


async def test_two_that_merge_at_once_merge_each_file_once() -> None:
    store, model = MemoryStore(), Model()
    await filled(store, 40, model)
    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(merged, store)
    assert await content_of(store) == messages(model)
    await merged(store)  # whoever had no claim left it to the one that had
    manifest, _ = await read_manifest(store)
    named = {file.path for file in manifest.files} | {each.path for each in manifest.replaced}
    assert {each.key for each in store.files.list_files("merged")} <= named
    assert (await check(store)).findings == []


@pytest.mark.lawless
async def test_a_worker_whose_list_was_replaced_meanwhile_names_nothing_and_leaves_no_file() -> (
    None
):
    """(1) It makes a file. (2) Another one raises the epoch in the list. (3) Its compare-and-set fails."""
    store, model = Mortal(), Model()
    await filled(store, 18, model)

    class Overtaken(MortalFiles):
        def put(self, path: str, source: Source) -> None:
            super().put(path, source)
            if path.startswith("merged/"):
                anyio.from_thread.run(overtake)

    async def overtake() -> None:
        manifest, version = await read_manifest(store)
        assert await replace_manifest(store, manifest._replace(epoch=99), version)

    overtaken = Overtaken(store)
    overtaken._files = store.files._files
    store.files = overtaken
    await merged(store)
    assert [*store.files.list_files("merged")] == []
    assert (await read_manifest(store))[0].files == ()
    assert await content_of(store) == messages(model)


async def test_a_merge_on_a_full_disk_changes_nothing_and_is_made_later() -> None:
    store, model = MemoryStore(), Model()
    await filled(store, 18, model)
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


async def test_no_message_is_twice_or_missing_in_snapshots_while_files_are_merged() -> None:
    """Random appends, compaction, merges and vacuums; each snapshot is a prefix, and so is each read."""
    random = Random(7)
    store, model = Mortal(), Model()
    async with small_log(store) as log:
        for _ in range(60):
            match random.randrange(6):
                case 0:
                    await compact(log)
                case 1:
                    store.shift_s += LATER_S
                    await log.vacuum()
                case 2 if model:
                    key = random.choice([*model])
                    offset = random.randrange(len(model[key]))
                    async with small_log(store) as other:
                        [record, *_] = await other.read(key, offset, 1)
                    assert (record.offset, record.value) == (offset, model[key][offset])
                case _:
                    key = random.choice("abc")
                    await append(log, model, key, *range(random.randrange(1, 4)))
            assert await content_of(store) == messages(model)
    assert (await read_manifest(store))[0].files
