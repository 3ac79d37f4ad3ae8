"""Programs of ours and of a second implementation on one log in a file; all are killed in the middle."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import anyio

from leaderless import Record, open_log
from leaderless.hosting.place import initialise, new_shape
from leaderless.store.calls import objects_in
from leaderless.store.sqlite import SqliteStore
from leaderless.upkeep.fsck import check
from tests.killed import Killed
from tests.scripted import ROOT

SECOND = ROOT / "workloads/examples/second_file.py"
ROUNDS = 3
APPENDS = 20  # that each process of a round is asked for, and half of them before it is killed
LARGE = "." * 20_000


class Offered(Killed):
    """A process that appends what it is offered, and prints KEY OFFSET for each."""

    def __init__(self, name: str, *command: object) -> None:
        super().__init__(sys.executable, *map(str, command))
        self._name = name
        self._offered: list[tuple[str, str]] = []

    def offer(self, appends: int) -> None:
        """Give it so many records; every seventh is a large one."""
        assert self._process.stdin is not None
        for number in range(len(self._offered), len(self._offered) + appends):
            value = f"{self._name}.{number}" + (LARGE if number % 7 == 6 else "")
            self._offered.append((f"k{number % 2}", value))
            self._process.stdin.write(" ".join(self._offered[-1]) + "\n")
        self._process.stdin.flush()

    def _take(self, line: str) -> None:
        key, offset = line.split()
        wanted, value = self._offered[len(self.acknowledged)]
        assert key == wanted
        self.acknowledged.append(Record(key, int(offset), value))


def killed_in_rounds(file: Path) -> list[Record]:
    """What all processes acknowledged: in each round one of each kind, at once, killed in the middle."""
    acknowledged: list[Record] = []
    for number in range(ROUNDS):
        ours = Offered(f"ours{number}", "-m", "tests.producing", f"sqlite:///{file}")
        second = Offered(f"second{number}", SECOND, file, "append")
        for process in (ours, second):
            process.offer(1)
            process.wait_for(1)
        for process in (ours, second):
            process.offer(APPENDS)
        for process in (ours, second):
            process.wait_for(APPENDS // 2)
            process.kill()
            acknowledged += process.acknowledged
    return acknowledged


async def make(file: Path) -> None:
    """A log whose segments, runs and pages a few appends fill, with some of each."""
    store = SqliteStore(file)
    small = replace(new_shape(store), seal_entries=2, segments_per_run=2, page_children=2)
    await initialise(store, shape=small)
    await store.aclose()
    async with open_log(f"sqlite:///{file}", create=False) as log:
        for number in range(20):
            await log.append("k0", f"first.{number}")
        await log.compact()


async def read(file: Path) -> list[Record]:
    """All records, as our programs read them; the log has no findings."""
    store = SqliteStore(file)
    assert (await check(store)).findings == []
    kinds = {each.key.partition("/")[0] async for each in objects_in(store)}
    assert kinds >= {"format", "head", "segment", "run", "page", "compacted", "data"}
    await store.aclose()
    records: list[Record] = []
    async with open_log(f"sqlite:///{file}", create=False) as log:
        for key, end in (await log.keys()).items():
            while (at := sum(record.key == key for record in records)) < end:
                records += await log.read(key, at)
    return records


def test_two_implementations_share_a_log_while_their_processes_are_killed(tmp_path: Path) -> None:
    file = tmp_path / "log.db"
    anyio.run(make, file)
    acknowledged = killed_in_rounds(file)
    records = anyio.run(read, file)
    assert {*acknowledged} <= {*records}
    values = [record.value for record in records]
    assert len({*values}) == len(values), "none is there twice"
    assert {str(value)[:3] for value in values} == {"fir", "our", "sec"}
    command = [sys.executable, str(SECOND), str(file), "read"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    theirs = [tuple(json.loads(line)) for line in said.splitlines()]
    assert sorted(theirs) == sorted((each.key, each.offset, each.value) for each in records)
