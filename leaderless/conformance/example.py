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
TIMEOUT_S = 1.0  # of a request to the store; leases are five times as long


class Program:
    """Does what lines ask for, with a log of this library."""

    def __init__(self, log: Any = None) -> None:
        self._log: Log = log
        self.held: AsyncExitStack = AsyncExitStack()

    async def _done(self, line: dict[str, Any]) -> dict[str, Any]:
        match line:
            case {"op": "open", "id": _, "store": url, **how}:
                await self.held.aclose()
                log = open_log(url, create=False, peers=None, store_timeout_s=TIMEOUT_S, **how)
                self._log = await self.held.enter_async_context(log)
            case {"op": "append", "key": key, "values": values, "name": [name, seq]}:
                await self._log.append_named(name, seq, [(key, value_of(each)) for each in values])
            case {"op": "append" | "append_if", "key": key, "values": values}:
                offsets = await self._log.append_many(
                    key,
                    [*map(value_of, values)],
                    expected=line.get("expected"),
                    token=line.get("token"),
                )
                return {"offset": offsets[0]}
            case {"op": "close", "key": key}:
                return {"end": await self._log.close(key)}
            case {"op": "read", "key": key}:
                records: list[Record] = []
                while found := (
                    await self._log.read_many({key: records[-1].offset + 1 if records else 0}, 1000)
                ).get(key):
                    records += found
                return {"records": [*map(_shown, records)]}
            case {"op": "consume", "group": group, "key": key}:
                record = await consume(self._log.read, self._log.cursors, group, key)
                return {"record": record and _shown(record)}
            case {"op": "commit", "group": group, "key": key, "offset": offset}:
                await self._log.commit(group, {key: offset})
            case {"op": "compact" | "fence" | "unfence" | "vacuum" as chore}:
                await getattr(self._log, chore)()
            case _:
                return {"error": NOT_SUPPORTED}
        return {}

    async def answer(self, line: dict[str, Any]) -> dict[str, Any]:
        """What is said of a line."""
        try:
            return await self._done(line)
        except LogError as error:
            return {"error": str(error), "may_have_happened": isinstance(error, Indefinite)}


def _shown(record: Record) -> list[Any]:
    return [record.offset, message_of(record.value)]


async def main() -> None:
    """Answer the lines of stdin, until it ends."""
    program = Program()

    async def answer(line: dict[str, Any]) -> None:
        said = {"id": line["id"]} | await program.answer(line)
        print(json.dumps(said), flush=True)  # noqa: T201 - it speaks on stdout

    async with anyio.create_task_group() as tasks, program.held:
        while text := await anyio.to_thread.run_sync(sys.stdin.readline):
            line = json.loads(text)
            if line["op"] == "open":
                await answer(line)
            else:
                tasks.start_soon(answer, line)


if __name__ == "__main__":
    anyio.run(main)
