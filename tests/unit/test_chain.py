"""Readers of the chain, while others append and compact between any two of their reads.

`leaderless.core.headlog.chain` has the order of the reads, and the proof that they miss nothing.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest

from leaderless.core.coordination import InvariantBroken
from leaderless.core.headlog.chain import Sealed, sealed_below
from leaderless.core.headlog.index import Index, IndexEntry
from leaderless.core.shape import Runs
from leaderless.hosting.fsck import check
from leaderless.hosting.laws import Laws
from leaderless.hosting.vacuum import references
from leaderless.store.memory import MemoryStore
from leaderless.table.snapshot import snapshot
from tests.around import Around, Call, Kind
from tests.tables import compact, rows_of_snapshot, small_log

pytestmark = pytest.mark.anyio
LARGE = "x" * 20_000
READS_MAX = 200


class Moved(Around):
    """What a reader sees of a log that moves after its reads of these numbers, once each."""

    def __init__(self, shared: MemoryStore) -> None:
        super().__init__(shared)
        self.shared = shared
        self.files = shared.files
        self.reads = 0
        self.moves_at: set[int] = set()
        self.move: Callable[[], Awaitable[None]] | None = None

    async def around(self, kind: Kind, key: str, call: Call) -> Any:
        answer = await call()
        if kind == "read" and key != "format" and self.move:
            self.reads += 1
            if self.reads in self.moves_at:
                await self.move()
        return answer


async def of_replica(store: Moved, count: int) -> bool:
    async with small_log(store, "json", timeout_s=1.0) as log:
        values: list[object] = []
        while len(values) < count:
            values += [record.value for record in await log.read("k", len(values))]
        store.move = None
    return values[:count] == [(LARGE if n % 3 == 0 else n) for n in range(count)]


async def of_snapshot(store: Moved, count: int) -> bool:
    found = await snapshot(store)
    rows = await rows_of_snapshot(store, found)
    return [row.offset for row in rows] == [*range(len(rows))] and len(rows) >= count


async def of_references(store: Moved, count: int) -> bool:
    return len({each.key async for each in references(store)}) >= (count + 2) // 3


async def of_fsck(store: Moved, _: int) -> bool:
    return (await check(store)).findings == []


async def of_laws(store: Moved, count: int) -> bool:
    """They begin with the objects as they are, and do not read."""
    objects = {
        key: True if key.startswith("data/") else orjson.loads(found.value)
        for key, (found, _) in store.shared._objects.items()
    }
    return Laws.of(objects).head.end >= count


@pytest.mark.parametrize(
    ("reader", "runs"),
    [
        (of_replica, "json"),
        (of_snapshot, "json"),
        (of_snapshot, "parquet"),
        (of_references, "json"),
        (of_fsck, "json"),
        (of_fsck, "parquet"),
        (of_laws, "json"),
        (of_laws, "parquet"),
    ],
)
async def test_a_reader_misses_nothing_whatever_moves_between_its_reads(
    reader: Callable[[Moved, int], Awaitable[bool]], runs: Runs
) -> None:
    """The log moves after two reads in a row, the first two, and so on to the last one alone."""
    for place in range(1, READS_MAX):
        shared, count = MemoryStore(), 0
        store = Moved(shared)
        async with small_log(shared, runs, timeout_s=1.0) as log:

            async def move() -> None:
                nonlocal count
                for _ in range(7):
                    await log.append("k", LARGE if count % 3 == 0 else count)
                    count += 1
                await compact(log)
                for _ in range(5):  # segments, and a tail
                    await log.append("k", LARGE if count % 3 == 0 else count)
                    count += 1

            await move()
            before = count
            store.moves_at = {place, place + 1}
            store.move = move
            assert await reader(store, before), place
        if store.reads < place:
            return
    raise AssertionError(f"a reader makes more than {READS_MAX} reads")


def drive(reader: Sealed[int], answers: dict[int, Any], indexes: list[Index]) -> Any:
    """Answer a reader; each index that it asks for is the next one."""
    wanted = next(reader)
    while True:
        found = [indexes.pop(0) if n is None else answers.get(n) for n in wanted]
        try:
            wanted = reader.send(found)
        except StopIteration as end:
            return end.value


def up_to(segment: int) -> Index:
    return Index(1, 0, (IndexEntry(0, 0, segment, 0, 2 * segment + 2, 1, 9),))


def test_what_is_gone_is_looked_for_in_the_index() -> None:
    assert drive(sealed_below(2, 5, 8), {2: 2, 3: 3, 4: 4}, []) == (None, [2, 3, 4])
    assert drive(sealed_below(2, 5, 1), {4: 4}, [up_to(2), up_to(3)]) == (up_to(3), [4])
    assert drive(sealed_below(2, 5, 8), {}, [up_to(9)]) == (up_to(9), [])


def test_what_is_gone_and_in_no_run_is_told() -> None:
    with pytest.raises(InvariantBroken, match="CommittedReadable"):
        drive(sealed_below(2, 5, 8), {2: 2, 4: 4}, [up_to(1)])
