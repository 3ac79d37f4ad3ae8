"""`loss`, `duplicate` and `slow`: messages on the links between servers get lost, come twice, or take long.

A fault affects the messages that leave or reach one of its nodes and have no client at either end:

    loss        node to node, node to service, service to node
    duplicate   node to node, service to node; never a request to a service, which would execute it twice
                and would no longer have the consistency that it promises
    slow        the same links as loss

The network asks `LinkFaults` only while a fault is in force.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import NamedTuple

from bench.nemesis.fault import Done, Fault, Plan, choose_targets
from bench.net import Network
from runs.history import Keyword, keywords

SLOW_BASE_NS = 1_000_000  # a latency of 0 counts as this when it is multiplied
STRAY_MAX_NS = 2_000_000_000  # how much later than the first a second copy arrives at most

# fault -> the name of its level, and the levels that are drawn.
LEVELS: dict[str, tuple[str, tuple[float, ...]]] = {
    "loss": ("share", (0.05, 0.2, 0.5)),
    "duplicate": ("share", (0.1, 0.5, 1.0)),
    "slow": ("factor", (3, 10, 30)),
}


class LinkFault(NamedTuple):
    """Which nodes a fault affects, and its level: a share of messages, or a factor of their latency."""

    nodes: frozenset[str]
    level: float


class LinkFaults:
    """The link faults in force, by name.

    `nodes` are all nodes, and may change; every other name is a service. `has_latency`: whether the network
    has any.
    """

    def __init__(self, nodes: Collection[str], has_latency: bool, random: Random) -> None:
        self._nodes = nodes
        self._slow_base_ns = 0 if has_latency else SLOW_BASE_NS
        self._random = random
        self.in_force: dict[str, LinkFault] = {}

    def delays_ns(self, src: str, dest: str, draw_latency_ns: Callable[[], int]) -> list[int]:
        """After how long each copy of a message arrives: none, one or two."""
        loss = self._fault("loss", src, dest)
        if loss and self._strikes(loss):
            return []
        delay_ns = draw_latency_ns()
        if slow := self._fault("slow", src, dest):
            delay_ns = int(slow.level * (delay_ns + self._slow_base_ns))
        delays = [delay_ns]
        copies = self._fault("duplicate", src, dest)  # mostly None, and then nobody is looked up
        if copies and dest in self._nodes and self._strikes(copies):
            # Most copies follow soon. Some come when all nodes have forgotten the first.
            delays.append(delay_ns + int(self._random.random() ** 3 * STRAY_MAX_NS))
        return delays

    def _strikes(self, fault: LinkFault) -> bool:
        return self._random.random() < fault.level

    def _fault(self, name: str, src: str, dest: str) -> LinkFault | None:
        fault = self.in_force.get(name)
        return fault if fault and (src in fault.nodes or dest in fault.nodes) else None


@dataclass
class Links(Fault):
    """A `Fault` on the links of some nodes; `name` is one of `LEVELS`."""

    name: str
    network: Network
    faults: LinkFaults
    nodes: Sequence[str]
    targets: str

    def plan(self, random: Random) -> Plan:
        word, nodes = choose_targets(self.targets, self.nodes, random)
        what, levels = LEVELS[self.name]
        level = random.choice(levels)
        intent = {Keyword("targets"): Keyword(word), Keyword(what): level}
        return Plan(intent, partial(self._begin, nodes, level))

    def end(self, done: Done) -> None:
        self.faults.in_force.pop(self.name, None)
        self.network.copies_ns = self.faults.delays_ns if self.faults.in_force else None
        done(Keyword("reliable"))

    def _begin(self, nodes: Sequence[str], level: float, done: Done) -> None:
        self.faults.in_force[self.name] = LinkFault(frozenset(nodes), level)
        self.network.copies_ns = self.faults.delays_ns
        done(keywords(nodes=list(nodes)) | {Keyword(LEVELS[self.name][0]): level})
