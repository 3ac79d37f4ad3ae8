"""`partition`: the network between nodes is cut and healed; services stay reachable.

`one` node alone, a `minority-third` (the most nodes that are fewer than a third), a `majority` split in two
halves, or a `majorities-ring`, in which each node sees a majority but no two see the same: these four are
the real tool's, and drawn by default. Two more are ours: a `bridge`, where one node sees both halves that
do not see each other, and `one-way`, where some nodes are heard by the rest and do not hear it. [facts:
Jepsen's nemesis.clj and nemesis/combined.clj]
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from bench.nemesis.fault import Done, Fault, Plan
from bench.net import Network
from runs.history import Keyword

Cut = dict[str, set[str]]  # receiver -> the senders it drops
Shape = Callable[[Sequence[str], Random], Cut]


def isolate(*components: Sequence[str]) -> Cut:
    """The cut in which no node hears a node outside of its own component."""
    everyone = {node for component in components for node in component}
    return {node: everyone - set(component) for component in components for node in component}


def one(nodes: Sequence[str], random: Random) -> Cut:
    loner = random.choice(nodes)
    return isolate([loner], [node for node in nodes if node != loner])


def _split(size: Callable[[int], int]) -> Shape:
    """So many nodes, by the number of all, against the rest."""

    def cut(nodes: Sequence[str], random: Random) -> Cut:
        shuffled, count = random.sample(nodes, len(nodes)), size(len(nodes))
        return isolate(shuffled[:count], shuffled[count:])

    return cut


def majorities_ring(nodes: Sequence[str], random: Random) -> Cut:
    """Each node hears a majority, and no two hear the same one; a perfect ring up to five nodes."""
    if len(nodes) <= 5:
        return _perfect_ring(nodes, random)
    heard = _connect_evenly(nodes, random)
    return {node: set(nodes) - heard[node] for node in nodes}


def _perfect_ring(nodes: Sequence[str], random: Random) -> Cut:
    ring = random.sample(nodes, len(nodes))
    size = len(ring) // 2 + 1
    cut = {}
    for start in range(len(ring)):
        heard = [ring[(start + step) % len(ring)] for step in range(size)]
        cut[heard[size // 2]] = set(ring) - set(heard)
    return cut


def _connect_evenly(nodes: Sequence[str], random: Random) -> dict[str, set[str]]:
    """Link the least connected nodes to one another until each one hears a majority."""
    heard = {node: {node} for node in nodes}
    while True:
        by_degree = sorted(random.sample(nodes, len(nodes)), key=lambda node: len(heard[node]))
        poorest = by_degree[0]
        if len(heard[poorest]) > len(nodes) // 2:
            return heard
        partner = next(node for node in by_degree if node not in heard[poorest])
        heard[poorest].add(partner)
        heard[partner].add(poorest)


def bridge(nodes: Sequence[str], random: Random) -> Cut:
    """One node hears all and all hear it; the others are two halves that do not hear each other."""
    middle, *others = random.sample(nodes, len(nodes))
    half = len(others) // 2
    return isolate(others[:half], others[half:]) | {middle: set()}


def one_way(nodes: Sequence[str], random: Random) -> Cut:
    """Some nodes, at least one and not all, hear nothing of the rest, which hears them."""
    shuffled = random.sample(nodes, len(nodes))
    size = random.randint(1, max(1, len(nodes) - 1))
    return {node: set(shuffled[size:]) for node in shuffled[:size]}


SHAPES: Mapping[str, Shape] = {
    "one": one,
    # The most nodes that are fewer than a third.
    "minority-third": _split(lambda count: (count - 1) // 3),
    # Two halves; with an odd number of nodes one of them has a majority.
    "majority": _split(lambda count: count // 2),
    "majorities-ring": majorities_ring,
    "bridge": bridge,
    "one-way": one_way,
}
REAL_SHAPES = ("one", "minority-third", "majority", "majorities-ring")  # the real tool's


@dataclass
class Partition(Fault):
    """A `Fault` that cuts the network between nodes in one of `shapes`."""

    network: Network
    nodes: Sequence[str]
    shapes: Sequence[str] = REAL_SHAPES

    name = "partition"

    def plan(self, random: Random) -> Plan:
        shape = random.choice(self.shapes)
        return Plan(Keyword(shape), partial(self._cut, SHAPES[shape](self.nodes, random)))

    def end(self, done: Done) -> None:
        self.network.heal()
        done(Keyword("network-healed"))

    def _cut(self, cut: Cut, done: Done) -> None:
        self.network.partition(cut)
        done([Keyword("isolated"), cut])
