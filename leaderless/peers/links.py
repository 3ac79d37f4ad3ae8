"""A connection between two programs: lines, and on a network a MAC before each.

The lines of each direction are counted, so that none is said twice, left out or taken for another.
"""

import errno
import hmac
import os
import socket
import ssl
import weakref
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from math import inf
from typing import Any

import anyio
import anyio.abc
import orjson

from leaderless.peers.lines import Stranger
from leaderless.peers.reach import Reach

PROTOCOL = 1
LINE_BYTES = 1 << 23  # more than a batch, or the entries of an answer, with escapes
GREETING_BYTES = 1 << 12
UNSENT_BYTES = 1 << 25  # a peer that takes no more is let go of
IDLE_S = 60.0  # at least, and twice as long at most
CHUNK = 1 << 18
LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
Said = dict[str, Any]
_OPEN: weakref.WeakSet[socket.socket] = weakref.WeakSet()


class Link:
    """A connection. `scope`: ends `run` when it is cancelled; `calls`: those that wait for an answer by it.

    It waits for the socket, and moves bytes at once: a stream of the event loop could not be left while bytes
    come.
    """

    def __init__(self) -> None:
        self.socket: socket.socket  # once it is connected
        self.scope: anyio.CancelScope = anyio.CancelScope()
        self.calls: set[int] = set()
        self.early: list[bytes] | None = []  # what was to be sent before the greeting was answered
        self._came = bytearray()
        self._unsent = bytearray()
        self._tasks: anyio.abc.TaskGroup | None = None  # while it runs
        self._seal: Callable[[bytes], bytes] = lambda line: line
        self._unseal = self._seal

    async def connect(self, dest: str, reach: Reach) -> None:
        """Connect to a program. Raises `OSError`, `Stranger`."""
        made, at = reach.way_to(dest)
        alone(made)
        try:
            error = made.connect_ex(at)  # on a machine at once, or not at all
            if error == errno.EINPROGRESS:
                await anyio.wait_writable(made)
                error = made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error, os.strerror(error))
            self.socket = alone(reach.prepared(made, asks=True))
        except BaseException:
            made.close()
            raise

    def seal(self, secret: bytes, asked: Said, answered: Said, *, asks: bool) -> None:
        """Let each line carry a MAC from now on, by a key that no other link has: both said a nonce."""
        says, hears = (
            hmac.digest(secret, orjson.dumps([end, asked, answered]), "sha256")
            for end in (asks, not asks)
        )
        said, heard = count(), count()

        def mac(key: bytes, number: int, line: bytes) -> bytes:
            return hmac.digest(key, b"%d %b" % (number, line), "sha256").hex().encode()

        def unseal(line: bytes) -> bytes:
            told, _, rest = line.partition(b" ")
            if not hmac.compare_digest(told, mac(hears, next(heard), rest)):
                raise Stranger("a line is changed, or not the next one")
            return rest

        self._seal = lambda line: b"%b %b" % (mac(says, next(said), line[:-1]), line)
        self._unseal = unseal

    def say(self, said: Said) -> Said:
        """Send a line of the greeting, and return it whole."""
        said = {"protocol": PROTOCOL} | said
        self._send(orjson.dumps(said, option=orjson.OPT_APPEND_NEWLINE))
        return said

    async def said(self) -> Said:
        """The other's line of the greeting. Nothing follows it before it is answered."""
        lines = await self._lines(GREETING_BYTES)
        said: Any = orjson.loads(lines[0])
        greets = isinstance(said, dict) and said.get("protocol") == PROTOCOL
        if not greets or len(lines) > 1 or self._came:
            raise Stranger(f"it does not greet: {lines[0][:80]!r}")
        return Said(said)

    async def shake_hands(self) -> None:
        """Begin TLS, where it is."""
        while isinstance(self.socket, ssl.SSLSocket):
            try:
                self.socket.do_handshake()
                return
            except ssl.SSLWantReadError:
                await anyio.wait_readable(self.socket)

    def send(self, line: bytes) -> None:
        """Send a line now, as far as the socket takes it, and the rest when it does; or after the greeting."""
        if self.early is None:
            self._send(line)
        else:
            self.early.append(line)

    def _send(self, line: bytes) -> None:
        line = self._seal(line)
        if not self._unsent:
            with suppress(OSError):  # full, or closed, which `run` finds out
                line = line[self.socket.send(line[:CHUNK]) :]
        if line:
            if self._tasks and not self._unsent:
                self._tasks.start_soon(self._send_rest)
            self._unsent += line
        if len(self._unsent) > UNSENT_BYTES:
            self.scope.cancel()

    async def run(self, hear: Callable[[bytes], object]) -> None:
        """Send what is to be sent, and let each line that comes be heard, until the link ends or is idle."""
        with self.scope:
            async with anyio.create_task_group() as self._tasks:
                if self._unsent:  # of the greeting
                    self._tasks.start_soon(self._send_rest)
                early, self.early = self.early or [], None
                for line in early:
                    self._send(line)
                while True:
                    if not IDLE_S < self.scope.deadline - (now := anyio.current_time()) < inf:
                        self.scope.deadline = now + 2 * IDLE_S
                    for line in await self._lines(LINE_BYTES):
                        hear(line)

    async def _send_rest(self) -> None:
        while self._unsent:
            await anyio.wait_writable(self.socket)
            with suppress(*LATER):
                del self._unsent[: self.socket.send(self._unsent[:CHUNK])]

    async def _lines(self, bytes_max: int) -> list[bytes]:
        """Whole lines that came, at least one."""
        while True:
            if not (isinstance(self.socket, ssl.SSLSocket) and self.socket.pending()):
                await anyio.wait_readable(self.socket)
            try:
                chunk = self.socket.recv(CHUNK)
            except LATER:
                continue
            if not chunk:
                raise ConnectionResetError("the other end has closed it")
            self._came += chunk
            if b"\n" in chunk:
                *lines, rest = self._came.split(b"\n")
                self._came = rest
                return [self._unseal(bytes(line)) for line in lines]
            if len(self._came) > bytes_max:
                raise Stranger(f"its line has more than {bytes_max} bytes")


def alone(made: socket.socket) -> socket.socket:
    """A socket that waits for nothing, and that a forked process does not keep."""
    made.setblocking(False)
    _OPEN.add(made)
    return made


def _close_all() -> None:
    """In a process that was forked: its parent goes on with these sockets, and alone."""
    for each in [*_OPEN]:
        each.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all)
