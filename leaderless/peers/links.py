"""A connection between two programs: lines, and on a network a MAC before each.

Each MAC is of all lines of its direction so far. So none is said twice, left out or taken for another.
"""

import hmac
import socket
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import orjson

from leaderless.peers.lines import Stranger

PROTOCOL = 1
LINE_BYTES = 1 << 23  # more than a batch, or the entries of an answer, with escapes
GREETING_BYTES = 1 << 12
UNSENT_BYTES = 1 << 25  # a peer that takes no more is let go of
IDLE_S = 60.0
CHUNK = 1 << 18  # more than a record of TLS, of which no rest may wait where nobody looks
LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Link:
    """A connection. `scope`: in which it runs; `calls`: those that wait for an answer by it.

    `greeted`: both ends have said who they are. What is to be sent before waits for that.

    It waits for the socket, and moves bytes at once: a stream of the event loop could not be left while bytes
    come.
    """

    def __init__(self) -> None:
        self.socket: socket.socket  # once it is connected
        self.scope: anyio.CancelScope = anyio.CancelScope()
        self.calls: set[int] = set()
        self.greeted: bool = False
        self._came = bytearray()
        self._unsent: deque[bytes] = deque()
        self._more = anyio.Event()
        self._says: hmac.HMAC | None = None
        self._hears: hmac.HMAC | None = None

    def seal(self, secret: bytes, said: dict[str, Any], heard: dict[str, Any]) -> None:
        """Let each line carry a MAC from now on, by a key that no other link has: both said a nonce."""
        self._says, self._hears = (
            hmac.new(secret, orjson.dumps(way), "sha256") for way in ([said, heard], [heard, said])
        )

    async def say(self, said: dict[str, Any]) -> dict[str, Any]:
        """Send a line of the greeting, and return it whole."""
        said = {"protocol": PROTOCOL} | said
        await self._send(orjson.dumps(said, option=orjson.OPT_APPEND_NEWLINE))
        return said

    async def said(self) -> dict[str, Any]:
        """The other's line of the greeting. Raises `Stranger` for another line."""
        line = await self._line(GREETING_BYTES)
        said: Any = orjson.loads(line)
        if not isinstance(said, dict) or said.get("protocol") != PROTOCOL:
            raise Stranger(f"it does not greet: {line[:80]!r}")
        return dict(said)

    def send(self, line: bytes) -> None:
        """Send a line soon, while or when the link runs."""
        self._unsent.append(line)
        if sum(map(len, self._unsent)) > UNSENT_BYTES:
            self.scope.cancel()
        self._more.set()

    async def run(self, hear: Callable[[bytes], object]) -> None:
        """Send what is to be sent, and let each line that comes be heard, until the link ends or is idle."""
        self.greeted = True
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._send_all)
            while True:
                self.scope.deadline = anyio.current_time() + IDLE_S
                hear(await self._line(LINE_BYTES))

    async def _send_all(self) -> None:
        while True:
            while self._unsent:
                await self._send(self._unsent.popleft())
            self._more = anyio.Event()
            await self._more.wait()

    async def _send(self, line: bytes) -> None:
        if self._says:
            line = b"%b %b" % (_mac(self._says, line), line)
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[self.socket.send(rest[:CHUNK]) :]
            except ssl.SSLWantReadError:  # TLS begins
                await anyio.wait_readable(self.socket)
            except LATER:
                await anyio.wait_writable(self.socket)

    async def _line(self, bytes_max: int) -> bytes:
        """The next line that comes."""
        while (end := self._came.find(b"\n")) < 0:
            if len(self._came) > bytes_max:
                raise Stranger(f"its line has more than {bytes_max} bytes")
            await anyio.wait_readable(self.socket)
            with suppress(*LATER):
                if not (chunk := self.socket.recv(CHUNK)):
                    raise ConnectionResetError("the other end has closed it")
                self._came += chunk
        line = bytes(self._came[:end])
        del self._came[: end + 1]
        if self._hears:
            told, _, line = line.partition(b" ")
            if not hmac.compare_digest(told, _mac(self._hears, line + b"\n")):
                raise Stranger("a line is changed, or not the next one")
        return line


def _mac(lines: hmac.HMAC, line: bytes) -> bytes:
    """The MAC of a line and of all before it."""
    lines.update(line)
    return lines.hexdigest().encode()
