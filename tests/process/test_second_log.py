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

OURS = ("-m", "leaderless.conformance.example")
SECOND = (str(ROOT / "workloads/examples/second_program.py"),)
ROUNDS = 3
APPENDS = 20  # that each process of a round is asked for, and half of them before it is killed
LARGE = "." * 20_000


class Offered(Killed):
    """A program of the conformance kit that appends what it is offered to the log in a file."""

    def __init__(self, name: str, program: tuple[str, ...], file: Path) -> None:
        super().__init__(sys.executable, *program)
        self._name = name
        self._offered: list[tuple[str, str]] = []
        self.ask({"id": -1, "op": "open", "store": f"sqlite:///{file}"})

    def ask(self, line: dict[str, object]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()

    def offer(self, appends: int) -> None:
        """Give it so many records; every seventh is a large one."""
        for number in range(len(self._offered), len(self._offered) + appends):
            value = f"{self._name}.{number}" + (LARGE if number % 7 == 6 else "")
            self._offered.append((f"k{number % 2}", value))
            self.ask({"id": number, "op": "append", "key": f"k{number % 2}", "values": [value]})

    def _take(self, line: str) -> None:
        answer = json.loads(line)
        if answer["id"] >= 0:
            key, value = self._offered[answer["id"]]
            self.acknowledged.append(Record(key, answer["offset"], value))


def killed_in_rounds(file: Path) -> list[Record]:
    """What all processes acknowledged: in each round one of each kind, at once, killed in the middle."""
    acknowledged: list[Record] = []
    for number in range(ROUNDS):
        ours, second = (
            Offered(f"ours{number}", OURS, file),
            Offered(f"second{number}", SECOND, file),
        )
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
    lines = [{"op": "open", "store": f"sqlite:///{file}"}]
    lines += [{"op": "read", "key": key} for key in ("k0", "k1")]
    text = "".join(json.dumps(line | {"id": number}) + "\n" for number, line in enumerate(lines))
    said = subprocess.run(
        [sys.executable, *SECOND], input=text, capture_output=True, text=True, check=True
    ).stdout
    theirs = [record for line in said.splitlines()[1:] for record in json.loads(line)["records"]]
    assert theirs == [[each.offset, each.value] for each in records]
