"""The kafka client: turns one operation into RPCs, and keeps the position of each assigned key.

`assign` keeps the position of keys it already had, otherwise takes the committed offset, otherwise
0. `poll` sends its positions, moves each behind the highest offset returned, and when it got
anything commits the highest polled offset of each key. A definite error to the commit makes the
whole poll fail after the positions have moved on, as in the original. A reply that breaks the protocol
(a missing, mistyped or unknown field) raises `MalformedReply`. [facts: Maelstrom's workload/kafka.clj]
"""

from typing import Any, TypeGuard

from runs.history import Op
from runs.keyword import Keyword
from workloads.interface import Body, CrashClient, Rpc, Steps
from workloads.replies import INTEGER, Form, require

SEND, POLL = Keyword("send"), Keyword("poll")


def is_offset(value: Any) -> TypeGuard[int]:
    """Whether this is a place in a log: a whole number of 0 or more."""
    return type(value) is int and value >= 0


def _is_pair(pair: Any) -> bool:
    return type(pair) is list and len(pair) == 2 and is_offset(pair[0])


def _is_array(pairs: Any) -> bool:
    return type(pairs) is list and all(map(_is_pair, pairs))


_OFFSET = Form("an integer of 0 or more", is_offset)
_MESSAGES = Form(
    "an object, key to [[offset, message], ...]",
    lambda found: type(found) is dict and all(map(_is_array, found.values())),
    Form("an array", _is_array, Form("[offset, message] with an offset of 0 or more", _is_pair)),
)
# A committed offset may be negative: some nodes say -1 of a key without one, which the real tool takes for a
# position.
_POSITIONS = Form(
    "an object, key to offset",
    lambda found: type(found) is dict and all(type(each) is int for each in found.values()),
    INTEGER,
)


class KafkaClient:
    """A client of one node."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._positions: dict[str, int] = {}  # assigned key -> offset to poll from

    def invoke(self, op: Op) -> Steps:
        match op.f:
            case "send":
                return self._send(op.value[0])
            case "poll":
                return self._poll()
            case "assign":
                return self._assign(op)
            case "crash":
                return _crash()
        raise ValueError(f"the kafka client knows no operation {op.f!r}")

    def _send(self, micro_op: list[Any]) -> Steps:
        name, key, message = micro_op
        request = {"type": "send", "key": key, "msg": message}
        reply = yield Rpc(self._node, request)
        require(request, reply, offset=_OFFSET)
        return [[name, key, [reply["offset"], message]]]

    def _poll(self) -> Steps:
        request: Body = {"type": "poll", "offsets": self._positions}
        reply = yield Rpc(self._node, request)
        require(request, reply, msgs=_MESSAGES)
        messages = reply["msgs"]
        # A request must not change while it is on its way: so a new dictionary replaces the positions.
        polled: dict[str, int] = {}
        positions = dict(self._positions)
        for key, pairs in messages.items():
            highest = max((pair[0] for pair in pairs), default=-1)
            positions[key] = max(positions.get(key, highest + 1), highest + 1)
            if pairs:
                polled[key] = max(highest, 0)
        self._positions = positions
        if polled:
            request = {"type": "commit_offsets", "offsets": polled}
            require(request, (yield Rpc(self._node, request)))
        return [[POLL, messages]]

    def _assign(self, op: Op) -> Steps:
        keys: list[str] = op.value
        if op.extra.get("seek-to-beginning?"):
            self._positions = dict.fromkeys(keys, 0)
            return op.value
        request: Body = {"type": "list_committed_offsets", "keys": keys}
        reply = yield Rpc(self._node, request)
        require(request, reply, offsets=_POSITIONS)
        known, committed = self._positions, reply["offsets"]
        self._positions = {key: known.get(key, committed.get(key, 0)) for key in keys}
        return op.value


def _crash() -> Steps:
    raise CrashClient
    yield  # makes this a generator, like the others
