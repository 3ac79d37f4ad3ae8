"""Files and sinks in the virtual bucket: judges that must reject, threads that end, runs that repeat."""

import asyncio
from collections.abc import Callable
from random import Random

import orjson
import pytest

from leaderless.core.messages import Entry
from leaderless.hosting.surroundings import Surroundings
from leaderless.store.memory import MemoryStore
from leaderless.table.manifest import TABLE, Manifest, Merged, Replaced, Start
from leaderless.table.parquet import write_file
from leaderless.table.retention import Policy
from leaderless.table.schema import Row
from simulation.contents import RETENTION_S, Contents, Record
from simulation.judge import simulate
from simulation.life import BUCKET
from simulation.loop import VirtualEventLoop, run_virtual
from simulation.oracle import Violation
from simulation.scenario import Scenario
from simulation.table import ROWS, WRITER, Table
from simulation.threads import asked
from tests.tables import table_of

pytestmark = pytest.mark.simulation

RUNS = [f"run/{n}-{n}.parquet" for n in range(3)]
MERGED, STARTS = f"merged/0-1-{0:016x}.parquet", f"starts/{0:016x}.json"


def file_of(*offsets: int) -> bytes:
    rows = [Row("k", offset, offset, "w", offset, offset, 1.0) for offset in offsets]
    return write_file(table_of(rows), {"first": 0, "last": 1, "base": 0, "end": 2})


class Told:
    """Contents of a log of four batches, the first two in a merged file, and what they are told.

    `time`: of all entries. A batch that was on its way for long comes with an old one.
    """

    def __init__(self, time: int | None = None) -> None:
        self.now_s, self.objects = 5000.0, {MERGED: file_of(0, 1)}
        self.contents = Contents(self.objects.get, lambda: self.now_s)
        self.contents.policy = Policy(bytes=0)
        entries = [Entry("w", n, {"k": (n, [n])}, {}, time) for n in range(4)]
        self.contents.changed("head", b"", entries)
        merged = Merged(MERGED, 1, 0, 1, 0, 2, 2, 100, ("k", "k"))
        replaced = tuple(Replaced(path, self.now_s) for path in RUNS[:2])
        self.manifest = Manifest(files=(merged,), replaced=replaced)

    def lists(self, manifest: Manifest) -> None:
        self.contents.changed(TABLE, orjson.dumps(manifest.value), ())

    def deletes(self, path: str, later_s: float = 0.0) -> None:
        self.now_s += later_s
        self.objects.pop(path, None)
        self.contents.changed(path, None, ())

    def retains(self, starts: dict[str, int], policy: Policy, **processed: int) -> None:
        self.lists(self.manifest)
        self.contents.policy, self.contents.processed = policy, processed
        self.objects[STARTS] = orjson.dumps(starts)
        self.lists(Manifest(start=Start(2, 2, STARTS)))


def merges(told: Told, *offsets: int) -> None:
    told.objects[MERGED] = file_of(*offsets)
    told.lists(told.manifest)


def deletes(path: str, later_s: float = 0.0) -> Callable[[Told], None]:
    def act(told: Told) -> None:
        told.lists(told.manifest)
        told.deletes(path, later_s)

    return act


def shows(start: int, version: int, *offsets: int) -> Callable[[Told], None]:
    records: list[Record] = [("k", offset, offset) for offset in offsets]
    return lambda told: told.contents.require_snapshot(start, version, records)


@pytest.mark.parametrize(
    ("act", "law"),
    [
        (lambda told: merges(told, 0, 1), ""),
        (lambda told: merges(told, 0), "FilesHoldTheLog"),
        (lambda told: merges(told, 0, 1, 2), "FilesHoldTheLog"),
        (lambda told: (told.objects.clear(), told.lists(told.manifest)), "FilesKept"),
        (deletes(MERGED, 9000.0), "FilesKept"),
        (deletes(RUNS[2], 9000.0), "FilesKept"),
        (deletes(RUNS[0], RETENTION_S - 1), "OldListReadable"),
        (deletes(RUNS[0], RETENTION_S + 1), ""),
        (lambda told: told.retains({"k": 2}, Policy(bytes=0)), ""),
        (lambda told: told.retains({"k": 1}, Policy(bytes=0)), "StartsKnown"),
        (lambda told: told.retains({"k": 2}, Policy(bytes=1)), "TrimmedByPolicy"),
        (lambda told: told.retains({"k": 2}, Policy(age_s=1.0)), "TrimmedByPolicy"),
        (lambda _: Told(4_999_000).retains({"k": 2}, Policy(age_s=1.0)), "TrimmedByPolicy"),
        (lambda _: Told(4_998_999).retains({"k": 2}, Policy(age_s=1.0)), ""),
        (lambda told: told.retains({"k": 2}, Policy(processed=True), k=0), "TrimmedByPolicy"),
        (lambda told: told.retains({"k": 2}, Policy(processed=True), k=1), ""),
        (shows(0, 4, 0, 1, 2, 3), ""),
        (shows(0, 4, 0, 1, 3), "SnapshotExact"),
        (shows(1, 3, 1, 1, 2), "SnapshotExact"),
    ],
)
def test_files_and_readers_are_judged_in_each_step(act: Callable[[Told], object], law: str) -> None:
    found = ""
    try:
        act(Told())
    except Violation as violation:
        found = violation.name
    assert found == law


@pytest.mark.parametrize(
    ("rows", "law"),
    [
        (range(ROWS), ""),
        ((*range(ROWS), 0), "SunkOnce"),
        (range(ROWS - 1), "PlanFinished"),
        ((), "PlanFinished"),
    ],
)
def test_an_epoch_that_is_done_is_in_the_log_once(rows: range | tuple[int, ...], law: str) -> None:
    told = Told()
    messages = [[1, row, ""] for row in rows]
    told.contents.changed("head", b"", [Entry(f"named/{WRITER}", 1, {"s": (0, messages)}, {})])  # type: ignore[dict-item]
    around = Surroundings(lambda: 0.0, str)
    table = Table(told.contents, Random(1), around, skips=lambda: 0.0, alive=lambda _store: False)
    found = ""
    try:
        table._require_sunk(1, whole=True)
    except Violation as violation:
        found = violation.name
    assert found == law


def test_a_thread_ends_with_its_process() -> None:
    from leaderless.store.calls import blocking

    loop, said = VirtualEventLoop(), list[str]()

    async def never() -> None:
        await asyncio.Event().wait()

    def call() -> None:
        try:
            asked(never)
        finally:
            said.append("ended")

    loop.create_task(blocking(call))
    loop.run(0.0)
    assert said == []
    loop.end()
    assert said == ["ended"]


def test_a_thread_gets_answers_and_errors_of_what_it_asks_for() -> None:
    from leaderless.store.calls import blocking

    async def fails() -> None:
        await asyncio.sleep(5)
        raise KeyError

    def call() -> object:
        try:
            return asked(fails)
        except KeyError:
            return asked(lambda: MemoryStore().read("k"))

    async def main(loop: VirtualEventLoop) -> float:
        assert await blocking(call) is None
        return loop.time()

    assert run_virtual(main) == 5


def test_a_call_that_blocks_the_loop_is_refused() -> None:
    with pytest.raises(AssertionError, match="outside of a thread"):
        asked(lambda: asyncio.sleep(0))


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_keeps_and_deletes_the_same_files(seed: int) -> None:
    given = {"store": BUCKET, "strategy": "leaderless", "runs": "parquet", "time_limit_s": 2.0}
    given |= {"compactions": 10, "retentions": 6, "readers": 3, "sinks": 4, "vacuums": 3}
    first, second = (simulate(Scenario.draw(seed, given)) for _ in range(2))
    assert first.failures == second.failures == []
    assert first.digest == second.digest
