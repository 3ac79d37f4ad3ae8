"""A program of the conformance kit, on this library: one to copy for another implementation.

    leaderless conformance --program "python -m leaderless.conformance.example"
"""

import sys
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import orjson

from leaderless import open_log
from leaderless.api.log import Log
from leaderless.errors import Indefinite, LogError
from leaderless.groups.consumer import consume
from leaderless.hosting.reads import Record
from leaderless.store.values import message_of, value_of

NOT_SUPPORTED = "not supported"
PAGE = 1000


async def carry_out(log: Log, line: dict[str, Any]) -> dict[str, Any]:
    """What a line but `open` asks for, done by this library."""
    key, group = line.get("key", ""), line.get("group", "")
    values: list[Any] = [*map(value_of, line.get("values", []))]
    match line["op"]:
        case "append" if "name" in line:
            await log.append_named(*line["name"], [(key, value) for value in values])
        case "append":
            return {"offset": (await log.append_many(key, values))[0]}
        case "read":
            records: list[Record] = []
            while found := await log.read(key, len(records), PAGE):
                records += found
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


async def answered(log: Log, line: dict[str, Any]) -> dict[str, Any]:
    """As `carry_out`; an error as a line tells it."""
    try:
        return await carry_out(log, line)
    except LogError as error:
        return {"error": str(error), "may_have_happened": isinstance(error, Indefinite)}


async def main() -> None:
    """Answer the lines of stdin, until it ends."""
    async with anyio.create_task_group() as tasks, AsyncExitStack() as opened:
        log: Any = None

        async def answer(line: dict[str, Any]) -> None:
            said = {"id": line["id"]} | await answered(log, line)
            sys.stdout.buffer.write(orjson.dumps(said) + b"\n")
            sys.stdout.buffer.flush()

        while text := await anyio.to_thread.run_sync(sys.stdin.buffer.readline):
            line = orjson.loads(text)
            if line["op"] != "open":
                tasks.start_soon(answer, line)
                continue
            await opened.aclose()
            place = {name: given for name, given in line.items() if name not in ("id", "op", "store")}
            try:
                log = await opened.enter_async_context(
                    open_log(line["store"], create=False, peers=None, **place)
                )
                said: dict[str, Any] = {}
            except LogError as error:
                said = {"error": str(error), "may_have_happened": False}
            sys.stdout.buffer.write(orjson.dumps({"id": line["id"]} | said) + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    anyio.run(partial(main))
