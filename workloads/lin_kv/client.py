"""The client of the lin-kv workload: one RPC for each operation."""

from typing import Any

from runs.history import Op
from workloads.interface import Body, MalformedReply, Rpc, Steps

_EXPECTED = {
    "read": '{"type": "read_ok", "value": <any>, "in_reply_to": <msg_id>}',
    "write": '{"type": "write_ok", "in_reply_to": <msg_id>}',
    "cas": '{"type": "cas_ok", "in_reply_to": <msg_id>}',
}
_ENVELOPE = {"type", "msg_id", "in_reply_to"}


class LinKvClient:
    """Reads, writes and compares-and-sets through one node."""

    def __init__(self, node: str, timeout_ms: int) -> None:
        self.node = node
        self.timeout_ms = timeout_ms

    def invoke(self, op: Op) -> Steps:
        key, argument = op.value
        request = {"type": op.f, "key": key, **_arguments(op.f, argument)}
        reply = yield Rpc(self.node, request, self.timeout_ms)
        _require_well_formed(op.f, request, reply)
        return [key, reply["value"] if op.f == "read" else argument]


def _arguments(f: str, argument: Any) -> Body:
    match f:
        case "read":
            return {}
        case "write":
            return {"value": argument}
        case _:
            before, after = argument
            return {"from": before, "to": after}


def _require_well_formed(f: str, request: Body, reply: Body) -> None:
    """The real bench is strict about replies: nothing missing, nothing more."""
    fields = {"value"} if f == "read" else set()
    if reply.get("type") != f"{f}_ok":
        why = f"the type is {reply.get('type')!r}, not {f + '_ok'!r}"
    elif missing := fields - reply.keys():
        why = f"the field {', '.join(sorted(missing))} is missing"
    elif unknown := reply.keys() - fields - _ENVELOPE:
        why = f"nobody asked for the field {', '.join(sorted(unknown))}"
    else:
        return
    raise MalformedReply(request, reply, _EXPECTED[f], why)
