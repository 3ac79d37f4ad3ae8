"""What others do to a log of files between two calls of a snapshot, a merge, or a vacuum."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from leaderless.core.coordination import InvariantBroken
from leaderless.core.headlog.chain import Sealed, sealed_below
from leaderless.core.headlog.index import Index, IndexEntry
from leaderless.core.headlog.records import Run, Segment
from leaderless.core.messages import Entry
from leaderless.core.shape import Runs
from leaderless.errors import Broken
from leaderless.store.files import MemoryFiles, Source, require_length
from leaderless.store.memory import MemoryStore
from leaderless.store.port import OutcomeUnknown, Refused
from leaderless.table.parquet import Reader, write_file
from leaderless.table.pieces import BatchColumns
from leaderless.table.runs import create_run, encode_run, pieces_of
from leaderless.table.schema import Row
from leaderless.table.snapshot import snapshot
from leaderless.upkeep.fsck import check
from leaderless.upkeep.vacuum import references
from tests.around import READS, Fate, Fated
from tests.tables import (
    compact,
    rows_of_snapshot,
    small_log,
    table_of,
)

pytestmark = pytest.mark.anyio


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
    assert (reader.read()["offset"].to_pylist(), reader.run) == ([0], {"base": 3})


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


# ---------------------------------------------------------------- files of runs

RUN = Run(0, 2, {"k": (0, ["a", "b"])}, {}, {"w": (1, {"k": 1})})


def run_file(run: Run = RUN, at: float = 1.0) -> bytes:
    segment = Segment(0, [Entry("w", slot, {"k": (slot, ["..."])}, {}) for slot in range(2)])
    batches: list[BatchColumns] = []
    pieces = [*pieces_of(run, segment, at, batches)]
    return encode_run(0, 1, run, batches, pieces)


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


# ---------------------------------------------------------------- every reader of the chain

LARGE = "x" * 20_000
READS_MAX = 200


async def of_replica(store: Fated, count: int) -> bool:
    async with small_log(store, "json", timeout_s=1.0) as log:
        values: list[object] = []
        while len(values) < count:
            values += [record.value for record in await log.read("k", len(values))]
        store.fates.clear()
    return values[:count] == [(LARGE if n % 3 == 0 else n) for n in range(count)]


async def of_snapshot(store: Fated, count: int) -> bool:
    rows = await rows_of_snapshot(store, await snapshot(store))
    return [row.offset for row in rows] == [*range(len(rows))] and len(rows) >= count


async def of_references(store: Fated, count: int) -> bool:
    return len({each.key async for each in references(store)}) >= (count + 2) // 3


async def of_fsck(store: Fated, _: int) -> bool:
    return (await check(store)).findings == []


@pytest.mark.parametrize(
    ("reader", "runs"),
    [
        (of_replica, "json"),
        (of_snapshot, "json"),
        (of_snapshot, "parquet"),
        (of_references, "json"),
        (of_fsck, "json"),
        (of_fsck, "parquet"),
    ],
)
async def test_a_reader_misses_nothing_whatever_moves_between_its_reads(
    reader: Callable[[Fated, int], Awaitable[bool]], runs: Runs
) -> None:
    """The log moves after two reads in a row, the first two, and so on to the last one alone."""
    for place in range(1, READS_MAX):
        shared, count = MemoryStore(), 0
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
            moves = Fate(READS, "(?!format)", after=move, passes=place - 1, times=2)
            assert await reader(Fated(shared, moves), before), place
        if not moves.happened:
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
