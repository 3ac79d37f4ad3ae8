"""What peers say to each other: the lines of nodes (`hand_over`, `hand_over_ok`, `error`), without I/O.

A program's name is `WRITER@ADDRESS`. Every head that it commits has it as `by`, so whoever lost a conflict has
read whom to ask, and where. No two lives of a program have one name, so a line never reaches another life.

What fails here costs time, never an append: the policy takes a peer without an answer for late, and its batch
goes another way, under the same name.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable

import orjson

from leaderless.core.messages import (
    Effect,
    Event,
    Failure,
    HandedOver,
    HandOver,
    PeerAnswer,
    PeerCall,
    Reason,
    Reply,
    Request,
)
from leaderless.hosting.host import log_notes
from leaderless.wire import bodies
from leaderless.wire.codec import Body, decode, encode

UNDER_WAY_BYTES = 1 << 25  # of peers' batches; a further one is refused, and goes another way
BUSY = Failure(
    Reason.BUSY, f"batches of peers of {UNDER_WAY_BYTES} bytes are under way here already"
)


class Stranger(Exception):
    """Whoever is at the other end is no peer; the text says why."""


def writer_of(name: str) -> str:
    """The writer that a program's name begins with."""
    return name.partition("@")[0]


class Peers(ABC):
    """The peers of the program `node`: whom it asks, and who asks it.

    `take`: takes what peers say. `counts`: its `appends`; hand-overs that it `asked` for, those of them that
    were `answered`, those that it `took`, and those that it `refused`.
    """

    def __init__(self, node: str) -> None:
        self.node = node
        self.counts: Counter[str] = Counter()
        self.take: Callable[[Event], object] = lambda _: None
        self._sizes: dict[Request, int] = {}  # of peers' batches under way
        self._shared: tuple[tuple[int, int, int], Body] = (-1, -1, -1), {}

    @abstractmethod
    def __contains__(self, name: object) -> bool:
        """Whether a program of this name can be asked, as far as its name says."""

    @abstractmethod
    async def run(self) -> None:
        """Listen, until it is cancelled."""

    @abstractmethod
    def ask(self, dest: str, call: int, line: bytes) -> None:
        """Bring a line to a peer, or say to `take` that the call has no answer."""

    @abstractmethod
    def answer(self, dest: str, line: bytes) -> None:
        """Bring a line to a peer that has asked, if it is still there."""

    def appends(self) -> None:
        """The program appends one more time."""
        self.counts["appends"] += 1

    def carry_out(self, effects: list[Effect]) -> None:
        """Take what a host leaves: questions to peers, answers to them, and notes."""
        for effect in effects:
            if isinstance(effect, PeerCall):
                self.counts["asked"] += 1
                line = encode(self.node, effect.dest, bodies.question_of(effect))
                self.ask(effect.dest, effect.call, line)
            elif isinstance(effect, Reply):
                self._reply(effect)
            else:
                log_notes([effect])

    def _reply(self, reply: Reply) -> None:
        (dest, msg_id), answer = reply
        self._sizes.pop(reply.request, None)
        body = self._share(answer) if isinstance(answer, HandedOver) else bodies.body_of(answer)
        self.answer(dest, encode(self.node, dest, body | {"in_reply_to": msg_id}))

    def _share(self, answer: HandedOver) -> Body:
        """As `bodies.body_of`; what one commit tells many peers becomes text once."""
        key = answer.slot, answer.head.version, len(answer.entries)
        if self._shared[0] != key:
            body = bodies.body_of(answer)
            texts = {
                name: orjson.Fragment(orjson.dumps(body[name])) for name in ("entries", "head")
            }
            self._shared = key, body | texts
        return self._shared[1] | {"held_s": answer.held_s}

    def hear(self, peer: str, line: bytes, calls: set[int] | None = None) -> None:
        """Take a line of a peer. Raises `Stranger`, or what decodes it, for one that no peer says.

        `calls`: where this program asks, those that wait for an answer; None where it is asked.
        """
        _, _, body = decode(line)
        number = body.get("msg_id" if calls is None else "in_reply_to")
        if type(number) is not int:
            raise Stranger(f"it numbers a line {number!r:.80}")
        if calls is not None:
            if number in calls:
                calls.remove(number)
                self.counts["answered"] += 1
                self.take(PeerAnswer(number, bodies.answer_of(body)))
            return
        event = bodies.event_of(Request(peer, number), body, len(line))
        if not isinstance(event, HandOver):
            raise Stranger(f"it asks for {body['type']!r:.80}")
        if not event.batch.writer.startswith(f"{writer_of(peer)}/"):
            raise Stranger(f"it hands over a batch of {event.batch.writer!r:.80}")
        if sum(self._sizes.values()) + len(line) > UNDER_WAY_BYTES:
            self.counts["refused"] += 1
            self._reply(Reply(event.request, BUSY))
            return
        self.counts["took"] += 1
        self._sizes[event.request] = len(line)
        self.take(event)
