"""What others do to a log of files between two calls of a snapshot, a merge, or a vacuum."""

from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import orjson
import pytest

from leaderless.store.files import MemoryFiles, Source
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found, Version
from leaderless.table.manifest import TABLE, manifest_of, read_manifest, replace_manifest
from leaderless.table.snapshot import snapshot, table_in
from tests.tables import LATER_S, Model, content_of, filled, merged, messages, small_log

pytestmark = pytest.mark.anyio


class Moving(MemoryStore):
    """The log moves after the `n`-th read of one of its registers: `move` is called, once."""

    def __init__(self, n: int, move: Callable[["Moving"], Awaitable[None]]) -> None:
        super().__init__()
        self.left = 0
        self.read_before: list[str] = []
        self._n, self._move = n, move

    def begin(self) -> None:
        self.left = self._n

    async def read(self, key: str) -> Found | None:
        found = await super().read(key)
        if self.left and key in ("table", "compacted", "head"):
            self.read_before.append(key)
            self.left -= 1
            if not self.left:
                await self._move(self)
        return found


@pytest.mark.parametrize("n", [1, 2, 3])
async def test_a_snapshot_is_a_prefix_whatever_moves_between_its_reads(n: int) -> None:
    """The list of files is read first, then the index, the head, and the segments."""
    model: Model = {}

    async def move(store: Moving) -> None:
        await filled(store, 30, model)
        await merged(store)

    store = Moving(n, move)
    await filled(store, 15, model)
    await merged(store)
    before = {key: len(values) for key, values in model.items()}
    store.begin()
    content = await content_of(store)
    assert (await read_manifest(store))[0].files
    for key, found in content.items():
        assert found == messages(model)[key][: len(found)]
        assert len(found) >= before[key]
    assert store.read_before == ["table", "compacted", "head"][:n]


async def test_what_moves_into_files_after_the_list_was_read_costs_no_second_attempt() -> None:
    """The index names the runs, whichever files they are merged into, and they stay for a while."""
    model: Model = {}
    reads: list[str] = []

    class Counting(Moving):
        async def read(self, key: str) -> Found | None:
            if not moving:
                reads.append(key)
            return await super().read(key)

    moving = False

    async def move(store: Moving) -> None:
        nonlocal moving
        moving = True
        await filled(store, 30, model)
        await merged(store)
        moving = False

    store = Counting(1, move)
    await filled(store, 15, model)
    await merged(store)
    reads.clear()
    store.begin()
    found = await snapshot(store)
    assert found.version == 45
    assert reads.count(TABLE) == 1


@pytest.mark.lawless  # two stores have the objects of one, and each sees its own changes alone
async def test_a_worker_whose_claim_is_older_than_the_list_merges_nothing() -> None:
    """Another one takes over between its first change of the list and its next look at it."""
    store, model = MemoryStore(), Model()
    await filled(store, 18, model)

    class Overtaken(MemoryStore):
        async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
            return await self._overtaken(key, super().compare_and_set(key, value, version))

        async def create(self, key: str, value: bytes) -> Version:
            return await self._overtaken(key, super().create(key, value))

        async def _overtaken(self, key: str, made: Awaitable[Version]) -> Version:
            result = await made
            if key == TABLE:
                manifest, version = await read_manifest(store)
                assert await replace_manifest(store, manifest._replace(epoch=99), version)
            return result

    slow = Overtaken()
    slow._objects, slow.files = store._objects, store.files
    slow._writes = 1_000_000
    await merged(slow)
    manifest, _ = await read_manifest(store)
    assert (manifest.epoch, manifest.files) == (99, ())
    assert [*store.files.list_files("merged")] == []
    assert await content_of(store) == messages(model)


async def test_a_file_that_was_replaced_lately_stays_however_old_it_is() -> None:
    store, model = MemoryStore(), Model()
    await filled(store, 24, model)
    await merged(store)
    planned = (await snapshot(store)).files
    assert any(ref.path.startswith("merged/") for ref in planned)
    store.ahead_s = LATER_S  # so the files are old by now
    await filled(store, 24, model)
    await merged(store)
    there = {ref.path for ref in (await snapshot(store)).files}
    assert not {ref.path for ref in planned} <= there
    async with small_log(store) as log:
        await log.vacuum()
    for ref in planned:
        await table_in(store, ref)


async def test_a_vacuum_that_comes_too_late_deletes_no_file_that_was_named_meanwhile() -> None:
    """A worker names its file after a vacuum has looked, and before the vacuum changes the list."""
    model: Model = {}
    uploaded, go_on, named = anyio.Event(), anyio.Event(), anyio.Event()

    class Slow(MemoryFiles):
        def put(self, path: str, source: Source) -> None:
            super().put(path, source)
            if path.startswith("merged/") and not uploaded.is_set():
                anyio.from_thread.run_sync(uploaded.set)
                anyio.from_thread.run(go_on.wait)

    class Late(MemoryStore):
        async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
            if key != TABLE or not uploaded.is_set():
                return await super().compare_and_set(key, value, version)
            if not manifest_of(orjson.loads(value)).files:  # of the vacuum
                go_on.set()
                await named.wait()
            result = await super().compare_and_set(key, value, version)
            named.set()
            return result

    store = Late()
    store.files = Slow()
    await filled(store, 18, model)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(merged, store))
        await uploaded.wait()
        store.ahead_s = LATER_S
        async with small_log(store) as log:
            await log.vacuum()
        go_on.set()
    assert named.is_set()
    assert await content_of(store) == messages(model)
