"""What peers say to each other: the lines of nodes (`hand_over`, `hand_over_ok`, `error`), without I/O.

A program's name is `WRITER@ADDRESS`. Every head that it commits has it as `by`, so whoever lost a conflict has
read whom to ask, and where. No two lives of a program have one name, so a line never reaches another life.

What fails here costs time, never an append: the policy takes a peer without an answer for late, and its batch
goes another way, under the same name.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import anyio

from leaderless.core.messages import (
    Effect,
    Event,
    Failure,
    HandOver,
    PeerAnswer,
    PeerCall,
    Reason,
    Reply,
    Request,
)
from leaderless.hosting.host import log_notes
from leaderless.wire import bodies
from leaderless.wire.codec import decode, encode

UNDER_WAY_BYTES = 1 << 25  # of peers' batches; a further one is refused, and goes another way
LEAVES_S = 2.0  # a program that ends first commits what peers have brought, for so long at most
BUSY = Failure(
    Reason.BUSY, f"batches of peers of {UNDER_WAY_BYTES} bytes are under way here already"
)


class Stranger(Exception):
    """Whoever is at the other end is no peer; the text says why."""


def writer_of(name: str) -> str:
    """The writer that a program's name begins with."""
    return name.partition("@")[0]


class Peers:
    """The peers of the program `node`: whom it asks, and who asks it. Those of this class are none.

    `take`: takes what peers say. `counts`: its `appends`; hand-overs that it `asked` for, those of them that
    were `answered`, those that it `took`, and those that it `refused`.
    """

    def __init__(self, node: str) -> None:
        self.node = node
        self.counts: Counter[str] = Counter()
        self.take: Callable[[Event], object] = lambda _: None
        self._sizes: dict[Request, int] = {}  # of peers' batches under way
        self._bytes_max = UNDER_WAY_BYTES
        self._left = anyio.Event()  # it takes no more, and all is answered

    def __contains__(self, name: object) -> bool:
        """Whether a program of this name can be asked, as far as its name says."""
        return False

    async def run(self) -> None:
        """Listen, until it is cancelled."""

    async def leave(self) -> None:
        """Refuse further batches, and return when those under way are answered, or after `LEAVES_S`.

        Otherwise each peer would commit its own, and all at once.
        """
        self._bytes_max = 0
        if self._sizes:
            with anyio.move_on_after(LEAVES_S):
                await self._left.wait()

    def ask(self, dest: str, call: int, line: bytes) -> None:
        """Bring a line to a peer, or say to `take` that the call has no answer."""

    def answer(self, dest: str, line: bytes) -> None:
        """Bring a line to a peer that has asked, if it is still there."""

    def appends(self) -> None:
        """The program appends one more time."""

    def carry_out(self, effects: list[Effect]) -> None:
        """Take what a host leaves: questions to peers, answers to them, and notes."""
        for effect in effects:
            if isinstance(effect, PeerCall):
                self.counts["asked"] += 1
                self.ask(
                    effect.dest,
                    effect.call,
                    encode(self.node, effect.dest, bodies.question_of(effect)),
                )
            elif isinstance(effect, Reply):
                self._reply(effect)
            else:
                log_notes([effect])

    def _reply(self, reply: Reply) -> None:
        (dest, msg_id), answer = reply
        self._sizes.pop(reply.request, None)
        self.answer(dest, encode(self.node, dest, bodies.body_of(answer) | {"in_reply_to": msg_id}))
        if not (self._sizes or self._bytes_max):
            self._left.set()

    def hear(self, peer: str, line: bytes, calls: set[int] | None = None) -> None:
        """Take a line of a peer. Raises `Stranger`, or what decodes it, for one that no peer says.

        `calls`: where this program asks, those that wait for an answer; None where it is asked.
        """
        _, _, body = decode(line)
        number: Any = body.get("msg_id" if calls is None else "in_reply_to")
        if calls is not None:
            if number in calls:
                calls.remove(number)
                self.counts["answered"] += 1
                self.take(PeerAnswer(number, bodies.answer_of(body)))
            return
        event = bodies.event_of(Request(peer, number), body, len(line))
        if (
            not isinstance(event, HandOver)
            or type(number) is not int
            or not event.batch.writer.startswith(f"{writer_of(peer)}/")
        ):
            raise Stranger(f"it hands over no batch of its own: {line[:80]!r}")
        if sum(self._sizes.values()) + len(line) > self._bytes_max:
            self.counts["refused"] += 1
            self._reply(Reply(event.request, BUSY))
            return
        self.counts["took"] += 1
        self._sizes[event.request] = len(line)
        self.take(event)
