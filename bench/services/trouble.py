"""A linearizable service in trouble: each request of the nodes concerned may meet with one of these.

    late        it takes 10 to 300 ms
    abandoned   it takes 1.2 to 3 s: longer than most clients wait
    lost        it is executed at once, and the answer is lost

Where a request takes long, the toss of a coin says whether it waits before it is executed or its answer
waits afterwards. Either way it is executed once, between its arrival and its answer: the service stays
linearizable. What waits when the trouble ends still comes.
"""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from bench.loop import Loop

_MS = 1_000_000
# mode -> the shortest and the longest wait in ns
WAITS_NS = {"late": (10 * _MS, 300 * _MS), "abandoned": (1_200 * _MS, 3_000 * _MS)}
LOST = "lost"
MODES = (*WAITS_NS, LOST)
LONGEST_NS = max(longest for _, longest in WAITS_NS.values())

Body = dict[str, Any]
Execute = Callable[[], Body]
Answer = Callable[[Body], object]


class Plight(NamedTuple):
    """Whose requests meet with what, and which share of them."""

    nodes: frozenset[str]
    mode: str
    share: float


class Trouble:
    """What one service suffers; `plight` is None while all is well."""

    def __init__(self, loop: Loop, random: Random) -> None:
        self._loop = loop
        self._random = random
        self.plight: Plight | None = None

    def serve(self, client: str, execute: Execute, answer: Answer) -> None:
        """Execute a request and answer it, sooner or later or never."""
        plight = self.plight
        struck = plight and client in plight.nodes and self._random.random() < plight.share
        if not struck or not plight:
            answer(execute())
        elif plight.mode == LOST:
            execute()
        elif self._random.random() < 0.5:
            self._later(plight.mode, lambda: answer(execute()))
        else:
            self._later(plight.mode, answer, execute())

    def _later(self, mode: str, function: Callable[..., object], *arguments: Any) -> None:
        at_ns = self._loop.now_ns() + self._random.randint(*WAITS_NS[mode])
        self._loop.call_at(at_ns, function, *arguments)
