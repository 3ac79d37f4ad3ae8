"""Makes the golden logs of the kit (`leaderless/conformance/golden`) from `golden.toml` and docs/SPEC.md.

    python -m tests.golden

The bytes of Parquet files are those of the packages in `requirements/dev.lock`. Commands beside those of
`tests.tables` and `tests.epochs`:

    > from here                 each write from now on is a state of the log
    > p bytes k 00ff            append bytes
    > p finish q/7 a            a driver appends what the epoch's plan says
"""

import json
import re
import tomllib
from base64 import b64encode
from typing import Any, ClassVar

from leaderless import __version__
from leaderless.api.log import Log
from leaderless.conformance.golden import FOLDER, is_text
from leaderless.errors import OffsetOutOfRange
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, require_log
from leaderless.spark.epochs import commit
from leaderless.store.memory import MemoryStore
from leaderless.store.names import is_file
from leaderless.store.values import message_of
from simulation.loop import run_virtual
from tests.datadriven.programs import Programs
from tests.epochs import Sink, epoch_of
from tests.scripted import ROOT
from tests.tables import Table

Objects = dict[str, bytes]
RELEASE = f"leaderless {__version__}".encode()  # it changes, and nothing is made of it
ROW = ",\n  "
TEXT = (ROOT / "docs/SPEC.md").read_text()
EXAMPLES = {
    name: json.loads(text) for name, text in re.findall(r"```json (\S+)\n(.*?)```", TEXT, re.DOTALL)
}
PLAN = "sink/daily/00000000000000000007/plan"
APART = ("plan", "table")  # of other logs than the one of all other examples
MADE = tomllib.loads((ROOT / "tests/golden.toml").read_text())


class Golden(Table, Sink):
    """A process whose log soon has levels of pages in parts."""

    shape: ClassVar = {**Table.shape, "page_children": 2, "page_bytes": 256}
    _commit = _vacuum = None  # those of the log

    async def _bytes(self, key: str, digits: str = "") -> int:
        return await self.log.append(key, bytes.fromhex(digits))

    async def _finish(self, epoch: str, name: str) -> None:
        await commit(self.log, self.store, epoch_of(epoch), self._parts[name])


class Maker(Programs):
    """Plays commands, and notes what each write leaves."""

    def __init__(self) -> None:
        super().__init__(Golden)
        self.states: list[tuple[str, Objects]] = []

    async def _from(self, _here: str) -> None:
        tells = self._bucket._changed

        def changed(key: str, value: bytes | None) -> None:
            tells(key, value)
            self._note(key)

        self._bucket._changed = changed
        self._note("")

    def _note(self, key: str) -> None:
        objects = {name: found.value for name, found, _ in self._bucket.objects()}
        objects.pop("clock", None)
        if "format" in objects:
            objects["format"] = objects["format"].replace(RELEASE, b"leaderless")
        if key != "clock":
            self.states.append((key, objects))

    def made(self, commands: str) -> list[tuple[str, Objects]]:
        """Of each state the object that was written last, and all objects."""
        self.play("".join(f"> {command}\n" for command in commands.splitlines()))
        if not self.states:
            self._note("")
        return self.states


async def stored(objects: Objects) -> MemoryStore:
    """A store with these objects."""
    store = MemoryStore()
    for name, value in objects.items():
        if is_file(name):
            store.files.put(name, value)
        else:
            await store.write(name, value)
    return store


async def said(objects: Objects) -> dict[str, Any]:
    """What our library reads from a log: of each key the first offset and its values; and committed offsets."""
    store = await stored(objects)
    log = Log(store, bounds_of(store, 5.0, 1.0, await require_log(store)))
    reads: dict[str, Any] = {}
    async with running(log.host):
        for key, end in (await log.keys()).items():
            try:
                values = await log.read(key, first := 0, end + 1)
            except OffsetOutOfRange as gone:
                values = await log.read(key, first := gone.earliest, end + 1)
            assert first + len(values) == end, f"{key} ends at {end}"
            reads[key] = [first, [message_of(record.value) for record in values]]
        groups = await log.cursors.groups()
        commits = {
            group: {key: cursor.committed for key, cursor in sorted(cursors.items())}
            for group, cursors in sorted(groups.items())
        }
        if of_nodes := await log.committed_by_nodes():
            commits[""] = of_nodes
    return {"reads": reads, "commits": commits}


def golden(about: str, rules: list[str], states: list[tuple[str, Objects]]) -> dict[str, Any]:
    """A golden log of these states."""
    (_, objects), *later = states
    known = run_virtual(lambda _: said(objects))
    log: dict[str, Any] = {"about": about, "rules": rules, **known}
    log["objects"] = {name: held(name, value) for name, value in objects.items()}
    log["changes"] = []
    for key, after in later:
        now = run_virtual(lambda _, after=after: said(after))
        new = {name: now[name] for name in now if now[name] != known[name]}
        change = {"object": key, "holds": held(key, after.get(key))}
        log["changes"].append(change | new)
        known = now
    return log


def held(name: str, value: bytes | None) -> Any:
    """What an object holds, as a golden log says it."""
    if value is None:
        return None
    return json.loads(value) if is_text(name) else b64encode(value).decode()


def text_of(log: dict[str, Any]) -> str:
    """The file of a golden log: a line for each object."""
    lines = []
    for name, value in log.items():
        match value:
            case dict():
                rows = [f"{json.dumps(key)}: {json.dumps(each)}" for key, each in value.items()]
                text = f"{{\n  {ROW.join(rows)}\n }}" if rows else "{}"
            case [dict(), *_]:
                text = f"[\n  {ROW.join(map(json.dumps, value))}\n ]"
            case _:
                text = json.dumps(value)
        lines.append(f'"{name}": {text}')
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def example_log() -> Objects:
    """The log of the specification's examples: with segments that are tombstones, and a value apart."""
    objects = {name: EXAMPLES[name] for name in EXAMPLES if name not in APART}
    for number in range(EXAMPLES["compacted"]["cursor"]):
        objects[f"segment/{number}"] = EXAMPLES["segment/5"]
    objects[PLAN] = EXAMPLES["plan"]
    [(_, _, appends, _)] = EXAMPLES["head"]["entries"]
    name, size, _ = appends["us"][1][0]["$data"]
    objects[f"data/{name}"] = "x" * (size - 2)
    return {name: json.dumps(value).encode() for name, value in sorted(objects.items())}


def files() -> dict[str, str]:
    """Each golden log, and what its file holds."""
    made = {name: (log, Maker().made(log["commands"])) for name, log in MADE.items()}
    of_spec = {"about": "The examples of docs/SPEC.md", "rules": ["R2", "R5", "R6", "R7", "R11"]}
    made["examples"] = of_spec, [("", example_log())]
    return {
        name: text_of(golden(log["about"], log["rules"], states))
        for name, (log, states) in made.items()
    }


if __name__ == "__main__":
    for made_name, text in files().items():
        (FOLDER / f"{made_name}.json").write_text(text)
