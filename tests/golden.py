"""Makes the golden logs of the kit (`leaderless/conformance/golden`) from `golden.toml` and docs/SPEC.md.

    python -m tests.golden

The bytes of Parquet files are those of the packages in `requirements/dev.lock`. Commands beside those of
`tests.tables`:

    > from here                 each write from now on is a state of the log
    > p bytes k 00ff            append bytes
    > p stage q/6               a task stages rows of an epoch
    > p finish q/7              the same; then a driver makes the plan, and appends what it says
"""

import json
import re
import tomllib
from base64 import b64encode
from typing import Any, ClassVar

import anyio

from leaderless import __version__
from leaderless.api.log import Log
from leaderless.conformance.example import Program
from leaderless.conformance.golden import FOLDER, fill, is_text
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, require_log
from leaderless.spark.epochs import commit
from leaderless.spark.staging import decide
from leaderless.store.memory import MemoryStore
from leaderless.upkeep.staged import Plan
from tests.datadriven.programs import Programs
from tests.epochs import ROWS, epoch_of, stage
from tests.scripted import ROOT
from tests.tables import Table

Objects = dict[str, bytes]
RELEASE = f"leaderless {__version__}".encode()  # it changes, and nothing is made of it
TEXT = (ROOT / "docs/SPEC.md").read_text()
EXAMPLES = {
    name: json.loads(text) for name, text in re.findall(r"```json (\S+)\n(.*?)```", TEXT, re.DOTALL)
}
PLAN = "sink/daily/00000000000000000007/plan"
APART = ("plan", "table")  # of other logs than the one of all other examples
OF_SPEC = {"about": "The examples of docs/SPEC.md", "rules": "R54 R2 R5 R6 R7 R11"}
MADE = tomllib.loads((ROOT / "tests/golden.toml").read_text())


class Golden(Table):
    """A process whose log soon has levels of pages in parts."""

    shape: ClassVar = {**Table.shape, "page_children": 2, "page_bytes": 256}

    async def _bytes(self, key: str, digits: str = "") -> int:
        return await self.log.append(key, bytes.fromhex(digits))

    async def _stage(self, epoch: str) -> list[str]:
        return await stage(self.store, f"{epoch_of(epoch).folder}/0-task", ROWS)

    async def _finish(self, epoch: str) -> None:
        parts = await self._stage(epoch)
        await decide(self.store, epoch_of(epoch), Plan(tuple(parts), batch_bytes=100))
        await commit(self.log, self.store, epoch_of(epoch), parts)


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
    await fill(store := MemoryStore(), objects)
    return store


async def said(objects: Objects) -> dict[str, Any]:
    """What our library reads from a log: offsets and values of each key; what each group has committed."""
    store = await stored(objects)
    log = Log(store, bounds_of(store, 5.0, 1.0, await require_log(store)))
    async with running(log.host):
        ask = Program(log).answer
        reads = {
            key: (await ask({"op": "read", "key": key}))["records"] for key in await log.keys()
        }
        commits: dict[str, Any] = {"": await log.committed_by_nodes()}
        for group, (cursors, _) in sorted((await log.cursors.groups()).items()):
            commits[group] = {key: each.committed for key, each in sorted(cursors.items())}
    return {"reads": reads, "commits": commits}


def held(name: str, value: bytes | None) -> Any:
    """What an object holds, as a golden log says it."""
    return value and (json.loads(value) if is_text(name) else b64encode(value).decode())


def golden(log: dict[str, Any], states: list[tuple[str, Objects]]) -> dict[str, Any]:
    """A golden log of these states."""
    told = [anyio.run(said, after) for _, after in states]
    objects = {name: held(name, value) for name, value in states[0][1].items()}
    changes = [
        {"object": key, "holds": held(key, after.get(key))}
        | {name: now[name] for name in now if now[name] != before[name]}
        for (key, after), before, now in zip(states[1:], told, told[1:], strict=False)
    ]
    about = {name: log[name] for name in ("about", "rules")}
    return {**about, **told[0], "objects": objects, "changes": changes}


def text_of(value: Any, depth: int = 2) -> str:
    """JSON with a line for each object, and for each change."""
    match value:
        case dict() if value and depth:
            rows = [f"{json.dumps(name)}: {text_of(value[name], depth - 1)}" for name in value]
            return "{\n" + ",\n".join(rows) + "\n}"
        case list() if value and depth:
            return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
    return json.dumps(value)


def example_log() -> Objects:
    """The log of the specification's examples: with segments that are tombstones, and a value apart."""
    objects = {name: EXAMPLES[name] for name in EXAMPLES if name not in APART}
    for number in range(EXAMPLES["compacted"]["cursor"]):
        objects[f"segment/{number}"] = EXAMPLES["segment/5"]
    objects[PLAN] = EXAMPLES["plan"]
    [(_, _, appends, *_)] = EXAMPLES["head"]["entries"]
    name, size, _ = appends["us"][1][0]["$data"]
    objects[f"data/{name}"] = "x" * (size - 2)
    return {name: json.dumps(value).encode() for name, value in sorted(objects.items())}


def files() -> dict[str, str]:
    """Each golden log, and what its file holds."""
    made = {name: golden(log, Maker().made(log["commands"])) for name, log in MADE.items()}
    made["examples"] = golden(OF_SPEC, [("", example_log())])
    return {name: f"{text_of(log)}\n" for name, log in made.items()}


if __name__ == "__main__":
    for made_name, text in files().items():
        (FOLDER / f"{made_name}.json").write_text(text)
