"""A copy of a log in use, wherever it is cut off, and a copy that a tool makes object by object."""

from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any

import pytest

from leaderless.core.shape import Runs
from leaderless.errors import Broken, KeyClosed, LogError, OtherFormat, Unfit, Unreachable
from leaderless.hosting.data import Data
from leaderless.hosting.place import initialise
from leaderless.store.calls import objects_in
from leaderless.store.memory import MemoryStore
from leaderless.store.names import FORMAT
from leaderless.store.port import Store
from leaderless.store.wrapped import WRITES
from leaderless.table.retention import Policy
from leaderless.upkeep.contents import contents_of
from leaderless.upkeep.copying import Selection, copy
from leaderless.upkeep.fsck import check
from tests.around import READS, Fate, Fated, value_at
from tests.tables import small_log

pytestmark = pytest.mark.anyio
ALL = Selection()
OTHER = "records that no copy of this FROM"
# What a tool copies first, in this order: a message leaves the place before for the one behind it.
ORDER = ("head", "segment", "table", "compacted")


class Killed(Exception):
    """The end of a process."""


async def append_some(store: Store, runs: Runs, number: int) -> None:
    """Append as one process to a log, and compact it."""
    async with small_log(store, runs) as log:
        for each in range(number):
            await log.append("abc"[each % 3], each, {"n": str(each)} if each % 2 else None)
        await log.append("large", "x" * 20_000, {"a": "b"})
        await log.append("large", b"x" * 20_000)
        await log.append_named("job", 7, [("a", "named"), ("b", "named")])
        await log.append_named("done", 7, [])
        await log.append("closed", 1, token=3)
        await log.close("closed")
        await log.commit("group", {"a": 1})
        await log.compact()


async def copied(
    source: Store, target: Store, runs: Runs, selection: Selection = ALL, step_bytes: int = 60
) -> int:
    """Copy as one process: a change of the head has about two records."""
    async with small_log(target, runs) as log:
        data, compact = Data(target, 1 << 14, 1 << 20), partial(log.compact)
        done = await copy(
            source, target, selection, log.host.registers, data,
            step_bytes=step_bytes, compact=compact, told=max,
        )  # fmt: skip
    return done.records


async def copied_in_lives(source: Store, target: Store, runs: Runs, killed_at: str) -> int:
    """Copy until it ends: each process is killed one write later than the one before."""
    for life in count():
        killed = Fate(WRITES, killed_at, Killed(), applied=life % 2 > 0, passes=life)
        try:
            await copied(source, Fated(target, killed), runs)
        except Killed:
            continue
        return life
    raise AssertionError


async def records(store: Store, runs: Runs, starts: dict[str, int]) -> dict[str, list[Any]]:
    """Every record, with its time and headers."""
    async with small_log(store, runs) as log:
        keys = await log.keys()
        return {
            key: [tuple(record) for record in await log.read(key, starts.get(key, 0), 1000)]
            for key in keys
        }


def is_prefix(some: dict[str, list[Any]], of: dict[str, list[Any]]) -> bool:
    """Whether each key has the first records of the other."""
    return some == {key: of[key][: len(each)] for key, each in some.items()}


@pytest.mark.parametrize("there", ["json", "parquet"])
@pytest.mark.parametrize("here", ["json", "parquet"])
async def test_a_copy_goes_on_wherever_it_was_killed(here: Runs, there: Runs) -> None:
    """Others append to FROM while it is read."""
    source, target = MemoryStore("from"), MemoryStore("to")
    await append_some(source, here, 12)
    before = await records(source, here, {})
    async with small_log(source, here) as log:
        await log.close("empty")
        append = partial(log.append, "a", "later")
        live = Fated(source, Fate(READS, "head|run|data", after=append, times=99))
        assert await copied_in_lives(live, target, there, "head|data|group") > 3
    now = await records(target, there, {})
    assert is_prefix(before, now)
    assert is_prefix(now, await records(source, here, {}))
    async with small_log(target, there) as log:
        named = [await log.has_named(*each) for each in (("job", 7), ("done", 7), ("job", 8))]
        assert named == [True, True, False]
        assert await log.committed("group", ["a"]) == {"a": 1}
        for key in ("closed", "empty"):
            with pytest.raises(KeyClosed):
                await log.append(key, "after")
        assert await log.append("a", "after") == len(now["a"])
    assert (await check(target)).findings == []
    with pytest.raises(Unfit, match="whole copy of this FROM already"):
        await copied(source, target, there)


@pytest.mark.lawless  # a log that begins so is none that grew
async def test_a_log_that_has_lost_old_records_is_copied_to_files() -> None:
    source, target = MemoryStore("from"), MemoryStore("to")
    await append_some(source, "parquet", 24)
    async with small_log(source) as log:
        await log.compact()
        await log.retain(Policy(bytes=0))
        await log.append("b", "new")
        await log.trim("a", 9)
        starts = await log.maintenance.starts()
    assert starts["a"] == 9
    with pytest.raises(Unfit, match=r"key 'a' of FROM begins at offset 9.*--runs parquet"):
        await copied(source, MemoryStore("json"), "json")
    await copied_in_lives(source, target, "parquet", "head|page|compacted|table")
    assert await records(target, "parquet", starts) == await records(source, "parquet", starts)
    async with small_log(target) as log:
        assert await log.maintenance.starts() == starts
        await log.append("a", "after")
        await log.compact()
        await log.retain(Policy(bytes=0))
    assert (await check(target)).findings == []


@pytest.mark.parametrize("keys", ["abc", "b"], ids=["lost records", "a key"])
async def test_an_empty_place_of_an_earlier_format_is_refused(keys: str) -> None:
    """Before anything is written there, with or without starts of keys."""
    source, target = MemoryStore("from"), MemoryStore("to")
    await append_some(source, "parquet", 24)
    async with small_log(source) as log:
        await log.trim("a", 5)
    await initialise(target, "parquet")
    made = await value_at(target, FORMAT)
    await target.write(FORMAT, made.replace(b'"format":5', b'"format":4'))
    with pytest.raises(OtherFormat, match=r"memory:to has format 4, and is only read: .*upgrade"):
        await copied(source, target, "parquet", Selection(frozenset(keys)))
    assert [each.key async for each in objects_in(target)] == [FORMAT]
    assert [*target.files.list_files("starts")] == []


async def test_a_file_that_is_gone_is_told() -> None:
    source = MemoryStore("from")
    await append_some(source, "parquet", 24)
    source.files.delete([each.key for each in source.files.list_files("merged")])
    with pytest.raises(Unreachable, match=r"merged/.*\.parquet.* repeat it"):
        await copied(source, MemoryStore("to"), "json")


@pytest.mark.parametrize(
    ("selection", "ends"),
    [
        (Selection(at_ms=3000), {"a": 2, "b": 2, "c": 2, "job": 6}),
        (Selection(frozenset("ab")), {"a": 4, "b": 4}),
        (Selection(frozenset("ab"), {"a": 1}), {"a": 1, "b": 4}),
        (Selection(frozenset("x")), "FROM has no key 'x'"),
        (Selection(until={"a": 5}), "until of key 'a' must be from 0 to 4, .* got 5"),
        (Selection(frozenset("b"), {"a": 1}), "and the key selected"),
    ],
)
async def test_what_is_selected(selection: Selection, ends: dict[str, int] | str) -> None:
    source, target = MemoryStore("from"), MemoryStore("to")
    async with small_log(source, "json") as log:
        clock = log.host.clock
        for number in range(12):
            clock.wall = partial(float, number // 2)
            await log.append("abc"[number % 3], number)
            await log.append_named("job", number, [("job", number)])
        for number in range(4):
            await log.append_named("late", number, [])
        await log.commit("group", {"a": 3})
        await log.compact()
    if isinstance(ends, str):
        with pytest.raises(Unfit, match=ends):
            await copied(source, target, "json", selection)
        return
    assert await copied(source, target, "json", selection) == sum(ends.values())
    async with small_log(target, "json") as log:
        assert await log.keys() == ends
        assert await log.committed("group", ["a"]) == {"a": min(3, ends["a"] - 1)}
        # What came later may be repeated.
        assert await log.has_named("late", 0) == (not selection.at_ms)
        assert [n for n in range(12) if await log.has_named("job", n)][-1] == (
            5 if selection.at_ms else 11
        )


@pytest.mark.parametrize(
    ("selection", "named"),
    [
        (Selection(at_ms=500), {"named/job": 0, "named/group/g/dead/a": -1}),
        (Selection(until={"a": 3}), {"named/job": 2, "named/group/g/dead/a": 2}),
    ],
)
async def test_a_fork_knows_the_batches_that_it_has(
    selection: Selection, named: dict[str, int]
) -> None:
    source, target = MemoryStore("from"), MemoryStore("to")
    async with small_log(source, "json") as log:
        for number in range(3):
            log.host.clock.wall = partial(float, number)
            await log.append_named("job", number, [("job", number)])
        await log.append_many("a", range(8))
        await log.named.append_letter("g", "a", 6, "a letter")
    await copied(source, target, "json", selection)
    assert {
        name: (await contents_of(target)).outline.writers.get(name, -1) for name in named
    } == named


async def test_a_place_with_other_records_is_refused() -> None:
    source, target = MemoryStore("from"), MemoryStore("to")
    await append_some(source, "json", 6)
    async with small_log(target, "json") as log:
        append = partial(log.append, "a", "not of the copy")
        other = Fate(["compare_and_set"], "head", before=append, times=1)
        for text in ("another process has changed", OTHER):
            with pytest.raises(LogError, match=text):
                await copied(source, Fated(target, other), "json")


@pytest.mark.lawless
@pytest.mark.parametrize("place", ["page", "compacted", "head"])
async def test_of_two_copies_at_once_the_later_one_changes_nothing(place: str) -> None:
    source, target = MemoryStore("from"), MemoryStore("to")
    await append_some(source, "parquet", 24)
    async with small_log(source) as log:
        await log.retain(Policy(bytes=0))
        await log.append_many("a", range(9))
        starts = await log.maintenance.starts()
    first = Fate(["create"], place, before=partial(copied, source, target, "parquet"), times=1)
    with pytest.raises(LogError, match=r"of another copy|whole copy"):
        await copied(source, Fated(target, first), "parquet")
    assert await records(target, "parquet", starts) == await records(source, "parquet", starts)
    assert (await check(target)).findings == []


async def test_a_copy_that_was_cut_off_is_told_what_a_trim_took() -> None:
    source, target = MemoryStore("from"), MemoryStore("to")
    await append_some(source, "parquet", 12)
    with pytest.raises(Killed):
        await copied(source, Fated(target, Fate(WRITES, "head", Killed(), passes=1)), "json")
    async with small_log(source) as log:
        await log.trim("a", 5)
    with pytest.raises(
        Unfit, match=r"FROM has lost offsets . to 4 of key 'a' since the copy began"
    ):
        await copied(source, target, "json")


async def test_large_values_are_not_copied_again() -> None:
    source, target = MemoryStore("from"), MemoryStore("to")
    async with small_log(source, "json") as log:
        for _ in range(3):
            await log.append("large", "x" * 20_000)
    killed = Fate(WRITES, "data", Killed(), passes=2)
    with pytest.raises(Killed):
        await copied(source, Fated(target, killed), "json", step_bytes=30_000)
    async with small_log(target, "json") as log:
        assert await log.keys() == {"large": 2}


async def test_a_head_knows_the_size_of_what_ends_a_copy() -> None:
    source, target = MemoryStore("from"), MemoryStore("to")
    async with small_log(source, "json") as log:
        for number in range(70):
            await log.close(f"{number:1000}")
    await copied(source, target, "json")
    assert (await contents_of(target)).head.heading.size > 70_000


# ---------------------------------------------------------------- copies of objects


async def copied_by_a_tool(
    source: MemoryStore, folders: Sequence[str], every: int, runs: Runs
) -> MemoryStore:
    """A copy of all objects, those of `folders` first; others append and compact before each `every`-th."""
    target, place = MemoryStore("objects"), count(1)
    async with small_log(source, runs) as log:
        for folder in (*folders, ""):
            async for each in objects_in(source):
                top = each.key.split("/")[0]
                if top != folder and (folder or top in folders):
                    continue
                if next(place) % every == 0:
                    for key in "ab":
                        await log.append(key, "meanwhile")
                    await log.compact()
                if found := await source.read(each.key):
                    await target.write(each.key, found.value)
    for folder in ("run", "merged"):
        for file in source.files.list_files(folder):
            target.files.put(file.key, source.files.read_range(file.key, 0, file.size or 0))
    return target


@pytest.mark.lawless  # objects that a tool copies are none that a log writes
@pytest.mark.parametrize("runs", ["json", "parquet"])
async def test_objects_that_a_tool_copied_in_the_order_of_the_page(runs: Runs) -> None:
    """They need not be a log, and `copy` makes one of them."""
    source, target = MemoryStore("from"), MemoryStore("to")
    await append_some(source, runs, 18)
    before = await records(source, runs, {})
    objects = await copied_by_a_tool(source, ORDER, 2, runs)
    assert (await check(objects)).findings
    await copied(objects, target, runs)
    now = await records(target, runs, {})
    assert is_prefix(before, now)
    assert is_prefix(now, await records(source, runs, {}))


@pytest.mark.lawless
@pytest.mark.parametrize(
    ("folders", "text"),
    [
        ((), "CommittedReadable: segment/10 is gone, and in no run"),
        (ORDER, "HeadNeverReturns: head has let go of .*, and compacted has runs of more"),
    ],
    ids=["gone", "older"],
)
async def test_a_torn_copy_is_told_by_name(folders: Sequence[str], text: str) -> None:
    source = MemoryStore("from")
    await append_some(source, "json", 18)
    objects = await copied_by_a_tool(source, folders, 4, "json")
    async with small_log(objects, "json", timeout_s=0.02) as log:
        with pytest.raises(Broken, match=f"{text}.*in a copy that was made while others"):
            await log.append_many("a", [1] * 2)
    assert (await check(objects)).findings


@pytest.mark.lawless
async def test_a_head_from_before_its_segment_is_told(store: MemoryStore) -> None:
    async with small_log(store, "json") as log:
        await log.append("a", 1)
        await log.append("a", 2)
        full = await value_at(store, "head")
        for number in range(4):
            await log.append("a", number)
        await log.compact()
    await store.delete(["compacted"])
    await store.write("head", full)
    async with small_log(store, "json", timeout_s=0.02) as log:
        with pytest.raises(Broken, match="HeadNeverReturns: segment/0 was made of a newer head"):
            await log.append("a", 3)
