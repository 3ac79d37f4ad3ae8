"""A program of the conformance kit, on this library: one to copy for another implementation.

leaderless conformance --program "python -m leaderless.conformance.example"
"""

import json
import sys
from contextlib import AsyncExitStack
from typing import Any

import anyio
import anyio.to_thread

from leaderless import open_log
from leaderless.api.log import Log
from leaderless.errors import Indefinite, LogError
from leaderless.groups.consumer import consume
from leaderless.hosting.reads import Record
from leaderless.store.values import message_of, value_of

NOT_SUPPORTED = "not supported"
PAGE = 1000
TIMEOUT_S = 1.0  # of a request to the store; leases are five times as long


async def done(log: Log, line: dict[str, Any]) -> dict[str, Any]:
    """What a line but `open` asks for, done by this library."""
    key, group = line.get("key", ""), line.get("group", "")
    values: list[Any] = [*map(value_of, line.get("values", []))]
    match line["op"]:
        case "append" if "name" in line:
            name, seq = line["name"]
            await log.append_named(name, seq, [(key, value) for value in values])
        case "append":
            return {"offset": (await log.append_many(key, values))[0]}
        case "read":
            records: list[Record] = []
            at = 0
            while found := (await log.read_many({key: at}, PAGE)).get(key):
                records += found
                at = found[-1].offset + 1
            return {"records": [_shown(record) for record in records]}
        case "consume":
            record = await consume(log.read, log.cursors, group, key)
            return {"record": record and _shown(record)}
        case "commit":
            await log.commit(group, {key: line["offset"]})
        case "compact" | "fence" | "unfence" | "vacuum" as chore:
            await getattr(log, chore)()
        case _:
            return {"error": NOT_SUPPORTED}
    return {}


def _shown(record: Record) -> list[Any]:
    return [record.offset, message_of(record.value)]


async def answer_to(log: Log, line: dict[str, Any]) -> dict[str, Any]:
    """As `done`; an error as a line tells it."""
    try:
        return await done(log, line)
    except LogError as error:
        return {"error": str(error), "may_have_happened": isinstance(error, Indefinite)}


def say(number: int, said: dict[str, Any]) -> None:
    """Answer a line."""
    sys.stdout.write(json.dumps({"id": number} | said) + "\n")
    sys.stdout.flush()


async def main() -> None:
    """Answer the lines of stdin, until it ends."""
    log: Any = None

    async def answer(line: dict[str, Any]) -> None:
        say(line["id"], await answer_to(log, line))

    async with anyio.create_task_group() as tasks, AsyncExitStack() as opened:
        while text := await anyio.to_thread.run_sync(sys.stdin.readline):
            line = json.loads(text)
            if line["op"] != "open":
                tasks.start_soon(answer, line)
                continue
            number, _ = line.pop("id"), line.pop("op")
            await opened.aclose()
            try:
                opening = open_log(
                    line.pop("store"), create=False, peers=None, store_timeout_s=TIMEOUT_S, **line
                )
                log = await opened.enter_async_context(opening)
                say(number, {})
            except LogError as error:
                say(number, {"error": str(error), "may_have_happened": False})


if __name__ == "__main__":
    anyio.run(main)
