"""The store port on Maelstrom's `lin-kv` service: operations to bodies, reply bodies to outcomes.

[maelstrom src/maelstrom/service.clj]. Only `20` (missing) and `22` (mismatch) say what the store holds.
Every other error, definite or not, becomes `Unknown`: it is always safe to look again.
"""

from typing import assert_never

from leaderless.core.messages import (
    Cas,
    Get,
    Json,
    Mismatch,
    Missing,
    Ok,
    Outcome,
    Put,
    StoreCall,
    Unknown,
)
from leaderless.wire.errors import ErrorCode

SERVICE = "lin-kv"

_DONE, _MISSING, _MISMATCH, _UNKNOWN = Ok(), Missing(), Mismatch(), Unknown()
_REFUSED = Unknown(spent=1.0)  # it would say the same again


def request_body(call: StoreCall) -> dict[str, Json]:
    """The request that carries out a store call."""
    number, op = call.call, call.op
    if isinstance(op, Get):
        return {"type": "read", "key": op.key, "msg_id": number}
    if isinstance(op, Cas):
        body = {"type": "cas", "key": op.key, "from": op.old, "to": op.new, "msg_id": number}
        if op.create:
            body["create_if_not_exists"] = True
        return body
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
