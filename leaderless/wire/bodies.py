"""Bodies of requests and answers: the `kafka` workload's, our `fence`/`unfence`, the peers', `lin-kv`'s.

A request that is not of the protocol's shape raises `MalformedRequest` with the field's name; a type that
is not the workload's raises `NotSupported`. [maelstrom src/maelstrom/workload/kafka.clj]

Of the answers of `lin-kv` only the codes 20 (missing) and 22 (mismatch) say what the store holds. Every other
error, definite or not, becomes `Unknown`: it is always safe to look again.
[maelstrom src/maelstrom/service.clj]
"""

from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from functools import partial
from reprlib import repr as brief  # bounded in depth and length, as what clients send is not
from typing import Any, assert_never

from leaderless.core.coordination import COUNT_END, Misfit
from leaderless.core.decoding import KEY_BYTES_MAX, kept_text, require_keys
from leaderless.core.headlog.records import entries_of, heading_of, offsets_of, value_of_heading
from leaderless.core.headlog.view import TOKEN
from leaderless.core.messages import (
    Answer,
    AppendOk,
    Batch,
    Cas,
    CommitOffsets,
    CommitOffsetsOk,
    Failure,
    Fence,
    FenceOk,
    Get,
    HandedOver,
    HandOver,
    Json,
    ListCommittedOffsets,
    ListCommittedOffsetsOk,
    Mismatch,
    Missing,
    NodeStatus,
    Offer,
    Offsets,
    Ok,
    Outcome,
    PeerCall,
    Poll,
    PollOk,
    Put,
    Reason,
    RefreshOk,
    Request,
    RequestEvent,
    Send,
    SendOk,
    Share,
    StatusOk,
    StoreCall,
    Unfence,
    Unknown,
)
from leaderless.wire.codec import Body

LIN_KV = "lin-kv"
SHARE = "share"  # the one type without an answer
_DONE, _MISSING, _MISMATCH, _UNKNOWN = Ok(), Missing(), Mismatch(), Unknown()
_REFUSED = Unknown(spent=1.0)  # it would say the same again


class ErrorCode(IntEnum):
    """Codes of an `error` body; the names are those of Maelstrom's registry, with underscores.

    A definite error says that the operation certainly did not happen and never will; every other one, a custom
    code of 1000 and more among them, leaves it open. [maelstrom doc/protocol.md, resources/errors.edn]
    """

    TIMEOUT = 0
    NODE_NOT_FOUND = 1
    NOT_SUPPORTED = 10
    TEMPORARILY_UNAVAILABLE = 11
    MALFORMED_REQUEST = 12
    CRASH = 13
    ABORT = 14
    KEY_DOES_NOT_EXIST = 20
    KEY_ALREADY_EXISTS = 21
    PRECONDITION_FAILED = 22
    TXN_CONFLICT = 30

    @property
    def definite(self) -> bool:
        """Whether the operation certainly did not happen."""
        return self not in (ErrorCode.TIMEOUT, ErrorCode.CRASH)


CODES = {
    Reason.TIMEOUT: ErrorCode.TIMEOUT,
    Reason.CRASH: ErrorCode.CRASH,
    Reason.BROKEN: ErrorCode.CRASH,
    Reason.NOT_SUPPORTED: ErrorCode.NOT_SUPPORTED,
    Reason.BUSY: ErrorCode.TEMPORARILY_UNAVAILABLE,
    Reason.FENCED: ErrorCode.TEMPORARILY_UNAVAILABLE,
    Reason.UNFIT: ErrorCode.MALFORMED_REQUEST,
    Reason.OTHER_EPOCH: ErrorCode.PRECONDITION_FAILED,
    Reason.REFUSED: ErrorCode.TEMPORARILY_UNAVAILABLE,
    Reason.CONFLICT: ErrorCode.PRECONDITION_FAILED,
    Reason.STALE_TOKEN: ErrorCode.PRECONDITION_FAILED,
    Reason.CLOSED: ErrorCode.PRECONDITION_FAILED,
}


class MalformedRequest(Exception):
    """A field is missing or has the wrong type; the text names it."""


class NotSupported(Exception):
    """The message type is not one of this workload's."""


def event_of(request: Request, body: Body, size: int = 0) -> RequestEvent:
    """The event that a request's body asks for; `size` is its length in bytes."""
    if made := _REQUESTS.get(body["type"]):
        return made(request, body, size)
    raise NotSupported(f"this node does not know messages of type {brief(body['type'])}")


def body_of(answer: Answer) -> Body:
    """The body of a reply, without `in_reply_to`."""
    if isinstance(answer, SendOk):  # mostly
        return {"type": "send_ok", "offset": answer.offset}
    if isinstance(answer, PollOk):
        return {"type": "poll_ok", "msgs": answer.msgs}
    match answer:
        case CommitOffsetsOk():
            return {"type": "commit_offsets_ok"}
        case ListCommittedOffsetsOk(offsets):
            return {"type": "list_committed_offsets_ok", "offsets": offsets}
        case FenceOk(epoch):
            return {"type": "fence_ok", "epoch": epoch}
        case StatusOk(fields):
            return {"type": "status_ok", **fields}
        case HandedOver():
            return _handed_over(answer)
        case Failure(reason, text):
            return {"type": "error", "code": CODES[reason], "text": text}
        case AppendOk() | RefreshOk():
            raise TypeError(f"no message asks for {answer}")
        case _:
            assert_never(answer)


def question_of(call: PeerCall) -> Body:
    """The request that asks a peer."""
    match call.question:
        case Offer(slot, batch):
            fields = batch._asdict()
            del fields["size"]  # the peer sees how long it is
            if not batch.expected:
                del fields["expected"]
            return {"type": "hand_over", "msg_id": call.call, "slot": slot, **fields}
        case Send(_, key, msg):
            return {"type": "send", "msg_id": call.call, "key": key, "msg": msg}
        case other:
            assert_never(other)


def answer_of(body: Body) -> HandedOver | SendOk | None:
    """What a peer answered; None when it refused or the answer makes no sense."""
    match body:
        case {"type": "send_ok", "offset": offset} if type(offset) is int:
            return SendOk(offset)
        case {
            "type": "hand_over_ok",
            "slot": int(slot),
            "entries": entries,
            "head": dict(head),
            "held_s": float() | int() as held_s,
        } if type(slot) is int and slot >= 0:
            with suppress(Misfit):
                return HandedOver(slot, entries_of(entries), heading_of(head), held_s)
    return None


def _handed_over(answer: HandedOver) -> Body:
    entries = [entry.value for entry in answer.entries]
    fields = answer._asdict() | {"entries": entries, "head": value_of_heading(answer.head)}
    return {"type": "hand_over_ok", **fields}


def body_of_share(share: Share) -> Body:
    """The message that shows messages to a peer."""
    return {"type": SHARE, "msgs": share.msgs}


def share_of(body: Body) -> Share:
    """What a peer shows."""
    _check_storable("msgs", msgs := _field(body, "msgs"), above=3)  # and a pair of each
    return Share(msgs)


def _are_pairs(pairs: object) -> bool:
    return isinstance(pairs, list) and all(
        isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is int for pair in pairs
    )


def _batch(body: Body, size: int) -> Batch:
    names = "writer", "seq", "epoch", "appends", "commits"
    expected = _field(body, "expected") if "expected" in body else {}
    batch = Batch(**{name: _field(body, name) for name in names}, size=size, expected=expected)
    _check_storable("appends", batch.appends, above=2)  # a list of messages for each key
    return batch


def _field(body: Body, name: str) -> Any:
    """A field of a request, which is as `_FIELDS` says."""
    try:
        value = body[name]
    except KeyError:
        raise MalformedRequest(f"{body['type']} needs a field {name!r}") from None
    bound, fits = _FIELDS[name]
    if fits(value):
        return value
    raise MalformedRequest(f"{name!r} must {bound}, not {brief(value)}")


_Field = tuple[str, Callable[[Any], bool]]
_COUNT: _Field = (
    "be an integer from 0 up, below 2^63",
    lambda count: type(count) is int and 0 <= count < COUNT_END,
)


def _fits(decode: Callable[[Any], object], value: object) -> bool:
    """Whether a decoder of the log takes a value."""
    with suppress(Misfit):
        decode(value)
        return True
    return False


_OFFSETS: _Field = "map keys to offsets from 0 up, below 2^63", partial(_fits, offsets_of)
_FIELDS: dict[str, _Field] = {
    "slot": _COUNT,
    "seq": _COUNT,
    "epoch": _COUNT,
    "offsets": _OFFSETS,
    "commits": _OFFSETS,
    "expected": _OFFSETS,
    "writer": ("be a string", lambda name: type(name) is str),
    "keys": (
        "be a list of strings",
        lambda keys: type(keys) is list and {*map(type, keys)} <= {str},
    ),
    "appends": (
        "map keys to messages",
        lambda appends: (
            type(appends) is dict
            and _fits(require_keys, appends)
            and all(type(msgs) is list and msgs for msgs in appends.values())
        ),
    ),
    "msgs": (
        "map keys to [offset, msg] pairs",
        lambda msgs: type(msgs) is dict and all(map(_are_pairs, msgs.values())),
    ),
}


def _send(request: Request, body: Body, size: int) -> Send:
    try:
        key, msg = body["key"], body["msg"]
    except KeyError as missing:
        raise MalformedRequest(f"{body['type']} needs a field {missing}") from None
    if type(key) is not str or (len(key) > KEY_BYTES_MAX // 4 and not _fits(require_keys, [key])):
        raise MalformedRequest(
            f"'key' must be a string of up to {KEY_BYTES_MAX} bytes, not {brief(key)}"
        )
    if type(msg) in (list, dict):
        size = max(size, _check_storable("msg", msg))  # numbers may be longer than they were sent
    return Send(request, key, msg, size)


def _committed(body: Body) -> Offsets:
    offsets: Offsets = _field(body, "offsets")
    if tokens := [key for key in offsets if key.startswith(TOKEN)]:
        raise MalformedRequest(
            f"'offsets' must have no key that begins with U+0000, as {tokens[0]!r}"
        )
    return offsets


def _check_storable(name: str, value: object, above: int = 0) -> int:
    """The bytes that a value takes in a register, with messages `above` levels down.

    Raises `MalformedRequest` if it cannot be written.
    """
    try:
        return len(kept_text(value, above))
    except TypeError as error:
        raise MalformedRequest(f"{name!r} cannot be stored: {error}") from None


_REQUESTS: dict[str, Callable[[Request, Body, int], RequestEvent]] = {
    "send": _send,
    "poll": lambda request, body, _: Poll(request, _field(body, "offsets")),
    "commit_offsets": lambda request, body, _: CommitOffsets(request, _committed(body)),
    "list_committed_offsets": lambda request, body, _: ListCommittedOffsets(
        request, _field(body, "keys")
    ),
    "fence": lambda request, *_: Fence(request),
    "unfence": lambda request, *_: Unfence(request),
    "status": lambda request, *_: NodeStatus(request),
    "hand_over": lambda request, body, size: HandOver(
        request, _field(body, "slot"), _batch(body, size)
    ),
}


def request_body(call: StoreCall) -> dict[str, Json]:
    """The request that carries out a store call."""
    number, op = call.call, call.op
    if isinstance(op, Get):
        return {"type": "read", "key": op.key, "msg_id": number}
    if isinstance(op, Cas):
        made = {"create_if_not_exists": True} if op.create else {}
        return {"type": "cas", "key": op.key, "from": op.old, "to": op.new, "msg_id": number} | made
    if isinstance(op, Put):
        return {"type": "write", "key": op.key, "value": op.value, "msg_id": number}
    assert_never(op)


def outcome_of(body: dict[str, Json]) -> Outcome:
    """What a reply of the service says; anything that is not clear is `Unknown`."""
    match body["type"]:
        case "read_ok" if "value" in body:
            return Ok(body["value"])
        case "cas_ok" | "write_ok":
            return _DONE
        case "error":
            match body.get("code"):
                case ErrorCode.KEY_DOES_NOT_EXIST:
                    return _MISSING
                case ErrorCode.PRECONDITION_FAILED:
                    return _MISMATCH
                case ErrorCode.NOT_SUPPORTED | ErrorCode.MALFORMED_REQUEST:
                    return _REFUSED
    return _UNKNOWN
