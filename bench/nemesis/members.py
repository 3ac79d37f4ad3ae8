"""`kill`, `pause`, `membership`: killed nodes are started again later, paused ones go on, others are replaced.

In `membership` nodes leave for good, and new ones join in their places. A node that leaves dies at once and
never comes back. Later as many new nodes join as have left, each under a name that no node had before, and with
an empty memory. One node always stays.

Who is told: the `init` of a new node, and of a restarted one, names all that are members then. The others are
told nothing, for Maelstrom has no message for that, and nodes on its libraries exit at a message that they do
not know. A new node may introduce itself; messages to one that has left are lost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from bench.cluster import Cluster
from bench.nemesis.fault import Done, Fault, Plan, choose_targets
from runs.history import Keyword

# fault -> how it begins for a node, and how it ends; with what has become of the node then
_DEEDS = {
    "kill": ((Cluster.kill, "killed"), (Cluster.restart, "started")),
    "pause": ((Cluster.pause, "paused"), (Cluster.resume, "resumed")),
}


@dataclass
class Processes(Fault):
    """A `Fault` of nodes, `kill` or `pause`.

    Killed nodes die at once and start again later with an empty memory. Paused ones stand still, and go on.
    """

    name: str
    cluster: Cluster
    targets: str

    def plan(self, random: Random) -> Plan:
        word, nodes = choose_targets(self.targets, self.cluster.names, random)
        there = [node for node in nodes if node in self.cluster.members]
        return Plan(Keyword(word), partial(self._begin, there))

    def _begin(self, nodes: Sequence[str], done: Done) -> None:
        living = [node for node in nodes if node not in self.cluster.killed]
        self._do(living, *_DEEDS[self.name][0], done)

    def end(self, done: Done) -> None:
        down = self.cluster.killed if self.name == "kill" else self.cluster.paused
        self._do(down, *_DEEDS[self.name][1], done)

    def _do(
        self, nodes: Sequence[str], act: Callable[[Cluster, str], None], became: str, done: Done
    ) -> None:
        """Do it to each node; the history gets a map from node to what became of it, as Jepsen's does."""
        for node in nodes:
            act(self.cluster, node)
        done({node: Keyword(became) for node in nodes})


class Membership(Fault):
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
