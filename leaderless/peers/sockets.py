"""Peers by sockets: of one machine, or at ports of several (`leaderless.peers.reach`).

    who asks    {"protocol": 1, "from": NAME, "to": NAME, "object": KEY, "token": TOKEN}
    who takes   {"protocol": 1, "from": NAME}
    who asks    {"src", "dest", "body": {"type": "hand_over", ...}}, and more
    who takes   {"src", "dest", "body": {"type": "hand_over_ok", ...}}, or "error"

Who takes asks the log whether who asks may write it (`leaderless.peers.passes`). At a port each of both must
prove it, and no line may be another's. So a MAC stands before each line after the first two:

    who asks    {"protocol": 1, "from": NAME, "to": NAME, "object": KEY, "nonce": HEX}
    who takes   {"protocol": 1, "from": NAME, "object": KEY, "nonce": HEX}
    who asks    MAC {"protocol": 1}
    who takes   MAC {"protocol": 1, "from": NAME}, and so on

A link is made when a batch goes there, and closed when it is idle. What was to be said before the greeting was
answered has not been sent (`NotSent`). A program of a machine listens from its second append on, or when it
first lost a race: one that appends once asks the machine for nothing.
"""

import logging
import socket
from collections.abc import Callable
from functools import partial
from math import inf
from secrets import token_hex

import anyio
import anyio.abc

from leaderless.core.messages import NotSent, PeerAnswer
from leaderless.errors import Unfit
from leaderless.hosting.surroundings import REAL, Surroundings
from leaderless.peers.lines import Peers, Stranger
from leaderless.peers.links import Link, alone
from leaderless.peers.passes import Pass, require_writer
from leaderless.peers.reach import Port, Reach, ThisMachine, Tls
from leaderless.store.port import Store

log: logging.Logger = logging.getLogger("leaderless")

LINKS_MAX = 256  # to this process; those that are not greeted yet count
GREETING_S = 2.0
FULL_S = 0.5  # a pause while the process has no file descriptor left
ALONE_S = 10.0  # a process that could ask none of its peers for so long says so


class SocketPeers(Peers):
    """The peers of the program `writer` that it reaches so; `store`: that of the log."""

    def __init__(
        self, store: Store, writer: str, reach: Reach, around: Surroundings = REAL
    ) -> None:
        self._reach = reach
        super().__init__("@".join(filter(None, [writer, self._reach.address])))
        self._store = store
        self._pass = Pass(store, writer, around.now, sealed=reach.sealed)
        self._tasks: anyio.abc.TaskGroup | None = None
        self._asked: dict[str, Link] = {}
        self._asking: dict[str, Link] = {}
        self._links = 0  # that others have made
        self._appends_again = anyio.Event()
        self._tells_at = inf  # no peer could be asked since the first one; 0: it has told so

    def __contains__(self, name: object) -> bool:
        """See `Peers`."""
        return name in self._reach

    async def run(self) -> None:
        """See `Peers`."""
        if self.node not in self:
            return
        try:
            async with anyio.create_task_group() as self._tasks:
                if not self._reach.sealed:
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
        if not self._tasks:
            return
        link = self._asked.get(dest)
        if link is None:
            self._appends_again.set()
            link = self._asked[dest] = Link()
            self._tasks.start_soon(self._talk, dest, link)
        link.calls.add(call)
        link.send(line)

    async def _talk(self, dest: str, link: Link) -> None:
        """Greet a peer, and take its answers, until the link ends."""
        try:
            with anyio.fail_after(GREETING_S):
                await self._pass.make()
                await link.connect(dest, self._reach)
            with link.socket:
                with anyio.fail_after(GREETING_S):
                    await self._greet(link, dest)
                self._tells_at = self._tells_at and inf
                await link.run(partial(self.hear, dest, calls=link.calls))
        except Exception as error:  # of the peer, its socket or the store: it ends the link alone
            log.info("%s was not asked, or is not asked any more: %r", dest, error)
            if link.early is not None:
                self._tell_alone(error)
        finally:
            del self._asked[dest]
        for call in link.calls:
            self.take(PeerAnswer(call, NotSent() if link.early is not None else None))

    def _tell_alone(self, error: Exception) -> None:
        """Say once that no peer could be asked for `ALONE_S`."""
        now = anyio.current_time()
        self._tells_at = min(self._tells_at, now + ALONE_S)
        if now >= self._tells_at > 0.0:
            self._tells_at = 0.0
            log.warning("no peer could be asked, so this process commits itself: %r", error)

    async def _greet(self, link: Link, dest: str) -> None:
        await link.shake_hands()
        sealed = self._reach.sealed
        proof = {"nonce": token_hex(16)} if sealed else {"token": self._pass.token}
        hello = link.say({"from": self.node, "to": dest, "object": self._pass.key} | proof)
        try:
            said = await link.said()
            if sealed:
                secret = await self._pass.secret_with(dest, str(said.get("object")))
                link.seal(secret, hello, said, asks=True)
                link.say({})
                said = await link.said()
        except (OSError, Stranger):
            self._pass.missed()
            raise
        if said.get("from") != dest:
            raise Stranger(f"it is {said.get('from')!r:.80}")

    # ------------------------------------------------------------ others ask

    async def _listen(self, tasks: anyio.abc.TaskGroup) -> None:
        with alone(self._reach.listening(self.node)) as listening:
            while True:
                await anyio.wait_readable(listening)
                try:
                    accepted, _ = listening.accept()
                except OSError:
                    await anyio.sleep(FULL_S)
                    continue
                if self._links < LINKS_MAX:
                    self._links += 1
                    tasks.start_soon(self._serve, accepted)
                else:
                    accepted.close()

    async def _serve(self, accepted: socket.socket) -> None:
        """Let a peer prove who it is, and take its batches, until the link ends."""
        peer, link = "", Link()
        try:
            with accepted, self._reach.prepared(accepted, asks=False) as link.socket:
                alone(link.socket)
                with anyio.fail_after(GREETING_S):
                    peer = await self._greeted(link)
                if before := self._asking.get(peer):
                    before.scope.cancel()
                self._asking[peer] = link
                link.say({"from": self.node})
                await link.run(partial(self.hear, peer))
        except Exception as error:  # see `_talk`
            log.info("a link of %s has ended: %r", peer or "a stranger", error)
        finally:
            self._links -= 1
            if self._asking.get(peer) is link:
                del self._asking[peer]
                self.left(peer)

    async def _greeted(self, link: Link) -> str:
        """The name of a peer that may hand over."""
        await link.shake_hands()
        said = await link.said()
        peer = str(said.get("from"))
        if said.get("to") != self.node or peer not in self:
            raise Stranger(f"{peer!r:.80} looks for {said.get('to')!r:.80}")
        if not self._reach.sealed:
            await require_writer(self._store, peer, str(said.get("object")), str(said.get("token")))
            return peer
        await self._pass.make()
        nonce = token_hex(16)
        hello = link.say({"from": self.node, "object": self._pass.key, "nonce": nonce})
        secret = await self._pass.secret_with(peer, str(said.get("object")))
        link.seal(secret, said, hello, asks=False)
        try:
            await link.said()
        except OSError:
            self._pass.missed()
            raise
        return peer

    def answer(self, dest: str, line: bytes) -> None:
        """See `Peers`."""
        if link := self._asking.get(dest):
            link.send(line)


async def peers_of(
    store: Store, where: str | None, tls: Tls | None = None
) -> Callable[[str], SocketPeers] | None:
    """What makes the peers of a program by its writer, as the arguments `peers` and `peers_tls` say.

    Raises `Unfit`, see `leaderless.open_log`.
    """
    if tls and where in (None, "machine"):
        raise Unfit(f"peers_tls is for peers at HOST or HOST:PORT, got peers={where!r}")
    if where is None:
        return None
    reach = ThisMachine() if where == "machine" else await Port.at(where, tls)
    return partial(SocketPeers, store, reach=reach)
