"""A copy of a log in use: what it has, wherever it is cut off, and a copy that a tool makes object by object."""

from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any

import pytest

from leaderless.core.shape import Runs
from leaderless.errors import Broken, LogError, Unfit
from leaderless.hosting.data import Data
from leaderless.store.calls import objects_in
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Store
from leaderless.store.wrapped import WRITES
from leaderless.table.retention import Policy
from leaderless.upkeep.copying import Copied, Selection, copy
from leaderless.upkeep.fsck import check
from tests.around import READS, Fate, Fated
from tests.tables import small_log

pytestmark = pytest.mark.anyio
KEYS = ("a", "b", "c")
LARGE = "x" * 20_000
# What a tool copies first, in this order: a message leaves the place before for the one behind it.
ORDER = ("head", "segment", "table", "compacted")


class Killed(Exception):
    """The end of a process."""


async def append_some(store: Store, runs: Runs, numbers: Sequence[int]) -> None:
    """Append as one process to a log, and compact it."""
    async with small_log(store, runs) as log:
        for number in numbers:
            await log.append(KEYS[number % 3], number, {"n": str(number)} if number % 2 else None)
        await log.append("large", LARGE, {"of": str(numbers[0])})
        await log.append("large", LARGE.encode())
        await log.append_named("job", numbers[-1], [("a", "named"), ("b", "named")])
        await log.append_named("done", numbers[-1], [])
        await log.commit("group", {"a": 1})
        await log.compact()


async def copied(
    source: Store, target: Store, runs: Runs, selection: Selection = Selection()
) -> Copied:
    """Copy as one process: a change of the head has about two records."""
    async with small_log(target, runs) as log:
        data = Data(target, 1 << 14, 1 << 20)
        end = partial(log.compact)
        return await copy(source, target, selection, data, 60, compact=end, told=max)


async def records(
    store: Store, runs: Runs, starts: dict[str, int] | None = None
) -> dict[str, list[Any]]:
    """Every record, with its time and headers."""
    async with small_log(store, runs) as log:
        keys = await log.keys()
        found = {key: await log.read(key, (starts or {}).get(key, 0), 1000) for key in keys}
    return {key: [tuple(record) for record in each] for key, each in found.items()}


@pytest.mark.parametrize("there", ["json", "parquet"])
@pytest.mark.parametrize("here", ["json", "parquet"])
async def test_a_copy_goes_on_wherever_it_was_killed(here: Runs, there: Runs) -> None:
    """Each life ends one write later than the one before; others append to FROM whenever a copy reads it."""
    source, target = MemoryStore("from"), MemoryStore("to")
    await append_some(source, here, range(12))
    numbers = count(12)

    async def append() -> None:
        async with small_log(source, here) as log:
            await log.append(KEYS[next(numbers) % 3], "later")
            await log.compact()

    done: Copied | None = None
    for life in count():
        killed = Fate(WRITES, "head|data|group", Killed(), applied=life % 2 > 0, passes=life)
        live = Fated(source, Fate(READS, "head|run|data", after=append, times=2))
        try:
            done = await copied(live, Fated(target, killed), there)
            break
        except Killed:
            continue
    assert done is not None and life > 3
    was, now = await records(source, here), await records(target, there)
    assert now.keys() == was.keys()
    assert (
        all(now[key] == was[key][: len(now[key])] for key in KEYS) and now["large"] == was["large"]
    )
    assert done.records == sum(map(len, now.values()))
    async with small_log(target, there) as log:
        assert await log.has_named("job", 11) and await log.has_named("done", 11)
        assert not await log.has_named("job", 12)
        assert await log.committed("group", KEYS) == {"a": 1}
        assert await log.append("a", "after") == len(now["a"])
    assert (await check(target)).findings == []
    with pytest.raises(Unfit, match="whole copy of this FROM already"):
        await copied(source, target, there)


@pytest.mark.lawless  # a log that begins so is none that grew
async def test_a_log_that_has_lost_old_records_is_copied_to_files() -> None:
    source, target = MemoryStore("from"), MemoryStore("to")
    await append_some(source, "parquet", range(24))
    async with small_log(source) as log:
        await log.compact()
        await log.retain(Policy(bytes=0))
        await log.append("b", "new")
        await log.trim("a", (await log.keys())["a"])
        starts = await log.maintenance.starts()
    assert starts["a"] == 9 and starts["b"] > 0
    with pytest.raises(Unfit, match="key 'a' of FROM begins at offset 9.*--runs parquet"):
        await copied(source, MemoryStore("json"), "json")
    for life in count():
        killed = Fate(
            WRITES, "head|page|compacted|table", Killed(), applied=life % 2 > 0, passes=life
        )
        try:
            await copied(source, Fated(target, killed), "parquet")
            break
        except Killed:
            continue
    assert await records(target, "parquet", starts) == await records(source, "parquet", starts)
    async with small_log(target) as log:
        assert await log.maintenance.starts() == starts
        assert await log.append("a", "after") == 9
        await log.compact()
        await log.compact()
        await log.retain(Policy(bytes=0))
    assert (await check(target)).findings == []


async def test_what_is_selected() -> None:
    source = MemoryStore("from")
    async with small_log(source, "json") as log:
        clock = log.host.clock
        for number in range(12):
            clock.wall = partial(float, number // 2)
            await log.append(KEYS[number % 3], number)
            await log.append_named("job", number, [("job", number)])
        await log.commit("group", {"a": 3, "b": 0})
        await log.compact()
    chosen: list[tuple[Selection, dict[str, int]]] = [
        (Selection(at_ms=3000), {"a": 2, "b": 2, "c": 2, "job": 6}),
        (Selection(frozenset("ab")), {"a": 4, "b": 4}),
        (Selection(frozenset("ab"), {"a": 1}), {"a": 1, "b": 4}),
    ]
    for selection, ends in chosen:
        target = MemoryStore("to")
        assert (await copied(source, target, "json", selection)).records == sum(ends.values())
        async with small_log(target, "json") as log:
            assert await log.keys() == ends
            assert (await log.committed("group", KEYS)).get("a") == min(3, ends["a"] - 1)
            if selection.at_ms:  # what came later may be repeated
                assert await log.has_named("job", 3) and not await log.has_named("job", 6)


@pytest.mark.parametrize(
    ("selection", "text"),
    [
        (Selection(frozenset("x")), "FROM has no key 'x'"),
        (Selection(until={"a": 2}), "until of key 'a' must be from 0 to 1, .* got 2"),
        (Selection(frozenset("b"), {"a": 1}), "and the key selected"),
    ],
)
async def test_what_is_no_selection(selection: Selection, text: str) -> None:
    source = MemoryStore("from")
    async with small_log(source, "json") as log:
        await log.append_named("job", 1, [("a", 1), ("b", 2)])
    with pytest.raises(Unfit, match=text):
        await copied(source, MemoryStore("to"), "json", selection)


async def test_a_place_with_other_records_is_refused() -> None:
    source, target = MemoryStore("from"), MemoryStore("to")
    await append_some(source, "json", range(6))
    killed = Fate(["compare_and_set"], "head", Killed(), passes=2)
    with pytest.raises(Killed):
        await copied(source, Fated(target, killed), "json")
    other = Fate(["compare_and_set"], "head", before=partial(append_one, target), times=1)
    for text in ("another process has changed", "records that no copy of this FROM"):
        with pytest.raises(LogError, match=text):
            await copied(source, Fated(target, other), "json")


async def append_one(store: Store) -> None:
    async with small_log(store, "json") as log:
        await log.append("a", "not of the copy")


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
    for folder in ("run", "merged", "starts"):
        for file in source.files.list_files(folder):
            target.files.put(file.key, source.files.read_range(file.key, 0, file.size or 0))
    return target


@pytest.mark.lawless  # objects that a tool copies are none that a log writes
@pytest.mark.parametrize("runs", ["json", "parquet"])
async def test_objects_that_a_tool_copied_in_the_order_of_the_page_are_read_by_a_copy(
    runs: Runs,
) -> None:
    torn = 0
    for every in (1, 4):
        source = MemoryStore("from")
        await append_some(source, runs, range(18))
        before = await records(source, runs)
        objects = await copied_by_a_tool(source, ORDER, every, runs)
        torn += bool((await check(objects)).findings)
        target = MemoryStore("to")
        await copied(objects, target, runs)
        now, after = await records(target, runs), await records(source, runs)
        assert {key: each[: len(before[key])] for key, each in now.items()} == before
        assert {key: each[: len(now[key])] for key, each in after.items()} == now
    assert torn  # as it stands such a copy need not be a log


@pytest.mark.lawless
async def test_a_torn_copy_is_told_by_name() -> None:
    told: set[str] = set()
    for folders in (("claim", "compacted", "data", "format"), ORDER, ("segment", "head")):
        for every in (2, 3):
            source = MemoryStore("from")
            await append_some(source, "json", range(18))
            objects = await copied_by_a_tool(source, folders, every, "json")
            try:
                async with small_log(objects, "json") as log:
                    await log.append_many("a", [1] * 2)
                    await log.append_many("a", [1] * 2)
            except Broken as broken:
                told.add(str(broken).split(":")[0])
                assert "was made while others appended" in str(broken)
                assert (await check(objects)).findings
    assert told == {"HeadNeverReturns", "CommittedReadable"}
