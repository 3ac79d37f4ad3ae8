"""A retention deletes the oldest files of a log, and every reader is told; fsck and vacuum know it."""

from functools import partial

import anyio
import pyarrow as pa
import pytest

from leaderless.api.log import Log
from leaderless.api.tail import Start
from leaderless.errors import OffsetOutOfRange, Unfit
from leaderless.groups import consumer as by_hand
from leaderless.hosting.surroundings import REAL
from leaderless.store.memory import MemoryStore
from leaderless.table.manifest import (
    TABLE,
    Manifest,
    Merged,
    read_manifest,
    replace_manifest,
)
from leaderless.table.parquet import FileWriter
from leaderless.table.retention import Policy, delete_oldest
from leaderless.table.schema import Row
from leaderless.table.snapshot import locations, snapshot
from leaderless.upkeep import fsck
from tests.around import UPDATES, Fate, Fated
from tests.tables import (
    Model,
    append,
    append_numbers,
    compact,
    rows_of_snapshot,
    small_log,
    table_of,
)

pytestmark = pytest.mark.anyio
MERGED = f"merged/0-0-{0:016x}.parquet"
LARGE = "x" * 20_000
SHOWN = pa.schema([("key", pa.string()), ("value", pa.string())])


async def fill(store: MemoryStore, batches: int = 40) -> Model:
    model: Model = {}
    async with small_log(store, fan=3) as log:
        await append_numbers(log, model, "abc", batches)
        await append(log, model, "old", LARGE)
        await compact(log)
    return model


@pytest.fixture
async def model(store: MemoryStore) -> Model:
    """What is in the store: a log with merged files."""
    return await fill(store)


async def require_from(store: MemoryStore, model: Model, starts: dict[str, int]) -> None:
    """A snapshot and reads have what is left of every key, and nothing of what was before."""
    rows = await rows_of_snapshot(store, await snapshot(store))
    for key, values in model.items():
        assert [row.offset for row in rows if row.key == key] == [
            *range(starts.get(key, 0), len(values))
        ]
    async with small_log(store) as log:
        for key, values in model.items():
            start = starts.get(key, 0)
            for offset in range(start):
                with pytest.raises(OffsetOutOfRange, match=f"begins at offset {start}") as raised:
                    await log.read(key, offset)
                assert raised.value.earliest == start
            for offset in range(start, len(values)):
                [record, *_] = await log.read(key, offset)
                assert (record.offset, record.value) == (offset, values[offset])
            found = await log.read_many({key: 0}, 1)
            assert [each.offset for each in found.get(key, [])] == [start][: len(values) - start]
    report = await fsck.check(store)
    assert report.findings == []
    assert report.messages == sum(len(values) - starts.get(key, 0) for key, values in model.items())


async def starts_of(store: MemoryStore) -> dict[str, int]:
    """The first offset of each key in the files and the end of the log, by reading them."""
    starts: dict[str, int] = {}
    for row in await rows_of_snapshot(store, await snapshot(store)):
        starts.setdefault(row.key, row.offset)
    return starts


async def test_by_bytes_the_oldest_files_leave_until_the_rest_has_so_many(
    store: MemoryStore, model: Model
) -> None:
    files = (await read_manifest(store))[0].files
    assert len(files) > 1
    keep = sum(file.bytes for file in files[1:])
    async with small_log(store) as log:
        assert (await log.retain(Policy(bytes=keep + 1))).files == 0
        assert await log.retain(Policy(bytes=keep)) == (1, files[0].bytes, files[0].end)
        assert (await log.retain(Policy(bytes=keep))).files == 0
    starts = await starts_of(store)
    assert starts["a"] == -(-files[0].end // 3)
    await require_from(store, model, starts)


async def test_by_age_files_leave_whose_newest_record_is_old(
    store: MemoryStore, model: Model
) -> None:
    async with small_log(store) as log:
        assert (await log.retain(Policy(age_s=3600))).files == 0
    files = (await read_manifest(store))[0].files
    store.ahead_s = 7200
    async with small_log(store) as log:
        assert (await log.retain(Policy(age_s=3600))).files == len(files)
        assert (await log.retain(Policy(age_s=3600))).files == 0
        await append(log, model, "a", "new")  # the log goes on
        await compact(log)
    await require_from(store, model, await starts_of(store))


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (Policy(), "say what may be deleted"),
        *(
            (Policy(*each), "of a policy must be a number, 0 or more, got")
            for each in ((-5,), (None, -1))
        ),
        (Policy(age_s=float("nan")), "of a policy must be a number, 0 or more, got"),
        (Policy(bytes=True), "of a policy must be a number, 0 or more, got True"),
        (Policy(-1, 5.0), "of a policy must be a number, 0 or more, got"),
    ],
)
async def test_a_policy_that_cannot_be_is_refused_and_drops_nothing(
    store: MemoryStore, model: Model, policy: Policy, text: str
) -> None:
    before = await read_manifest(store)
    async with small_log(store) as log:
        with pytest.raises(Unfit, match=text):
            await log.retain(policy)
    assert await read_manifest(store) == before


@pytest.mark.parametrize("times", [(1_000.0, 9_000.0), (9_000.0, 1_000.0)])
async def test_by_age_the_newest_record_of_all_row_groups_counts(
    store: MemoryStore, times: tuple[float, ...]
) -> None:
    target = pa.BufferOutputStream()
    with FileWriter(target, {}) as writer:
        for offset, at in enumerate(times):
            writer.write(table_of([Row("k", offset, offset, "w", offset, offset, at)]))
            writer.flush()
    content = bytes(target.getvalue())
    store.files.put(MERGED, content)
    file = Merged(MERGED, 1, 0, 0, 0, 2, 2, len(content), ("k", "k"))
    assert await replace_manifest(store, Manifest(files=(file,)), None)

    async def leaves(age_s: float) -> bool:
        policy = Policy(age_s=age_s)
        named = partial(delete_oldest, processed=none, now=now, token=REAL.token)
        return (await named(store, store.files, policy)).files == 1

    async def none() -> dict[str, int]:
        return {}

    async def now() -> float:
        return 10_000.0

    assert not await leaves(5_000)
    assert not await leaves(1_001)
    assert await leaves(999)


async def test_a_retention_that_meets_a_merge_begins_again(
    store: MemoryStore, model: Model
) -> None:
    """Between its look at the list of files and its change another process names more files."""
    seen: list[Manifest] = []

    async def merge() -> None:
        async with small_log(store, fan=3) as log:
            await append_numbers(log, model, "abc", 40)
            await compact(log)
        seen.append((await read_manifest(store))[0])

    meets = Fate(UPDATES, TABLE, before=merge, times=1)
    async with small_log(Fated(store, meets), fan=3) as log:
        retained = await log.retain(Policy(bytes=0))
    [met], left = seen, (await read_manifest(store))[0]
    assert (left.files, left.start.slot) == ((), retained.start)
    assert retained.start > met.files[-1].last
    assert len([*store.files.list_files("starts")]) == 1
    await require_from(store, model, await starts_of(store) | {"old": 1})


async def test_what_all_groups_have_processed_leaves(store: MemoryStore, model: Model) -> None:
    [first, *_] = (await read_manifest(store))[0].files
    ends = {key: -(-(first.end - place) // 3) for place, key in enumerate("abc")}
    policy = Policy(processed=True)
    async with small_log(store) as log:
        assert (await log.retain(policy)).files == 0  # nobody reads
        await log.commit("g", {key: end - 1 for key, end in ends.items()})
        await log.commit("slow", {"a": ends["a"] - 2})
        assert (await log.retain(policy)).files == 0
        await log.commit("slow", {"a": ends["a"] - 1})
        assert (await log.retain(policy)).files == 1
    await require_from(store, model, ends)


async def test_a_reader_that_knows_an_old_list_of_files_is_told_when_they_are_gone(
    store: MemoryStore, model: Model
) -> None:
    [first, *_] = (await read_manifest(store))[0].files
    end = -(-first.end // 3)
    async with small_log(store) as reader:
        assert (await reader.read("a", 0, 1))[0].value == model["a"][0]
        async with small_log(store) as log:
            await log.retain(Policy(bytes=0))
            store.ahead_s = 7200
            await log.vacuum()
        with pytest.raises(OffsetOutOfRange):
            await reader.read("a", end)
    assert [each.key for each in store.files.list_files("merged")] == []
    assert len([*store.files.list_files("starts")]) == 1


async def test_a_log_of_json_is_refused(store: MemoryStore) -> None:
    async with small_log(store, "json") as log:
        with pytest.raises(Unfit, match="runs of JSON are not deleted"):
            await log.retain(Policy(bytes=0))


async def test_a_version_that_a_retention_has_deleted_is_refused(
    store: MemoryStore, model: Model
) -> None:
    async with small_log(store) as log:
        await log.retain(Policy(bytes=0))
    start = (await read_manifest(store))[0].start.slot
    assert (await snapshot(store, start)).files == []
    with pytest.raises(Unfit, match=f"they go from {start} to"):
        await snapshot(store, start - 1)
    assert len(await locations(store)) == len((await snapshot(store)).files)


# ---------------------------------------------------------------- consumers that a retention has overtaken


async def test_what_a_member_has_not_taken_is_not_processed(
    store: MemoryStore, model: Model
) -> None:
    """(1) A group wants "a", "b" and "c"; its member owns one. (2) Another group has processed all."""
    ends = {key: len(values) - 1 for key, values in model.items()}
    async with small_log(store) as log:
        await log.commit("done", ends)
        async with log.consumer("late", [*"abc"], keys_max=1) as consumer:
            record = await anext(consumer)
            for _ in range(ends[record.key] + 1):
                await consumer.ack(record)
                if record.offset < ends[record.key]:
                    record = await anext(consumer)
        assert (await log.retain(Policy(processed=True))).files == 0
        waiting = {key: cursor.next for key, cursor in (await log.cursors.groups())["late"].items()}
        assert waiting == dict.fromkeys("abc", 0) | {record.key: len(model[record.key])}
        await log.commit("late", ends)
        assert (await log.retain(Policy(processed=True))).files > 0


async def test_a_group_begins_where_the_log_began_when_it_came(store: MemoryStore) -> None:
    """(1) A retention. (2) A group comes, and its member owns one of two keys. (3) Another retention."""
    model = await fill(store, 20)
    async with small_log(store, fan=3) as log:
        await log.retain(Policy(bytes=0))
        starts = await starts_of(store)
        async with log.consumer("g", [*"ab"], keys_max=1) as consumer:
            first = await anext(consumer)
            assert first.offset == starts[first.key] > 0
        waiting = {key: cursor.next for key, cursor in (await log.cursors.groups())["g"].items()}
        assert waiting == {key: starts[key] for key in "ab"}
        await append_numbers(log, model, "ab", 40)
        await compact(log)
        await log.retain(Policy(bytes=0))
    async with small_log(store) as log, log.consumer("g", [*"ab"]) as consumer:
        for _ in range(4):  # both keys, whichever comes first
            with pytest.raises(OffsetOutOfRange) as raised:
                await anext(consumer)
            assert raised.value.offset == starts[raised.value.key]


async def gone(log: Log, model: Model, store: MemoryStore) -> dict[str, int]:
    """Let a retention delete what it can; the first offsets that are left."""
    await log.retain(Policy(bytes=0))
    return {key: len(model[key]) for key in model} | await starts_of(store)


async def test_a_group_that_is_behind_what_is_left_is_told_until_it_commits(
    store: MemoryStore, model: Model
) -> None:
    async with small_log(store) as log:
        await log.commit("g", {"a": 1})
        starts = await gone(log, model, store)
        await append(log, model, "other", 1)
    keys = ["a", "other"]
    async with small_log(store) as log, log.consumer("g", keys) as consumer:
        came: list[str] = []
        for _ in range(6):
            try:
                with anyio.fail_after(10):
                    record = await anext(consumer)
                came.append(record.key)
                await consumer.ack(record)
            except OffsetOutOfRange as lost:
                came.append(str(lost))
        text = f"key 'a' begins at offset {starts['a']}; 2 was deleted: commit offset {starts['a'] - 1} "
        assert sorted(came) == [*[f"{text}for group 'g', and it goes on behind that"] * 5, "other"]
        with pytest.raises(OffsetOutOfRange, match=f"ack a {starts['a'] - 1} --through --group g`"):
            await by_hand.consume(log.read, log.cursors, "g", "a")
        acked = await by_hand.ack(log.cursors, "g", "a", starts["a"] - 1, through=True)
        assert acked == ("advanced", starts["a"])
        assert (await anext(consumer)).offset == starts["a"]


async def test_a_key_that_has_nothing_left_is_told_too(store: MemoryStore) -> None:
    model: Model = {}
    async with small_log(store, fan=3) as log:
        await append(log, model, "lost", 1, 2)
        await log.commit("g", {"lost": 0})
        await append_numbers(log, model, "abc", 40)
        await compact(log)
        assert (await gone(log, model, store))["lost"] == 2
    async with small_log(store) as log:
        async with log.consumer("g", ["lost"]) as consumer:
            with pytest.raises(OffsetOutOfRange, match="begins at offset 2; 1 was deleted"):
                await anext(consumer)
        tail = log.tail(["lost", "a"], {"lost": 0, "a": len(model["a"]) - 1})
        found: list[object] = []
        for _ in range(2):
            try:
                found.append((await anext(tail)).key)
            except OffsetOutOfRange as lost:
                found.append((lost.key, lost.offset, lost.earliest))
        assert found in (["a", ("lost", 0, 2)], [("lost", 0, 2), "a"])


@pytest.mark.parametrize("start", [0, {"a": 0}])
async def test_a_tail_that_is_behind_is_told_once_and_goes_on(
    store: MemoryStore, model: Model, start: int | dict[str, int]
) -> None:
    async with small_log(store) as log:
        starts = await gone(log, model, store)
    async with small_log(store) as log:
        tail = log.tail(["a"], start)
        with pytest.raises(OffsetOutOfRange) as raised:
            await anext(tail)
        assert (raised.value.offset, raised.value.earliest) == (0, starts["a"])
        assert (await anext(tail)).offset == starts["a"]
        everywhere: list[Start] = ["earliest", {}]
        for begin in everywhere:
            assert (await anext(log.tail(["a"], begin))).offset == starts["a"]
