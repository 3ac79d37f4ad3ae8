"""Golden logs: what objects hold, and what must be read from them, for whoever implements docs/SPEC.md.

    golden/NAME.json    {about, rules, reads: {key: [[offset, value], ...]},
                         commits: {group: {key: offset}}, objects: {name: contents},
                         changes: [{object, holds, ...}, ...]}

A log begins with `objects`. Each of `changes` is one write on top, `null` a deletion, after which its process
may have died. So each leaves a log, from which must be read what `reads` and `commits` say, or the change in
their place. The group "" is that of nodes (`committed/G`). Values stand as messages do (5.4), those apart in
their place. Contents are JSON, as they stand here; of `data/`, staged rows and Parquet they are base64.
"""

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from leaderless.core.coordination import Json
from leaderless.store.memory import MemoryStore
from leaderless.store.names import is_file
from leaderless.store.sqlite import SqliteStore

FOLDER = Path(__file__).parent / "golden"


class Case(NamedTuple):
    """One state of a golden log, and what must be read from it.

    `rules`: of docs/SPEC.md, the one that it is about first. `store`: what each object holds. `reads`: offsets
    and values of each key. `commits`: the offset of each key, or None, of each group.
    """

    name: str
    rules: list[str]
    store: dict[str, bytes]
    reads: dict[str, list[list[Json]]]
    commits: dict[str, dict[str, int | None]]


def cases() -> Iterator[Case]:
    """All states of all golden logs: `NAME/0` is what `objects` say, `NAME/1` that after the first change."""
    for file in sorted(FOLDER.glob("*.json")):
        log = json.loads(file.read_text())
        held = log["objects"]
        for number, change in enumerate([{}, *log["changes"]]):
            log |= change
            held |= {change["object"]: change["holds"]} if change else {}
            store = {
                name: json.dumps(value).encode() if is_text(name) else b64decode(value)
                for name, value in held.items()
                if value is not None
            }
            name, rules = f"{file.stem}/{number}", log["rules"].split()
            yield Case(name, rules, store, log["reads"], log["commits"])


def is_text(name: str) -> bool:
    """Whether an object of this name holds JSON."""
    is_rows = name.startswith("sink/") and not name.endswith("/plan")
    return not (is_rows or name.startswith("data/") or name.endswith(".parquet"))


async def fill(store: MemoryStore | SqliteStore, objects: Mapping[str, bytes]) -> None:
    """Let a store hold objects, some of them as files."""
    for name, value in objects.items():
        if is_file(name):
            store.files.put(name, value)
        else:
            await store.write(name, value)
