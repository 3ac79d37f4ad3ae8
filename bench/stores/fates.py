"""What becomes of a node's request to a real store: on the way there, at the store, on the way back.

The ways have the latency of the network and its link faults (`loss`, `slow`), as those to `lin-kv` have.
Partitions leave services reachable there, and so they do here. At the store the fault `store` acts, in one of
these modes:

    late        it takes 10 to 300 ms, before or after the request is applied
    abandoned   it takes 1.2 to 3 s: longer than most clients wait
    lost        the request is applied, and then the connection is reset without an answer
    reset       the connection is reset, and nothing was applied
    throttled   the answer is that the store is busy (503), and nothing was applied
    dripping    the answer comes in small pieces, for 0.3 to 3 s
    damaged     it is applied, and its answer makes no sense (`bench.stores.fates`)
    refused     every connection of the nodes is reset, and so is each that they open

Applied means: the store got the request and answered it. What the store did not get never happens.

Damaged answers look whole by their length, as if a proxy or a cable had changed them:

    half       the first half of the body
    empty      no body
    garbage    as many bytes that nobody wrote
    other      the body of an object of another kind, where one was read before; else `half`

An answer without a body loses its ETag instead. Only answers that say "done" are damaged (200 and 206). An
object of the same kind, such as another segment, is left out of `other`: its body would fit as well.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Generic, NamedTuple, Protocol, TypeVar

import h11

from bench.nemesis.requests import LOST, MODES, SHARES, WAITS_NS, StoreFault

_DONE = (200, 206)
_NUMBERED = re.compile(r"[^/]*\d[^/]*")  # the part of a key that numbers objects of one kind


class Damage(Enum):
    """What is wrong with an answer."""

    HALF = "half"
    EMPTY = "empty"
    GARBAGE = "garbage"
    OTHER = "other"


Head = TypeVar("Head", h11.Request, h11.Response)


class Whole(NamedTuple, Generic[Head]):
    """A request or an answer with its body."""

    head: Head
    body: bytes


Answer = Whole[h11.Response]


def busy(content_type: str, body: bytes) -> Answer:
    """How a server says that it is too busy."""
    headers = [("content-type", content_type), ("content-length", str(len(body)))]
    return Whole(h11.Response(status_code=503, headers=headers, reason=b"Slow Down"), body)


class Bodies:
    """The newest body of each kind of objects that were read."""

    def __init__(self) -> None:
        self._of_kind: dict[str, bytes] = {}

    def note(self, kind: str, target: str, answer: Answer) -> None:
        """Take the answer to a request of this kind (see `bench.stores.proxy.kind_of`)."""
        if kind == "GET" and answer.head.status_code == 200:
            self._of_kind[_NUMBERED.sub("*", target)] = answer.body

    def other_than(self, kind: str, target: str) -> bytes | None:
        """The body of an object of another kind; None where the answer would not tell what it is of."""
        if kind not in ("GET", "LIST"):
            return None
        own = _NUMBERED.sub("*", target)
        return next((body for name, body in self._of_kind.items() if name != own), None)


def damaged(answer: Answer, damage: Damage, other: bytes | None) -> Answer:
    """The answer as the client gets it."""
    head, body = answer
    if head.status_code not in _DONE:
        return answer
    if not body:
        return Whole(_with(head, ((n, v) for n, v in head.headers if n != b"etag")), body)
    if damage is Damage.OTHER and other is not None:
        body = other
    elif damage is Damage.EMPTY:
        body = b""
    elif damage is Damage.GARBAGE:
        body = b"\xff" * len(body)
    else:
        body = body[: len(body) // 2]
    size = str(len(body)).encode()
    headers = ((n, size if n == b"content-length" else v) for n, v in head.headers)
    return Whole(_with(head, headers), body)


def _with(head: h11.Response, headers: Iterable[tuple[bytes, bytes]]) -> h11.Response:
    return h11.Response(status_code=head.status_code, headers=[*headers], reason=head.reason)


# ---------------------------------------------------------------- the fate of a request


LINK = "store"  # the name of the store as an end of a link
RESET, THROTTLED, DRIPPING, DAMAGED = "reset", "throttled", "dripping", "damaged"
REFUSED, LOSS = "refused", "loss"
# mode -> the shares of requests that it may affect
MODES_OF_PROXY = dict.fromkeys((*MODES, RESET, THROTTLED, DRIPPING, DAMAGED), SHARES) | {
    REFUSED: (1.0,)
}
_APPLIED = (LOST, DRIPPING, DAMAGED)  # the store has done what it was asked for
_DRIPPING_NS = (300_000_000, 3_000_000_000)


class Fate(NamedTuple):
    """What becomes of a request: it waits, is `applied` or not, waits again, and ends as its `mode` says.

    `mode`: the fault that it meets, None for none; `LOSS` on the way there or back: no answer comes, and the
    connection stays. `drips_ns`: for how long its answer drips. `damage`: what is wrong with its answer.
    """

    there_ns: int = 0
    applied: bool = True
    back_ns: int = 0
    drips_ns: int = 0
    damage: Damage = Damage.HALF
    mode: str | None = None


class Ways(Protocol):
    """Links beside the messages of a network; see `bench.net.Network.way_ns`."""

    def way_ns(self, src: str, dest: str, *, spared: bool = False) -> int | None: ...


@dataclass
class Fates:
    """Deals fates under the faults in force; `in_force` is None while the store is well."""

    network: Ways
    random: Random
    in_force: StoreFault | None = None

    def of(self, node: str, *, spared: bool = False) -> Fate:
        """The fate of the next request of a node; a `spared` one meets no fault."""
        there_ns = self.network.way_ns(node, LINK, spared=spared)
        back_ns = self.network.way_ns(LINK, node, spared=spared)
        if there_ns is None:
            return Fate(applied=False, mode=LOSS)
        if back_ns is None:
            return Fate(there_ns, mode=LOSS)
        fault = self.in_force
        if spared or not fault or not fault.strikes(node, self.random):
            return Fate(there_ns, back_ns=back_ns)
        mode = fault.mode
        if mode in WAITS_NS:
            before_ns, after_ns = fault.waits_ns(self.random)
            return Fate(there_ns + before_ns, back_ns=back_ns + after_ns, mode=mode)
        fate = Fate(there_ns, mode in _APPLIED, back_ns, mode=mode)
        if mode == DRIPPING:
            return fate._replace(drips_ns=self.random.randint(*_DRIPPING_NS))
        return fate._replace(damage=self.random.choice([*Damage])) if mode == DAMAGED else fate
