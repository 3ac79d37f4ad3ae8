"""The client of sets and counters: it adds and it reads.

    {"type": "add", FIELD: ...}  ->  {"type": "add_ok"}
    {"type": "read"}             ->  {"type": "read_ok", "value": ...}

Whatever error a node answers, an operation may have happened.
"""

from runs.history import Op
from workloads.interface import Rpc, RpcError, Steps
from workloads.replies import Form, require


class AddClient:
    """Adds and reads at one node; `field` names what is added, `value` is the form of what is read."""

    def __init__(self, node: str, field: str, value: Form) -> None:
        self.node = node
        self._field = field
        self._value = value

    def invoke(self, op: Op) -> Steps:
        try:
            return (yield from self._add(op) if op.f == "add" else self._read())
        except RpcError as error:
            raise error.unknown() from None

    def _add(self, op: Op) -> Steps:
        request = {"type": "add", self._field: op.value}
        require(request, (yield Rpc(self.node, request)))
        return op.value

    def _read(self) -> Steps:
        request = {"type": "read"}
        reply = yield Rpc(self.node, request)
        require(request, reply, value=self._value)
        return reply["value"]
