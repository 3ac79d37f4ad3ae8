"""Peers on one machine: abstract Unix sockets, which no other user gets through.

The address in a program's name is a digest of what two processes must share to reach each other so: the boot
of the machine, the network namespace, the user. Where one differs nobody is asked. On other systems than Linux
there is no address, and every program commits for itself.

    who asks    {"protocol": 1, "from": NAME, "to": NAME, "object": KEY, "token": TOKEN}
    who takes   {"protocol": 1, "from": NAME}
    who asks    {"src", "dest", "body": {"type": "hand_over", ...}}, and more
    who takes   {"src", "dest", "body": {"type": "hand_over_ok", ...}}, or "error"

Both ends compare the user of the other (`SO_PEERCRED`), and who takes asks the log whether who asks may write
it (`leaderless.peers.passes`). A link is made when a batch goes there, and closed when it is idle. What was to
be said before the greeting was answered has not been sent (`NotSent`). A program listens from its second
append on, or when it first lost a race: one that appends once asks the machine for nothing.
"""

import errno
import logging
import os
import socket
import struct
import sys
import weakref
from collections.abc import Callable, Sized
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from math import inf
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import orjson

from leaderless.core.messages import NotSent, PeerAnswer
from leaderless.hosting.surroundings import REAL, Surroundings
from leaderless.peers.lines import Peers, Stranger, writer_of
from leaderless.peers.passes import Pass, require_writer
from leaderless.store.port import Store

log: logging.Logger = logging.getLogger("leaderless")

PROTOCOL = 1
LINKS_MAX = 256  # to this process; those that are not greeted yet count
LINE_BYTES = 1 << 23  # more than a batch, or the entries of an answer, with escapes
GREETING_BYTES = 1 << 12
UNSENT_BYTES = 1 << 25  # a peer that takes no more is let go of
GREETING_S = 2.0
IDLE_S = 60.0
CHUNK = 1 << 18
FULL_S = 1.0  # a pause while the process has no file descriptor left
ALONE_S = 10.0  # a process that could ask none of its peers for so long says so
Said = dict[str, Any]
_OPEN: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def here() -> str:
    """What is the same in all processes that can reach each other; "" where none can."""
    if sys.platform != "linux":
        return ""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        network = Path("/proc/self/ns/net").stat().st_ino
    except OSError:
        return ""
    return blake2b(f"{boot}/{network}/{os.geteuid()}".encode(), digest_size=6).hexdigest()


class SocketPeers(Peers):
    """The peers of the program `writer` on this machine; `store`: that of the log."""

    def __init__(self, store: Store, writer: str, around: Surroundings = REAL) -> None:
        self._here = here()
        super().__init__(f"{writer}@{self._here}" if self._here else writer)
        self._store = store
        self._pass = Pass(store, writer, around.now)
        self._tasks: anyio.abc.TaskGroup | None = None
        self._asked: dict[str, _Asked] = {}
        self._asking: dict[str, _Link] = {}
        self._links = 0  # that others have made
        self._appends_again = anyio.Event()
        self._alone_since = inf  # no peer could be asked
        self._told = False

    def __contains__(self, name: object) -> bool:
        """See `Peers`."""
        return bool(self._here) and str(name).endswith(f"@{self._here}")

    async def run(self) -> None:
        """See `Peers`."""
        if not self._here:
            return
        try:
            async with anyio.create_task_group() as self._tasks:
                await self._appends_again.wait()
                try:
                    await self._listen(self._tasks)
                except OSError as error:
                    log.info("no process can hand over to this one: %s", error)
                    await anyio.sleep_forever()  # it asks others yet
        finally:
            self._tasks = None

    def appends(self) -> None:
        """See `Peers`."""
        super().appends()
        if self.counts["appends"] > 1:
            self._appends_again.set()

    # ------------------------------------------------------------ this process asks

    def ask(self, dest: str, call: int, line: bytes) -> None:
        """See `Peers`."""
        asked = self._asked.get(dest)
        if asked is None:
            if self._tasks is None:
                return
            self._appends_again.set()
            asked = self._asked[dest] = _Asked()
            self._tasks.start_soon(self._talk, dest, asked)
        asked.calls.add(call)
        if asked.link:
            asked.link.send(line)
        else:
            asked.early.append(line)

    async def _talk(self, dest: str, asked: "_Asked") -> None:
        """Greet a peer, and take its answers, until the link ends."""
        try:
            with anyio.fail_after(GREETING_S):
                await self._pass.make()
                link = await _Link.to(dest)
            with link.socket:
                with anyio.fail_after(GREETING_S):
                    await self._greet(link, dest)
                asked.link, self._alone_since = link, inf
                link.send(b"".join(asked.early))
                await link.run(partial(self.hear, dest, answers=asked.answers), asked.calls)
        except Exception as error:  # of the peer, its socket or the store: it ends the link alone
            log.info("%s was not asked, or is not asked any more: %r", dest, error)
            if not asked.link:
                self._tell_alone(error)
        finally:
            del self._asked[dest]
        for call in asked.calls:
            self._take(PeerAnswer(call, None if asked.link else NotSent()))

    def _tell_alone(self, error: Exception) -> None:
        now = anyio.current_time()
        self._alone_since = min(self._alone_since, now)
        if now - self._alone_since >= ALONE_S and not self._told:
            self._told = True
            log.warning("no peer could be asked, so this process commits itself: %r", error)

    async def _greet(self, link: "_Link", dest: str) -> None:
        proof = {"object": self._pass.key, "token": self._pass.token}
        link.say({"protocol": PROTOCOL, "from": self.node, "to": dest} | proof)
        try:
            said = await link.said()
        except (OSError, Stranger):
            self._pass.missed()
            raise
        if said.get("from") != dest:
            raise Stranger(f"it is {said.get('from')!r:.80}")

    # ------------------------------------------------------------ others ask

    async def _listen(self, tasks: anyio.abc.TaskGroup) -> None:
        with _new_socket() as listening:
            listening.bind(_address(self.node))
            listening.listen(LINKS_MAX)
            while True:
                await anyio.wait_readable(listening)
                try:
                    accepted, _ = listening.accept()
                except BlockingIOError:
                    continue
                except OSError as error:
                    if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ECONNABORTED):
                        raise
                    await anyio.sleep(FULL_S)
                    continue
                if self._links >= LINKS_MAX:
                    accepted.close()
                    continue
                self._links += 1
                tasks.start_soon(self._serve, _Link(accepted))

    async def _serve(self, link: "_Link") -> None:
        """Let a peer prove who it is, and take its batches, until the link ends."""
        peer = ""
        try:
            with link.socket:
                with anyio.fail_after(GREETING_S):
                    peer = await self._greeted(link)
                if before := self._asking.get(peer):
                    before.scope.cancel()
                self._asking[peer] = link
                link.say({"protocol": PROTOCOL, "from": self.node})
                await link.run(partial(self.hear, peer))
        except Exception as error:  # see `_talk`
            log.info("a link of %s has ended: %r", peer or "a stranger", error)
        finally:
            self._links -= 1
            if self._asking.get(peer) is link:
                del self._asking[peer]
                self.left(peer)

    async def _greeted(self, link: "_Link") -> str:
        """The name of a peer that may hand over."""
        link.require_own()
        said = await link.said()
        peer, key, token = (str(said.get(name)) for name in ("from", "object", "token"))
        if said.get("to") != self.node or peer not in self:
            raise Stranger(f"{peer!r:.80} looks for {said.get('to')!r:.80}")
        await require_writer(self._store, peer, key, token)
        return peer

    def answer(self, dest: str, line: bytes) -> None:
        """See `Peers`."""
        if link := self._asking.get(dest):
            link.send(line)


class _Asked:
    """A peer that this process asks: the calls without an answer, and what waits until the link is there."""

    def __init__(self) -> None:
        self.link: _Link | None = None
        self.calls: set[int] = set()
        self.early: list[bytes] = []

    def answers(self, call: int) -> bool:
        """Whether the call waited for its answer, which has come."""
        waited = call in self.calls
        self.calls.discard(call)
        return waited


class _Link:
    """A connection. `scope`: ends `run` when it is cancelled.

    It waits for the socket, and moves bytes at once: a stream of the event loop could not be left while bytes
    come.
    """

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        _OPEN.add(connected)
        self.socket = connected
        self.scope = anyio.CancelScope()
        self._came = bytearray()
        self._unsent = bytearray()
        self._woken = anyio.Event()

    @classmethod
    async def to(cls, dest: str) -> "_Link":
        """A link to a program of this user."""
        made = _new_socket()
        try:
            made.connect(_address(dest))  # at once, or not at all
            link = cls(made)
            link.require_own()
        except BaseException:
            made.close()
            raise
        return link

    def require_own(self) -> None:
        """The process at the other end is of this user."""
        told = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        user = struct.unpack("3i", told)[1]
        if user != os.geteuid():
            raise Stranger(f"it is of user {user}")

    def say(self, said: Said) -> None:
        """Send a line of the greeting."""
        self.send(orjson.dumps(said, option=orjson.OPT_APPEND_NEWLINE))

    async def said(self) -> Said:
        """The other's line of the greeting. Nothing follows it before it is answered."""
        lines = await self._lines(GREETING_BYTES)
        said: Any = orjson.loads(lines[0])
        greets = isinstance(said, dict) and said.get("protocol") == PROTOCOL
        if not greets or len(lines) > 1 or self._came:
            raise Stranger(f"it does not greet: {lines[0][:80]!r}")
        return Said(said)

    def send(self, lines: bytes) -> None:
        """Send lines now, as far as the socket takes them, and the rest when it does."""
        if not self._unsent:
            with suppress(OSError):  # full, or closed, which `run` finds out
                lines = lines[self.socket.send(lines) :]
        if lines:
            self._unsent += lines
            self._woken.set()
        if len(self._unsent) > UNSENT_BYTES:
            self.scope.cancel()

    async def run(self, hear: Callable[[bytes], object], calls: Sized = ()) -> None:
        """Send what is to be sent, and let each line that comes be heard, until the link ends.

        `calls`: whose answers are to come. While there are none, a link that is idle ends.
        """
        with self.scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._send_all)
                while True:
                    with anyio.fail_after(None if calls else IDLE_S):
                        lines = await self._lines(LINE_BYTES)
                    for line in lines:
                        hear(line)

    async def _send_all(self) -> None:
        while True:
            await self._woken.wait()
            await anyio.wait_writable(self.socket)
            with suppress(BlockingIOError):
                del self._unsent[: self.socket.send(self._unsent[:CHUNK])]
            if not self._unsent:
                self._woken = anyio.Event()

    async def _lines(self, bytes_max: int) -> list[bytes]:
        """Whole lines that came, at least one."""
        while True:
            await anyio.wait_readable(self.socket)
            try:
                chunk = self.socket.recv(CHUNK)
            except BlockingIOError:
                continue
            if not chunk:
                raise ConnectionResetError("the other end has closed it")
            self._came += chunk
            if b"\n" in chunk:
                *lines, rest = self._came.split(b"\n")
                self._came = rest
                return [bytes(line) for line in lines]
            if len(self._came) > bytes_max:
                raise Stranger(f"its line has more than {bytes_max} bytes")


def _new_socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.setblocking(False)
    _OPEN.add(made)
    return made


def _address(name: str) -> str:
    return f"\0leaderless/{writer_of(name)}"


def _close_all() -> None:
    """In a process that was forked: its parent goes on with these sockets, and alone."""
    for each in [*_OPEN]:
        each.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all)
