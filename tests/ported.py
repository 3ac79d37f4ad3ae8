"""The store of a simulated cluster, for processes that run without a node."""

import orjson

from leaderless.core.messages import Outcome, StoreCall, StoreOp
from leaderless.wire.bodies import outcome_of, request_body
from simulation import registers


class Store(registers.Store):
    """A store that carries out the operations of a node's port, too."""

    def apply(self, op: StoreOp) -> Outcome:
        """Carry out an operation; values cross as text, as on a wire."""
        request = orjson.loads(orjson.dumps(request_body(StoreCall(1, op))))
        return outcome_of(orjson.loads(orjson.dumps(self.handle("", request))))

    def copy(self) -> "Store":
        """As the other one's; it carries out operations, too."""
        copy = Store()
        copy.cells = dict(self.cells)
        return copy
