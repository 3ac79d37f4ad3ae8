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
from workloads.interface import Body, CrashClient, MalformedReply, Rpc, Steps

SEND, POLL = Keyword("send"), Keyword("poll")

_ENVELOPE = frozenset(("type", "in_reply_to", "msg_id"))
_EXPECTED = {
    "send_ok": '{"type": "send_ok", "offset": 3}',
    "poll_ok": '{"type": "poll_ok", "msgs": {"k1": [[3, "a message"], [4, "the next"]]}}',
    "commit_offsets_ok": '{"type": "commit_offsets_ok"}',
    "list_committed_offsets_ok": '{"type": "list_committed_offsets_ok", "offsets": {"k1": 3}}',
}


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
        reply = yield self._rpc(request)
        return [[name, key, [send_ok(request, reply), message]]]

    def _poll(self) -> Steps:
        request: Body = {"type": "poll", "offsets": self._positions}
        reply = yield self._rpc(request)
        messages = poll_ok(request, reply)
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
            commit_offsets_ok(request, (yield self._rpc(request)))
        return [[POLL, messages]]

    def _assign(self, op: Op) -> Steps:
        keys: list[str] = op.value
        if op.extra.get("seek-to-beginning?"):
            self._positions = dict.fromkeys(keys, 0)
            return op.value
        request: Body = {"type": "list_committed_offsets", "keys": keys}
        reply = yield self._rpc(request)
        committed = list_committed_offsets_ok(request, reply)
        known = self._positions
        self._positions = {key: known.get(key, committed.get(key, 0)) for key in keys}
        return op.value

    def _rpc(self, body: Body) -> Rpc:
        return Rpc(self._node, body)


def _crash() -> Steps:
    raise CrashClient
    yield  # makes this a generator, like the others


def is_offset(value: Any) -> TypeGuard[int]:
    """Whether this is a place in a log: a whole number of 0 or more."""
    return type(value) is int and value >= 0


def send_ok(request: Body, reply: Body) -> int:
    """The offset of the message."""
    _check_fields("send_ok", "offset", request, reply)
    offset = reply["offset"]
    if not is_offset(offset):
        why = f"`offset` must be an integer of 0 or more, not {offset!r}"
        raise _malformed("send_ok", request, reply, why)
    return offset


def poll_ok(request: Body, reply: Body) -> dict[str, list[list[Any]]]:
    """Key -> [[offset, message], ...]."""
    _check_fields("poll_ok", "msgs", request, reply)
    messages = reply["msgs"]
    if type(messages) is not dict:
        raise _malformed("poll_ok", request, reply, "`msgs` must be an object, key to pairs")
    for key, pairs in messages.items():
        if type(pairs) is not list:
            raise _malformed("poll_ok", request, reply, f"the pairs of key {key!r} are no list")
        for pair in pairs:
            if type(pair) is not list or len(pair) != 2 or not is_offset(pair[0]):
                why = f"key {key!r} has {pair!r:.200} where [offset, message] should be"
                raise _malformed("poll_ok", request, reply, why)
    return messages


def commit_offsets_ok(request: Body, reply: Body) -> None:
    _check_fields("commit_offsets_ok", None, request, reply)


def list_committed_offsets_ok(request: Body, reply: Body) -> dict[str, int]:
    """Key -> committed offset; keys without one are left out.

    It may be negative: some nodes say -1 of a key without one, which the real tool takes for a position.
    """
    _check_fields("list_committed_offsets_ok", "offsets", request, reply)
    offsets = reply["offsets"]
    if type(offsets) is not dict or any(type(each) is not int for each in offsets.values()):
        why = "`offsets` must be an object, key to integer"
        raise _malformed("list_committed_offsets_ok", request, reply, why)
    return offsets


def _check_fields(kind: str, field: str | None, request: Body, reply: Body) -> None:
    if reply.get("type") != kind:
        raise _malformed(kind, request, reply, f"`type` must be {kind}, not {reply.get('type')!r}")
    if field is not None and field not in reply:
        raise _malformed(kind, request, reply, f"the field `{field}` is missing")
    if unknown := reply.keys() - _ENVELOPE - {field}:
        raise _malformed(kind, request, reply, f"unknown fields: {', '.join(sorted(unknown))}")


def _malformed(kind: str, request: Body, reply: Body, why: str) -> MalformedReply:
    return MalformedReply(request, reply, _EXPECTED[kind], why)
