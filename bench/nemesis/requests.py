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
from typing import Any, NamedTuple

from bench.loop import Loop
from bench.nemesis.fault import Done, Fault, Plan, choose_targets
from bench.services import Body
from runs.history import MS, Keyword, keywords

STORE = "lin-kv"  # the service that the fault affects
# mode -> the shortest and the longest wait in ns
WAITS_NS = {"late": (10 * MS, 300 * MS), "abandoned": (1_200 * MS, 3_000 * MS)}
LOST, DRIPPING, DAMAGED = "lost", "dripping", "damaged"
APPLIED = (LOST, DRIPPING, DAMAGED)  # the store has done what it was asked for
MODES = (*WAITS_NS, LOST)
LONGEST_NS = max(longest for _, longest in WAITS_NS.values())
SHARES = (0.1, 0.3, 1.0)
MODES_OF_LIN_KV: Mapping[str, Sequence[float]] = dict.fromkeys(MODES, SHARES)


class Fate(NamedTuple):
    """What becomes of a request: it waits, is `applied` or not, its answer waits, and it ends as `mode` says.

    `mode`: the fault that it meets, None for none. `drips_ns`: for how long its answer drips. `damage`: what is
    wrong with its answer.
    """

    there_ns: int = 0
    applied: bool = True
    back_ns: int = 0
    mode: str | None = None
    drips_ns: int = 0
    damage: str = ""


def meet(
    loop: Loop, fate: Fate, execute: Callable[[], Body], answer: Callable[[Body], object]
) -> None:
    """Let a request to a service meet its fate."""

    def arrive() -> None:
        reply = execute()
        if fate.mode != LOST:
            later(loop, fate.back_ns, answer, reply)

    later(loop, fate.there_ns, arrive)


def later(loop: Loop, wait_ns: int, function: Callable[..., object], *arguments: Any) -> None:
    """Call a function after a while, or at once if that is none."""
    if wait_ns:
        loop.call_later(wait_ns, function, *arguments)
    else:
        function(*arguments)


class StoreFault(NamedTuple):
    """Which nodes the fault affects, what becomes of their requests, and of which share of these."""

    nodes: frozenset[str]
    mode: str
    share: float

    def fate(self, node: str, random: Random) -> Fate:
        """What becomes of the next request of a node."""
        if node not in self.nodes or random.random() >= self.share:
            return Fate()
        if self.mode not in WAITS_NS:
            return Fate(applied=self.mode in APPLIED, mode=self.mode)
        is_before = random.random() < 0.5
        wait_ns = random.randint(*WAITS_NS[self.mode])
        return Fate(wait_ns if is_before else 0, True, 0 if is_before else wait_ns, self.mode)


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
        fate = self._fault.fate(client, self.random) if self._fault else Fate()
        meet(self.loop, fate, execute, answer)


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
