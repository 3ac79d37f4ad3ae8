"""The client of the lin-kv workload: one RPC for each operation."""

from typing import Any

from runs.history import Op
from workloads.interface import Body, Rpc, Steps
from workloads.replies import ANY, require


class LinKvClient:
    """Reads, writes and compares-and-sets through one node."""

    def __init__(self, node: str, timeout_ms: int) -> None:
        self.node = node
        self.timeout_ms = timeout_ms

    def invoke(self, op: Op) -> Steps:
        key, argument = op.value
        request = {"type": op.f, "key": key, **_arguments(op.f, argument)}
        reply = yield Rpc(self.node, request, self.timeout_ms)
        fields = {"value": ANY} if op.f == "read" else {}
        require(request, reply, **fields)
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
