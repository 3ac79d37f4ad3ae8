"""g-set: a set that only grows. Clients add elements at any node, and read all of them.

    {"type": "add", "element": 0}  ->  {"type": "add_ok"}
    {"type": "read"}               ->  {"type": "read_ok", "value": [1, 0, 4]}

Half of the operations add 0, 1, 2, ...; the others read. The order of a read's elements does not matter. A node
may need time to show an element. After the faults are healed and the recovery time is over, every worker reads
once more. The result is that of `workloads.set_full`, which says what is lost, stale or never read.

As in the real tool, every error of an operation leaves its outcome unknown, even a definite one: an add that
failed and yet took effect is allowed.

The rules are those of Maelstrom's workload of this name and Jepsen's `set-full` checker.
"""

from itertools import count

from runs.history import Op
from workloads.interface import Draft, Judge, Rpc, RpcError, Setting, Steps, Workload
from workloads.mixes import Mix, OnceEach, read
from workloads.replies import ARRAY, require
from workloads.set_full import judge_of


class GSetClient:
    """Adds and reads at one node."""

    def __init__(self, node: str) -> None:
        self.node = node

    def invoke(self, op: Op) -> Steps:
        try:
            return (yield from self._add(op) if op.f == "add" else self._read())
        except RpcError as error:
            raise error.unknown() from None

    def _add(self, op: Op) -> Steps:
        request = {"type": "add", "element": op.value}
        require(request, (yield Rpc(self.node, request)))
        return op.value

    def _read(self) -> Steps:
        request = {"type": "read"}
        reply = yield Rpc(self.node, request)
        require(request, reply, value=ARRAY)
        return reply["value"]


def build(setting: Setting) -> Workload:
    """The workload for this run."""
    elements = count()
    return Workload(
        generator=Mix(setting.random("g-set"), lambda: Draft("add", next(elements)), read),
        final_generator=OnceEach(setting.concurrency, read),
        open_client=GSetClient,
        judge=judge(),
    )


def judge() -> Judge:
    """What became of every element."""
    return judge_of("add")
