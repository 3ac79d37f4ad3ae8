"""What others do to a log of files between two calls of a snapshot, a merge, or a vacuum."""

from typing import Any

import pytest

from leaderless.core.coordination import InvariantBroken
from leaderless.core.headlog.chain import Sealed, sealed_below
from leaderless.core.headlog.index import Index, IndexEntry
from leaderless.core.headlog.records import Run, Segment
from leaderless.core.messages import Entry
from leaderless.errors import Broken
from leaderless.store.files import MemoryFiles, Source, require_length
from leaderless.store.port import OutcomeUnknown, Refused
from leaderless.table.parquet import Reader, write_file
from leaderless.table.pieces import BatchColumns
from leaderless.table.runs import create_run, encode_run, pieces_of
from leaderless.table.schema import Row
from tests.around import DAMAGES, Damage
from tests.tables import (
    table_of,
)

pytestmark = pytest.mark.anyio


# ---------------------------------------------------------------- answers that are cut off or make no sense


half, nonsense = DAMAGES["half"], DAMAGES["garbage"]


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
