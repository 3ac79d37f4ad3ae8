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
from random import Random
from typing import Generic, NamedTuple, Protocol, TypeVar

import h11

from bench.nemesis.requests import DAMAGED, DRIPPING, MODES, SHARES, Fate, StoreFault

_DONE = (200, 206)
_NUMBERED = re.compile(r"[^/]*\d[^/]*")  # the part of a key that numbers objects of one kind


HALF, EMPTY, GARBAGE, OTHER = DAMAGES = ("half", "empty", "garbage", "other")  # of an answer
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


def damaged(answer: Answer, damage: str, other: bytes | None) -> Answer:
    """The answer as the client gets it."""
    head, body = answer
    if head.status_code not in _DONE:
        return answer
    if not body:
        return Whole(_with(head, ((n, v) for n, v in head.headers if n != b"etag")), body)
    made = {OTHER: other, EMPTY: b"", GARBAGE: b"\xff" * len(body)}.get(damage)
    new = body[: len(body) // 2] if made is None else made
    size = str(len(new)).encode()
    headers = ((n, size if n == b"content-length" else v) for n, v in head.headers)
    return Whole(_with(head, headers), new)


def _with(head: h11.Response, headers: Iterable[tuple[bytes, bytes]]) -> h11.Response:
    return h11.Response(status_code=head.status_code, headers=[*headers], reason=head.reason)


# ---------------------------------------------------------------- the fate of a request


LINK = "store"  # the name of the store as an end of a link
RESET, THROTTLED, REFUSED, LOSS = "reset", "throttled", "refused", "loss"
# mode -> the shares of requests that it may affect
MODES_OF_PROXY = dict.fromkeys((*MODES, RESET, THROTTLED, DRIPPING, DAMAGED), SHARES) | {
    REFUSED: (1.0,)
}
_DRIPPING_NS = (300_000_000, 3_000_000_000)


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
        """The fate of the next request of a node; a `spared` one meets no fault.

        Its mode is `LOSS` when it is lost on the way there or back: no answer comes, and the connection stays.
        """
        there_ns = self.network.way_ns(node, LINK, spared=spared)
        back_ns = self.network.way_ns(LINK, node, spared=spared)
        if there_ns is None:
            return Fate(applied=False, mode=LOSS)
        if back_ns is None:
            return Fate(there_ns, mode=LOSS)
        fate = self.in_force.fate(node, self.random) if self.in_force and not spared else Fate()
        fate = fate._replace(there_ns=there_ns + fate.there_ns, back_ns=back_ns + fate.back_ns)
        if fate.mode == DRIPPING:
            return fate._replace(drips_ns=self.random.randint(*_DRIPPING_NS))
        return fate._replace(damage=self.random.choice(DAMAGES) if fate.mode == DAMAGED else "")
