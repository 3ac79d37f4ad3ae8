"""The store of a simulated cluster, for processes that run without a node."""

from collections.abc import Callable
from typing import Any

import orjson

from leaderless.core.messages import Outcome, StoreCall, StoreOp
from leaderless.wire.bodies import outcome_of, request_body
from simulation import registers


def over_the_wire(
    handle: Callable[[dict[str, Any]], dict[str, Any]],
) -> Callable[[StoreOp], Outcome]:
    """The `lin-kv` port on a service, with what a wire does to bodies: values cross as text."""

    def apply(op: StoreOp) -> Outcome:
        request = orjson.loads(orjson.dumps(request_body(StoreCall(1, op))))
        return outcome_of(orjson.loads(orjson.dumps(handle(request))))

    return apply


class Store(registers.Store):
    """A store that carries out the operations of a node's port, too."""

    def apply(self, op: StoreOp) -> Outcome:
        """Carry out an operation."""
        return over_the_wire(lambda body: self.handle("", body))(op)

    def copy(self) -> "Store":
        """As the other one's; it carries out operations, too."""
        copy = Store()
        copy.cells = dict(self.cells)
        return copy
