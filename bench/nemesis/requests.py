"""`store`: requests of some nodes to the `lin-kv` service are late, or their answers get lost.

    late        it takes 10 to 300 ms
    abandoned   it takes 1.2 to 3 s: longer than most clients wait
    lost        it is executed at once, and the answer is lost

A late or abandoned request waits before it is executed, or its answer waits afterwards, with equal odds. Either
way it is executed once, between its arrival and its answer: the service stays linearizable. What waits when the
fault ends still comes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import NamedTuple

from bench.loop import Loop
from bench.nemesis.fault import Done, Fault, Plan, choose_targets
from bench.services import Body
from runs.history import Keyword, keywords

STORE = "lin-kv"  # the service that the fault affects
_MS = 1_000_000
# mode -> the shortest and the longest wait in ns
WAITS_NS = {"late": (10 * _MS, 300 * _MS), "abandoned": (1_200 * _MS, 3_000 * _MS)}
LOST = "lost"
MODES = (*WAITS_NS, LOST)
LONGEST_NS = max(longest for _, longest in WAITS_NS.values())
SHARES = (0.1, 0.3, 1.0)
MODES_OF_LIN_KV: Mapping[str, Sequence[float]] = dict.fromkeys(MODES, SHARES)


class StoreFault(NamedTuple):
    """Which nodes the fault affects, what becomes of their requests, and of which share of these."""

    nodes: frozenset[str]
    mode: str
    share: float

    def strikes(self, node: str, random: Random) -> bool:
        """Whether it affects the next request of a node."""
        return node in self.nodes and random.random() < self.share

    def waits_ns(self, random: Random) -> tuple[int, int]:
        """How long a request waits before it is applied, and its answer afterwards: one of them."""
        is_before = random.random() < 0.5
        wait_ns = random.randint(*WAITS_NS[self.mode])
        return (wait_ns, 0) if is_before else (0, wait_ns)


# Lets a fault begin in place of the one before; None ends it.
Impose = Callable[[StoreFault | None], object]


@dataclass
class StoreFaults:
    """Serves the requests to one service under a fault, or under none."""

    loop: Loop
    random: Random
    _fault: StoreFault | None = None

    def impose(self, fault: StoreFault | None) -> None:
        """Let a fault begin in place of the one before, or end it (an `Impose`)."""
        self._fault = fault

    def serve(
        self, client: str, execute: Callable[[], Body], answer: Callable[[Body], object]
    ) -> None:
        """Execute a request and answer it, sooner or later or never (a `bench.services.Serve`)."""
        fault = self._fault
        if not fault or not fault.strikes(client, self.random):
            answer(execute())
        elif fault.mode == LOST:
            execute()
        else:
            before_ns, after_ns = fault.waits_ns(self.random)
            if before_ns:
                self.loop.call_later(before_ns, lambda: answer(execute()))
            else:
                self.loop.call_later(after_ns, answer, execute())


@dataclass
class Requests(Fault):
    """A `Fault` of the store, for the requests of some nodes.

    `modes`: those that `impose` knows, each with the shares of requests that it may affect. `store`: the name
    of a real one, which the history then has.
    """

    impose: Impose
    nodes: Sequence[str]
    targets: str
    modes: Mapping[str, Sequence[float]]
    store: str | None = None

    name = "store"

    def plan(self, random: Random) -> Plan:
        word, nodes = choose_targets(self.targets, self.nodes, random)
        mode = random.choice([*self.modes])
        share = random.choice(self.modes[mode])
        fault = StoreFault(frozenset(nodes), mode, share)
        intent = keywords(targets=Keyword(word), mode=Keyword(mode), share=share)
        return Plan(intent, partial(self.begin, nodes, fault))

    def end(self, done: Done) -> None:
        self.impose(None)
        done(Keyword("prompt"))

    def begin(self, nodes: Sequence[str], fault: StoreFault, done: Done) -> None:
        """Let a fault begin."""
        self.impose(fault)
        effect = keywords(nodes=list(nodes), mode=Keyword(fault.mode), share=fault.share)
        done(effect | keywords(store=self.store) if self.store else effect)
