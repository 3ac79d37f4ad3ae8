"""The store port of a process beside a virtual bucket: each request is a message, and so is its answer."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import anyio

from bench.services import Body
from leaderless.store.port import (
    PAGE,
    Conflict,
    Found,
    Listed,
    OutcomeUnknown,
    Store,
    Version,
)
from simulation.bucket import PRECONDITION_FAILED, TEXT, Bucket
from simulation.loop import VirtualEventLoop, run_virtual

STORE_TIMEOUT_S = 1.0

T = TypeVar("T")


class Port:
    """The store port of one process: `say` sends a request, and `answered` takes what comes back.

    `numbers_from`: no two lives of a process give their requests the same numbers.
    """

    url = "virtual:"
    value_bytes_max = 1 << 30

    def __init__(
        self,
        say: Callable[[Body], object],
        numbers_from: int = 0,
        timeout_s: float = STORE_TIMEOUT_S,
    ) -> None:
        self._say = say
        self._number = numbers_from
        self._timeout_s = timeout_s
        self._open: dict[int, asyncio.Future[Body]] = {}

    def answered(self, body: Body) -> None:
        """An answer came; perhaps nobody waits for it any more."""
        answer = self._open.pop(body["in_reply_to"], None)
        if answer and not answer.done():
            answer.set_result(body)

    async def read(self, key: str) -> Found | None:
        """See `leaderless.store.port.Store`."""
        found = await self._ask("get", key)
        return Found(found["value"].encode(TEXT), found["etag"]) if "etag" in found else None

    async def read_again(self, key: str, known: Found) -> Found | None:
        """See `leaderless.store.port.Store`."""
        found = await self._ask("get", key, unless=known.version)
        if "etag" not in found:
            return None
        return Found(found["value"].encode(TEXT), found["etag"]) if "value" in found else known

    async def write(self, key: str, value: bytes) -> Version:
        """See `leaderless.store.port.Store`."""
        return str((await self._ask("put", key, value=value.decode(TEXT)))["etag"])

    async def create(self, key: str, value: bytes) -> Version:
        """See `leaderless.store.port.Store`."""
        return str((await self._ask("create", key, value=value.decode(TEXT)))["etag"])

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """See `leaderless.store.port.Store`."""
        changed = await self._ask("update", key, value=value.decode(TEXT), etag=version)
        return str(changed["etag"])

    async def delete(self, keys: Sequence[str]) -> None:
        """See `leaderless.store.port.Store`."""
        if keys:
            await self._ask("delete", keys[0], keys=list(keys))

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        """See `leaderless.store.port.Store`."""
        page = await self._ask("list", folder, after=after, limit=limit)
        return [Listed(*each) for each in page["found"]]

    async def aclose(self) -> None:
        """See `leaderless.store.port.Store`."""

    async def _ask(self, kind: str, key: str, **more: Any) -> Body:
        self._number += 1
        answer = self._open[self._number] = asyncio.get_running_loop().create_future()
        self._say({"type": kind, "key": key, **more, "msg_id": self._number})
        with anyio.move_on_after(self._timeout_s):
            body: Body = await answer
            if body["type"] != "error":
                return body
            error = Conflict if body["code"] == PRECONDITION_FAILED else OutcomeUnknown
            raise error(body["text"])
        raise OutcomeUnknown(f"no answer within {self._timeout_s:g} s")


def port_to(bucket: Bucket, client: str) -> Port:
    """A port whose requests are carried out and answered at once."""

    def say(body: Body) -> None:
        port.answered({**bucket.carried_out(client, body), "in_reply_to": body["msg_id"]})

    port = Port(say)
    return port


def at_once(bucket: Bucket, work: Callable[[Store], Awaitable[T]], now_s: float) -> T:
    """What a process does to which nothing else happens."""

    async def main(loop: VirtualEventLoop) -> T:
        loop.now_s = now_s
        return await work(port_to(bucket, "operator"))

    return run_virtual(main)
