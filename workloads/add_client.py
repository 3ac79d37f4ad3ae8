"""The client of sets and counters: it adds and it reads.

{"type": "add", FIELD: ...}  ->  {"type": "add_ok"}
{"type": "read"}             ->  {"type": "read_ok", "value": ...}
"""

from dataclasses import dataclass

from runs.history import Op
from workloads.interface import Rpc, RpcError, Steps
from workloads.replies import Form, require


@dataclass(frozen=True)
class AddClient:
    """Adds and reads at one node.

    `field` names what is added, `read` what is read, and `value` is the form of that. Unless errors are
    `definite`, an operation may have happened whatever error the node answers.
    """

    node: str
    field: str
    value: Form
    read: str = "value"
    definite: bool = False

    def invoke(self, op: Op) -> Steps:
        added, fields = {self.field: op.value}, {self.read: self.value}
        request = {"type": op.f, **({} if op.f == "read" else added)}
        try:
            reply = yield Rpc(self.node, request)
        except RpcError as error:
            raise error if self.definite else error.unknown() from None
        require(request, reply, **(fields if op.f == "read" else {}))
        return reply[self.read] if op.f == "read" else op.value
