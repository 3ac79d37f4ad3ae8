"""Answers of a store that a proxy or a cable has damaged, and that look whole by their length.

    half       the first half of the body
    empty      no body
    garbage    as many bytes that nobody wrote
    other      the body of an object of another kind, where one was read before; else `half`

An answer without a body loses its ETag instead. Only answers that say "done" are damaged (200 and 206). An
object of the same kind, such as another segment, is left out of `other`: its body would fit as well.
"""

import re
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

import h11

_DONE = (200, 206)
_NUMBERED = re.compile(r"[^/]*\d[^/]*")  # the part of a key that numbers objects of one kind


class Damage(Enum):
    """What is wrong with an answer."""

    HALF = "half"
    EMPTY = "empty"
    GARBAGE = "garbage"
    OTHER = "other"


class Whole(NamedTuple):
    """A request or an answer with its body."""

    head: h11.Request | h11.Response
    body: bytes


class Bodies:
    """The newest body of each kind of objects that were read."""

    def __init__(self) -> None:
        self._of_kind: dict[str, bytes] = {}

    def note(self, kind: str, target: str, answer: Whole) -> None:
        """Take the answer to a request of this kind (see `bench.stores.statistics.kind_of`)."""
        if kind == "GET" and _status(answer) == 200:
            self._of_kind[_NUMBERED.sub("*", target)] = answer.body

    def other_than(self, kind: str, target: str) -> bytes | None:
        """The body of an object of another kind; None where the answer would not tell what it is of."""
        if kind not in ("GET", "LIST"):
            return None
        own = _NUMBERED.sub("*", target)
        return next((body for name, body in self._of_kind.items() if name != own), None)


def damaged(answer: Whole, damage: Damage, other: bytes | None) -> Whole:
    """The answer as the client gets it."""
    head, body = answer
    assert isinstance(head, h11.Response)
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


def _status(answer: Whole) -> int:
    assert isinstance(answer.head, h11.Response)
    return answer.head.status_code
