"""Takes down the steps of the protocol that nodes name, in their order."""

from collections.abc import Callable

from leaderless.core.messages import Fields
from leaderless.core.strategies import STRATEGIES
from leaderless.core.strategy import Context, Strategy, Trace
from simulation.nodes import StrategyMaker

Step = tuple[str, str, Fields]  # of a node: its name, the step's name, its fields


class Noted(Trace):
    """Notes each step of a node, to be followed when the node is done with what it does."""

    __slots__ = ("_node", "_noted")
    on = True

    def __init__(self, steps: list[Step], node: str) -> None:
        self._noted, self._node = steps, node

    def __call__(self, name: str, fields: Callable[..., Fields] = dict, *of: object) -> None:
        self._noted.append((self._node, name, fields(*of)))


class Noting:
    """Makes the same strategy as `make`, and adds its steps to a list; `started` is told of each node."""

    def __init__(
        self,
        make: str | StrategyMaker,
        steps: list[Step],
        started: Callable[[str], object] = len,
    ) -> None:
        self._make = STRATEGIES[make] if isinstance(make, str) else make
        self._steps, self._started = steps, started

    def __call__(self, context: Context) -> Strategy:
        node = context.identity.node
        self._started(node)
        return self._make(context._replace(trace=Noted(self._steps, node)))
