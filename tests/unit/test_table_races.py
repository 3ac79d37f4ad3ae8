"""What others do to a log of files between two calls of a snapshot, a merge, or a vacuum."""

from collections.abc import Awaitable, Callable
from functools import partial
from unittest.mock import AsyncMock

import anyio
import orjson
import pytest

from leaderless.api.log import Log
from leaderless.core.headlog.records import Run
from leaderless.errors import Broken, LogError
from leaderless.hosting.maintenance import Maintenance
from leaderless.store.files import MemoryFiles, Source, require_length
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found, OutcomeUnknown, Refused, Version
from leaderless.table.manifest import TABLE, manifest_of, read_manifest, replace_manifest
from leaderless.table.parquet import Reader, write_file
from leaderless.table.retention import Policy
from leaderless.table.runs import Origin, create_run, encode_run
from leaderless.table.schema import Row, table_of
from leaderless.table.snapshot import snapshot, table_in
from tests.around import ANY_NUMBER, CutOff
from tests.tables import LATER_S, Model, compact, content_of, filled, merged, messages, small_log

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


# ---------------------------------------------------------------- answers that are cut off or make no sense

Damage = Callable[[bytes], bytes]


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def nonsense(content: bytes) -> bytes:
    return b"\xff" * len(content)


class DamagedFiles(MemoryFiles):
    """Of ranges that are read, the next `left` are damaged."""

    def __init__(self, damage: Damage, left: int = 0) -> None:
        super().__init__()
        self._damage, self.left = damage, left

    def read_range(self, path: str, start: int, length: int) -> bytes:
        content = super().read_range(path, start, length)
        if self.left <= 0:
            return content
        self.left -= 1
        return require_length(self._damage(content), length, path)


FILE = write_file(table_of([Row("k", 0, "x", "w", 0, 0, 1.0)]), {"base": 3})


@pytest.mark.parametrize("damage", [half, nonsense])
@pytest.mark.parametrize("left", [1, 2, 3])
def test_a_damaged_range_is_asked_for_again(damage: Damage, left: int) -> None:
    files = DamagedFiles(damage, left)
    files.put("a", FILE)
    reader = Reader(files, "a")
    files.left = left
    assert reader.read()["offset"].to_pylist() == [0]
    assert reader.run == {"base": 3}


@pytest.mark.parametrize(("damage", "error"), [(half, OutcomeUnknown), (nonsense, Broken)])
def test_a_range_that_is_damaged_each_time_is_an_error(
    damage: Damage, error: type[Exception]
) -> None:
    files = DamagedFiles(damage)
    files.put("a", FILE)
    reader = Reader(files, "a")
    files.left = 1 << 30
    with pytest.raises(error, match="a"):
        reader.read()
    with pytest.raises(error):
        Reader(files, "a")


async def test_a_damaged_merge_ends_as_an_error_of_the_log_and_is_made_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, model = MemoryStore(), Model()
    files = store.files = DamagedFiles(nonsense)
    await filled(store, 18, model)
    async with small_log(store) as log:
        with monkeypatch.context() as patch:
            patch.setattr(Maintenance, "merge", AsyncMock())
            await log.compact()
        files.left = 1 << 30
        with pytest.raises(LogError, match="makes no sense"):
            await log.maintenance.merge()
        files.left = 0
        await compact(log)
    assert (await read_manifest(store))[0].files
    assert await content_of(store) == messages(model)


class DamagedObjects(CutOff):
    """Of each object the next `each` answers are half of it."""

    def __init__(self) -> None:
        memory = MemoryStore()
        super().__init__(memory, "table", "compacted", "head", "segment/", "page/", each=0)
        self.files = memory.files


async def test_a_snapshot_asks_again_for_objects_that_make_no_sense() -> None:
    store, model = DamagedObjects(), Model()
    await filled(store, 20, model)
    await merged(store)
    store.each = 1
    assert await content_of(store) == messages(model)
    store.each = ANY_NUMBER
    with pytest.raises(Broken, match="makes no sense"):
        await snapshot(store)


async def test_reads_and_retention_outlive_damaged_answers() -> None:
    store, model = DamagedObjects(), Model()
    files = store.files = DamagedFiles(half)
    await filled(store, 40, model)
    await merged(store)
    async with small_log(store) as log:
        await log.retain(Policy(bytes=0))
        files.left = 1
        store.places = ("table", "segment/")
        store.each = 1
        await require_tail(log, model)


async def require_tail(log: Log, model: Model) -> None:
    """What is left of each key is read."""
    for key, values in model.items():
        [record, *_] = (await log.read_many({key: 0}, 5))[key]
        assert record.value == values[record.offset]


# ---------------------------------------------------------------- files of runs

RUN = Run(0, 2, {"k": (0, ["a", "b"])}, {}, {"w": (1, {"k": 1})})


def run_file(run: Run = RUN, at: float = 1.0) -> bytes:
    origins = [Origin(slot, "w", slot, {"k": (slot, 1)}, at) for slot in range(2)]
    return encode_run(0, 1, run, origins)


class Overwriting(MemoryFiles):
    """As a bucket with files that are written in parts: the newer one stays."""

    def put(self, path: str, source: Source) -> None:
        self._files.pop(path, None)
        super().put(path, source)


def test_a_run_that_is_there_is_taken_if_it_holds_the_same() -> None:
    files = MemoryFiles()
    create_run(files, "run/0-1.parquet", run_file())
    create_run(files, "run/0-1.parquet", run_file())
    create_run(files, "run/0-1.parquet", run_file(at=2.0))  # as a copy of the store tells the times
    assert Reader(files, "run/0-1.parquet").read()["offset"].to_pylist() == [0, 1]


@pytest.mark.parametrize(
    "other",
    [
        RUN._replace(keys={"k": (0, ["a", "c"])}),
        RUN._replace(commits={"k": 1}),
        RUN._replace(end=3),
    ],
)
def test_another_run_that_is_there_is_left_as_it_is_and_told(other: Run) -> None:
    files = MemoryFiles()
    create_run(files, "run/0-1.parquet", run_file(other))
    with pytest.raises(Refused, match="holds another run"):
        create_run(files, "run/0-1.parquet", run_file())
    assert files.read_range("run/0-1.parquet", 0, files.size("run/0-1.parquet")) == run_file(other)


def test_a_large_run_is_not_written_over_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leaderless.table.runs.WHOLE_BYTES_MAX", 10)
    files = Overwriting()
    other = run_file(RUN._replace(commits={"k": 1}))
    files.put("run/0-1.parquet", other)
    with pytest.raises(Refused, match="holds another run"):
        create_run(files, "run/0-1.parquet", run_file())
    assert files.read_range("run/0-1.parquet", 0, files.size("run/0-1.parquet")) == other


async def test_compaction_lists_no_run_that_it_has_not_read_back() -> None:
    """A file of that name holds something else: the segments stay, and so does every record."""
    store, model = MemoryStore(), Model()
    store.files.put("run/0-1.parquet", run_file())
    async with small_log(store) as log:
        for number in range(8):
            model.setdefault("k", []).append(number)
            await log.append("k", number)
        assert await log.compact() == 0
        assert "holds another run" in log.registers.trouble
        assert [each.value for each in await log.read("k")] == model["k"]
    assert await content_of(store) == messages(model)
