"""Peers by sockets: of one machine, or at ports of several (`leaderless.peers.reach`).

    who asks    {"protocol": 1, "from": NAME, "to": NAME, "object": KEY, "token": TOKEN}
    who takes   {"protocol": 1, "from": NAME, "to": NAME}
    both        {"protocol": 1}
    who asks    {"src", "dest", "body": {"type": "hand_over", ...}}, and more
    who takes   {"src", "dest", "body": {"type": "hand_over_ok", ...}}, or "error"

Who takes asks the log whether who asks may write it (`leaderless.peers.passes`). At a port each of both must
prove it, and no line may be another's: both say their `object` and a `nonce` in place of the token, and a MAC
stands before each line after the first two.

A link is made when a batch goes there, and closed when it is idle. What was to be said before the greeting was
answered has not been sent (`NotSent`). A program of a machine listens from its second append on, or when it
first lost a race: one that appends once asks the machine for nothing.
"""

import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf, nan

import anyio.abc

from leaderless.core.messages import NotSent, PeerAnswer
from leaderless.errors import Unfit
from leaderless.hosting.surroundings import REAL, Surroundings
from leaderless.peers.lines import Peers, Stranger
from leaderless.peers.links import Link
from leaderless.peers.passes import Pass
from leaderless.peers.reach import Endpoint, Tls, alone, way_to
from leaderless.store.port import Store

log: logging.Logger = logging.getLogger("leaderless")

LINKS_MAX = 256  # that others make; those that are not greeted yet count
GREETING_S = 4.0  # to connect and to greet
FULL_S = 0.5  # a pause while the process has no file descriptor left
ALONE_S = 10.0  # a process that could ask none of its peers for so long says so


class SocketPeers(Peers):
    """The peers of the program `writer` that it reaches so; `store`: that of the log."""

    def __init__(
        self, store: Store, writer: str, reach: Endpoint, around: Surroundings = REAL
    ) -> None:
        self._reach = reach
        super().__init__(f"{writer}@{reach.address}")
        self._pass = Pass(store, writer, around.now, sealed=reach.sealed)
        self._tasks: anyio.abc.TaskGroup | None = None
        self._links: dict[tuple[str, bool], Link] = {}  # by peer, and whether this end asks
        self._room = anyio.Semaphore(LINKS_MAX)
        self._appends_again = anyio.Event()
        self._alone_since = inf  # since when no peer could be asked; nan: it has told so

    def __contains__(self, name: object) -> bool:
        """See `Peers`."""
        return name in self._reach

    async def run(self) -> None:
        """See `Peers`."""
        try:
            async with anyio.create_task_group() as self._tasks:
                if not self._reach.sealed:
                    await self._appends_again.wait()
                try:
                    with self._reach.listening(self.node) as listening:
                        await self._accept(listening, self._tasks)
                except OSError as error:
                    log.info("no process can hand over to this one: %s", error)
                    await anyio.sleep_forever()  # it asks others yet
        finally:
            self._tasks = None

    async def _accept(self, listening: socket.socket, tasks: anyio.abc.TaskGroup) -> None:
        while True:
            await anyio.wait_readable(listening)
            await self._room.acquire()
            try:
                tasks.start_soon(self._hold, Link(), "", alone(listening.accept()[0]))
            except OSError:
                self._room.release()
                await anyio.sleep(FULL_S)

    def appends(self) -> None:
        """See `Peers`."""
        self.counts["appends"] += 1
        if self.counts["appends"] > 1:
            self._appends_again.set()

    def ask(self, dest: str, call: int, line: bytes) -> None:
        """See `Peers`."""
        if self._tasks and (dest, True) not in self._links:
            self._appends_again.set()
            made = self._links[dest, True] = Link()
            self._tasks.start_soon(self._hold, made, dest)
        if link := self._links.get((dest, True)):
            link.calls.add(call)
            link.send(line)

    def answer(self, dest: str, line: bytes) -> None:
        """See `Peers`."""
        if link := self._links.get((dest, False)):
            link.send(line)

    async def _hold(self, link: Link, dest: str, accepted: socket.socket | None = None) -> None:
        """Greet a peer, and hear it until the link ends; `dest`: whom this end asks, "": it is asked."""
        peer, asks = dest, accepted is None
        try:
            family, at = way_to(dest)
            with (
                accepted or alone(socket.socket(family)) as made,
                anyio.fail_after(GREETING_S) as link.scope,
            ):
                if asks:
                    with suppress(BlockingIOError):
                        made.connect(at)
                    await anyio.wait_writable(made)  # or it failed, which the first line finds out
                with self._reach.prepared(made, asks=asks) as link.socket:
                    peer = await self._greet(link, dest)
                    self._links[peer, asks] = link
                    self._alone_since = inf
                    await link.run(partial(self.hear, peer, calls=link.calls if asks else None))
        except Exception as error:  # of the peer, its socket or the store: it ends the link alone
            log.info("the link of %s has ended, or was none: %r", peer or "a stranger", error)
            if asks and not link.greeted:
                self._alone_since = min(self._alone_since, now := anyio.current_time())
                if now - self._alone_since >= ALONE_S:
                    self._alone_since = nan
                    log.warning("no peer could be asked, so this process commits itself: %r", error)
        finally:
            if not asks:
                self._room.release()
            if self._links.get((peer, asks)) is link:
                del self._links[peer, asks]
        for call in link.calls:
            self.take(PeerAnswer(call, None if link.greeted else NotSent()))

    async def _greet(self, link: Link, dest: str) -> str:
        """Return the name of the peer, when both ends have proved who they are."""
        said = await self._hello(link, dest) if dest else {}
        heard = await link.said()
        peer = str(heard.get("from"))
        if heard.get("to") != self.node or peer not in ([dest] if dest else self):
            raise Stranger(f"{peer!r:.80} looks for {heard.get('to')!r:.80}")
        # Who is asked on one machine proves nothing.
        secret = (
            await self._pass.secret_with(peer, heard) if self._reach.sealed or not dest else b""
        )
        said = said or await self._hello(link, peer, shows=self._reach.sealed)
        if secret:
            link.seal(secret, said, heard)
        await link.say({})
        await link.said()
        return peer

    async def _hello(self, link: Link, to: str, *, shows: bool = True) -> dict[str, object]:
        return await link.say(
            {"from": self.node, "to": to} | (await self._pass.shown() if shows else {})
        )


async def peers_of(
    store: Store, where: str | None, tls: Tls | None = None
) -> Callable[[str], Peers]:
    """What makes the peers of a program by its writer, as the arguments `peers` and `peers_tls` say.

    Raises `Unfit`, see `leaderless.open_log`.
    """
    if tls and where in (None, "machine"):
        raise Unfit(f"peers_tls is for peers at HOST or HOST:PORT, got peers={where!r}")
    reach = await Endpoint.at(where, tls) if where is not None else None
    return partial(SocketPeers, store, reach=reach) if reach and reach.address else Peers
