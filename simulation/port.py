"""The store port of a process beside a virtual bucket: each request is a message, and so is its answer."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio

from bench.services import Body
from leaderless.store.files import Gone, Source, require_length
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
from simulation.threads import asked

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
        self.files = PortFiles(self)

    def answered(self, body: Body) -> None:
        """An answer came; perhaps nobody waits for it any more."""
        answer = self._open.pop(body["in_reply_to"], None)
        if answer and not answer.done():
            answer.set_result(body)

    async def read(self, key: str) -> Found | None:
        """See `leaderless.store.port.Store`."""
        found = await self._ask("get", key)
        return _found_in(found) if "etag" in found else None

    async def read_again(self, key: str, known: Found) -> Found | None:
        """See `leaderless.store.port.Store`."""
        found = await self._ask("get", key, unless=known.version)
        if "etag" not in found:
            return None
        return _found_in(found) if "value" in found else known

    async def read_range(self, key: str, start: int, length: int) -> tuple[bytes, int]:
        """`length` bytes of an object, and how many it has. Raises `Gone`."""
        found = await self._ask("get", key, start=start, length=length)
        if "etag" not in found:
            raise Gone(f"{key} is not there, or not any more")
        return found["value"].encode(TEXT), int(found["size"])

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


class PortFiles:
    """Files beside the other objects, as on S3: each call waits for a request of its process.

    They are written in one request, so a file that is there is left as it is.
    """

    def __init__(self, port: Port) -> None:
        self._port = port

    def put(self, path: str, source: Source) -> None:
        """See `leaderless.store.files.Files`."""
        assert not isinstance(source, Path), "what a log writes is in memory, or open"
        content = source if isinstance(source, bytes) else source.read()
        with suppress(Conflict):
            asked(partial(self._port.create, path, content))

    def size(self, path: str) -> int:
        """See `leaderless.store.files.Files`."""
        size: int = asked(partial(self._port.read_range, path, 0, 0))[1]
        return size

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """See `leaderless.store.files.Files`."""
        return require_length(
            asked(partial(self._port.read_range, path, start, length))[0], length, path
        )

    def delete(self, paths: Sequence[str]) -> None:
        """See `leaderless.store.files.Files`."""
        asked(partial(self._port.delete, paths))

    def list_files(self, folder: str) -> Iterator[Listed]:
        """See `leaderless.store.files.Files`."""
        after = ""
        while page := asked(partial(self._port.list_objects, folder, after)):
            yield from page
            after = page[-1].key

    def location(self, path: str) -> str:
        """See `leaderless.store.files.Files`."""
        return f"{self._port.url}/{path}"


def _found_in(body: Body) -> Found:
    return Found(body["value"].encode(TEXT), body["etag"], body["modified"])


def at_once(bucket: Bucket, work: Callable[[Store], Awaitable[T]], now_s: float) -> T:
    """What a process does to which nothing else happens: its requests are answered at once."""

    def say(body: Body) -> None:
        port.answered({**bucket.carried_out("operator", body), "in_reply_to": body["msg_id"]})

    port = Port(say)

    async def main(loop: VirtualEventLoop) -> T:
        loop.now_s = now_s
        return await work(port)

    return run_virtual(main)
