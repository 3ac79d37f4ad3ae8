"""`kill`, `pause` and `membership`: what becomes of nodes.

Killed nodes are started again later, paused ones go on. In `membership` nodes leave for good, and new ones join
in their places.

A node that leaves dies at once and never comes back. Later as many new nodes join as have left, each under a
name that no node had before, and with an empty memory. One node always stays.

Who is told: the `init` of a new node, and of a restarted one, names all that are members then. The others are
told nothing, for Maelstrom has no message for that, and nodes on its libraries exit at a message that they do
not know. A new node may introduce itself; messages to one that has left are lost.
"""

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


# ----------------------------------------------------------------


class Membership:
    """A `Fault` that replaces nodes. `prepare` is told of each node that has joined."""

    name = "membership"

    def __init__(self, cluster: Cluster, targets: str, prepare: Callable[[str], object]) -> None:
        self.possible = len(cluster.names) > 1
        self._cluster = cluster
        self._targets = targets
        self._prepare = prepare

    def plan(self, random: Random) -> Plan:
        word, nodes = choose_targets(self._targets, self._cluster.names, random)
        stays = random.choice(self._cluster.members)
        leaving = [node for node in nodes if node in self._cluster.members]
        if len(leaving) == len(self._cluster.members):
            leaving.remove(stays)
        return Plan(Keyword(word), partial(self._begin, leaving))

    def end(self, done: Done) -> None:
        joined = self._cluster.join()
        for node in joined:
            self._prepare(node)
        done({node: Keyword("joined") for node in joined})

    def _begin(self, nodes: Sequence[str], done: Done) -> None:
        done({node: self._cluster.leave(node) for node in nodes})
