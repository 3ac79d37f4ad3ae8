"""Faults. One so far, `partition`: the network between nodes is cut and healed, again and again.

Each start picks one of four shapes at random: `one` node alone, a `minority-third` (the most nodes
that are fewer than a third), a `majority` split in two halves, or a `majorities-ring`, in which
each node sees a majority but no two see the same. [facts: Jepsen's nemesis.clj and
nemesis/combined.clj]
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from bench.history import NEMESIS, OpType
from bench.keyword import Keyword
from bench.net import Network

Cut = dict[str, set[str]]  # receiver -> the senders it drops
START, STOP = "start-partition", "stop-partition"
FAULTS = ("partition",)


def isolate(*components: Sequence[str]) -> Cut:
    """The cut in which nobody hears anybody outside of its own component."""
    everyone = {node for component in components for node in component}
    return {node: everyone - set(component) for component in components for node in component}


def one(nodes: Sequence[str], random: Random) -> Cut:
    """One node alone."""
    loner = random.choice(nodes)
    return isolate([loner], [node for node in nodes if node != loner])


def minority_third(nodes: Sequence[str], random: Random) -> Cut:
    """As many nodes as are fewer than a third of all, against the rest."""
    return _split(nodes, (len(nodes) - 1) // 3, random)


def majority(nodes: Sequence[str], random: Random) -> Cut:
    """Two halves; with an odd number of nodes one of them has a majority."""
    return _split(nodes, len(nodes) // 2, random)


def _split(nodes: Sequence[str], size: int, random: Random) -> Cut:
    shuffled = random.sample(nodes, len(nodes))
    return isolate(shuffled[:size], shuffled[size:])


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


SHAPES: Mapping[str, Callable[[Sequence[str], Random], Cut]] = {
    "one": one,
    "minority-third": minority_third,
    "majority": majority,
    "majorities-ring": majorities_ring,
}

# Appends an operation to the history: (type, process, f, value).
Record = Callable[[OpType, str, str, Any], object]


class PartitionNemesis:
    """Alternates cutting and healing; `pause_ns` draws the time until the next turn.

    Turns are drawn from `random` alone, so the same seed gives the same faults at the same times.
    """

    def __init__(
        self,
        network: Network,
        nodes: Sequence[str],
        interval_s: float,
        random: Random,
        record: Record,
    ) -> None:
        self._network = network
        self._nodes = nodes
        self._interval_ns = int(interval_s * 1e9)
        self._random = random
        self._record = record
        self.active: str | None = None  # the shape of the present partition

    def turn(self) -> int:
        """Start a partition, or end the present one. Returns nanoseconds until the next turn."""
        if self.active is None:
            self._start()
        else:
            self.stop()
        return int(self._random.random() * 2 * self._interval_ns)

    def stop(self) -> None:
        """Heal the network; recorded also when there was no partition, as at the end of a run."""
        self._record("info", NEMESIS, STOP, None)
        self._network.heal()
        self.active = None
        self._record("info", NEMESIS, STOP, Keyword("network-healed"))

    def _start(self) -> None:
        self.active = self._random.choice(list(SHAPES))
        self._record("info", NEMESIS, START, Keyword(self.active))
        cut = SHAPES[self.active](self._nodes, self._random)
        self._network.partition(cut)
        self._record("info", NEMESIS, START, [Keyword("isolated"), cut])
