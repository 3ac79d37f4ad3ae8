"""`kill` and `pause`: what becomes of a node's process."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from bench.cluster import Cluster
from bench.nemesis.fault import Done, Plan, choose_targets
from runs.keyword import Keyword


class _OfProcesses(ABC):
    """A `Fault` that does the same to each of some nodes."""

    name: str
    possible = True

    def __init__(self, cluster: Cluster, targets: str) -> None:
        self._cluster = cluster
        self._targets = targets

    def plan(self, random: Random) -> Plan:
        word, nodes = choose_targets(self._targets, self._cluster.names, random)
        there = [node for node in nodes if node in self._cluster.members]
        return Plan(Keyword(word), partial(self._begin, there))

    @abstractmethod
    def _begin(self, nodes: Sequence[str], done: Done) -> None: ...


class Kill(_OfProcesses):
    """Nodes die at once and are started again later, with an empty memory."""

    name = "kill"

    def _begin(self, nodes: Sequence[str], done: Done) -> None:
        _each(nodes, self._cluster.kill, "killed", done)

    def end(self, done: Done) -> None:
        _each(self._cluster.killed, self._cluster.restart, "started", done)


class Pause(_OfProcesses):
    """Living nodes stand still, and go on later."""

    name = "pause"

    def _begin(self, nodes: Sequence[str], done: Done) -> None:
        living = [node for node in nodes if node not in self._cluster.killed]
        _each(living, self._cluster.pause, "paused", done)

    def end(self, done: Done) -> None:
        _each(self._cluster.paused, self._cluster.resume, "resumed", done)


def _each(nodes: Sequence[str], act: Callable[[str], None], became: str, done: Done) -> None:
    """Do it to each node; the history gets a map from node to what became of it, as Jepsen's does."""
    for node in nodes:
        act(node)
    done({node: Keyword(became) for node in nodes})
