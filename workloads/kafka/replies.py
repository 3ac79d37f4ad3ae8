"""The replies of the kafka RPCs: each function checks one and returns its content.

All raise `MalformedReply` for a reply that breaks the protocol: a missing, mistyped or unknown
field.
"""

from typing import Any

from runs.keyword import Keyword
from workloads.interface import Body, MalformedReply

SEND, POLL = Keyword("send"), Keyword("poll")

_ENVELOPE = frozenset(("type", "in_reply_to", "msg_id"))
_EXPECTED = {
    "send_ok": '{"type": "send_ok", "offset": 3}',
    "poll_ok": '{"type": "poll_ok", "msgs": {"k1": [[3, "a message"], [4, "the next"]]}}',
    "commit_offsets_ok": '{"type": "commit_offsets_ok"}',
    "list_committed_offsets_ok": '{"type": "list_committed_offsets_ok", "offsets": {"k1": 3}}',
}


def send_ok(request: Body, reply: Body) -> int:
    """The offset of the message."""
    _check_fields("send_ok", "offset", request, reply)
    offset = reply["offset"]
    if type(offset) is not int:
        raise _malformed("send_ok", request, reply, f"`offset` must be an integer, not {offset!r}")
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
            if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not int:
                why = f"key {key!r} has {pair!r:.200} where [offset, message] should be"
                raise _malformed("poll_ok", request, reply, why)
    return messages


def commit_offsets_ok(request: Body, reply: Body) -> None:
    """Nothing but the acknowledgement."""
    _check_fields("commit_offsets_ok", None, request, reply)


def list_committed_offsets_ok(request: Body, reply: Body) -> dict[str, int]:
    """Key -> committed offset; keys without one are left out."""
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
