"""`store`: requests of some nodes to the `lin-kv` service are late, or their answers get lost.

    late        it takes 10 to 300 ms
    abandoned   it takes 1.2 to 3 s: longer than most clients wait
    lost        it is executed at once, and the answer is lost

A late or abandoned request waits before it is executed, or its answer waits afterwards, with equal odds. Either
way it is executed once, between its arrival and its answer: the service stays linearizable. What waits when the
fault ends still comes.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, NamedTuple, Protocol

from bench.loop import Loop
from bench.nemesis.fault import Done, Plan, choose_targets
from runs.keyword import Keyword, keywords

STORE = "lin-kv"  # the service that the fault affects
_MS = 1_000_000
# mode -> the shortest and the longest wait in ns
WAITS_NS = {"late": (10 * _MS, 300 * _MS), "abandoned": (1_200 * _MS, 3_000 * _MS)}
LOST = "lost"
MODES = (*WAITS_NS, LOST)
LONGEST_NS = max(longest for _, longest in WAITS_NS.values())
SHARES = (0.1, 0.3, 1.0)
MODES_OF_LIN_KV: Mapping[str, Sequence[float]] = dict.fromkeys(MODES, SHARES)

Body = dict[str, Any]


class StoreFault(NamedTuple):
    """Which nodes the fault affects, what becomes of their requests, and of which share of these."""

    nodes: frozenset[str]
    mode: str
    share: float


class StoreFaults:
    """Serves the requests to one service under `in_force`, which is None while there is no fault."""

    def __init__(self, loop: Loop, random: Random) -> None:
        self._loop = loop
        self._random = random
        self.in_force: StoreFault | None = None

    def serve(
        self, client: str, execute: Callable[[], Body], answer: Callable[[Body], object]
    ) -> None:
        """Execute a request and answer it, sooner or later or never (a `bench.services.Serve`)."""
        fault = self.in_force
        if not fault or client not in fault.nodes or self._random.random() >= fault.share:
            answer(execute())
        elif fault.mode == LOST:
            execute()
        elif self._random.random() < 0.5:
            self._later(fault.mode, lambda: answer(execute()))
        else:
            self._later(fault.mode, answer, execute())

    def _later(self, mode: str, function: Callable[..., object], *arguments: Any) -> None:
        at_ns = self._loop.now_ns() + self._random.randint(*WAITS_NS[mode])
        self._loop.call_at(at_ns, function, *arguments)


class Disturbed(Protocol):
    """What carries a fault of the store out."""

    in_force: StoreFault | None


class Store:
    """A `Fault` of the store, for the requests of some nodes.

    `modes`: those that `faults` knows, each with the shares of requests that it may affect. `store`: the name
    of a real one, which the history then has.
    """

    name = "store"
    possible = True

    def __init__(
        self,
        faults: Disturbed,
        nodes: Sequence[str],
        targets: str,
        modes: Mapping[str, Sequence[float]] = MODES_OF_LIN_KV,
        store: str | None = None,
    ) -> None:
        self._faults = faults
        self._nodes = nodes
        self._targets = targets
        self._modes = modes
        self._store = store

    def plan(self, random: Random) -> Plan:
        word, nodes = choose_targets(self._targets, self._nodes, random)
        mode = random.choice([*self._modes])
        share = random.choice(self._modes[mode])
        fault = StoreFault(frozenset(nodes), mode, share)
        intent = keywords(targets=Keyword(word), mode=Keyword(mode), share=share)
        return Plan(intent, partial(self.begin, nodes, fault))

    def end(self, done: Done) -> None:
        self._faults.in_force = None
        done(Keyword("prompt"))

    def begin(self, nodes: Sequence[str], fault: StoreFault, done: Done) -> None:
        """Let a fault begin."""
        self._faults.in_force = fault
        effect = keywords(nodes=list(nodes), mode=Keyword(fault.mode), share=fault.share)
        done(effect | keywords(store=self._store) if self._store else effect)
