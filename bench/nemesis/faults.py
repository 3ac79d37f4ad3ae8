"""What each fault does to links, nodes and the store; `fence` stands by itself.

`partition`: the network between nodes is cut and healed; services stay reachable.

`one` node alone, a `minority-third` (the most nodes that are fewer than a third), a `majority` split in two
halves, or a `majorities-ring`, in which each node sees a majority but no two see the same: these four are
the real tool's, and drawn by default. Two more are ours: a `bridge`, where one node sees both halves that
do not see each other, and `one-way`, where some nodes are heard by the rest and do not hear it. [facts:
Jepsen's nemesis.clj and nemesis/combined.clj]

`loss`, `duplicate` and `slow`: messages on the links between servers get lost, come twice, or take long.

A fault affects the messages that leave or reach one of its nodes and have no client at either end:

    loss        node to node, node to service, service to node
    duplicate   node to node, service to node; never a request to a service, which would execute it twice
                and would no longer have the consistency that it promises
    slow        the same links as loss

The network asks `LinkFaults` only while a fault is in force.

`kill`, `pause`, `membership`: killed nodes are started again later, paused ones go on. In `membership` nodes
leave for good, and new ones join in their places.

A node that leaves dies at once and never comes back. Later as many new nodes join as have left, each under a
name that no node had before, and with an empty memory. One node always stays.

Who is told: the `init` of a new node, and of a restarted one, names all that are members then. The others are
told nothing, for Maelstrom has no message for that, and nodes on its libraries exit at a message that they do
not know. A new node may introduce itself; messages to one that has left are lost.

`store`: requests of some nodes to the `lin-kv` service are late, or their answers get lost.

    late        it takes 10 to 300 ms
    abandoned   it takes 1.2 to 3 s: longer than most clients wait
    lost        it is executed at once, and the answer is lost

A late or abandoned request waits before it is executed, or its answer waits afterwards, with equal odds. Either
way it is executed once, between its arrival and its answer: the service stays linearizable. What waits when the
fault ends still comes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, NamedTuple

from bench.cluster import Cluster
from bench.loop import Loop
from bench.nemesis.fault import Done, Plan, choose_targets
from bench.net import Network
from bench.services import Body
from runs.keyword import Keyword, keywords

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
class Partition:
    """A `Fault` that cuts the network between nodes in one of `shapes`."""

    network: Network
    nodes: Sequence[str]
    shapes: Sequence[str] = REAL_SHAPES

    name = "partition"
    possible = True

    def plan(self, random: Random) -> Plan:
        shape = random.choice(self.shapes)
        return Plan(Keyword(shape), partial(self._cut, SHAPES[shape](self.nodes, random)))

    def end(self, done: Done) -> None:
        self.network.heal()
        done(Keyword("network-healed"))

    def _cut(self, cut: Cut, done: Done) -> None:
        self.network.partition(cut)
        done([Keyword("isolated"), cut])


# ---------------------------------------------------------------- faults of links


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
class Links:
    """A `Fault` on the links of some nodes; `name` is one of `LEVELS`."""

    name: str
    network: Network
    faults: LinkFaults
    nodes: Sequence[str]
    targets: str
    possible = True

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


# ---------------------------------------------------------------- kill and pause


# fault -> how it begins for a node, and how it ends; with what has become of the node then
_DEEDS = {
    "kill": ((Cluster.kill, "killed"), (Cluster.restart, "started")),
    "pause": ((Cluster.pause, "paused"), (Cluster.resume, "resumed")),
}


@dataclass
class Processes:
    """A `Fault` of nodes, `kill` or `pause`.

    Killed nodes die at once and start again later with an empty memory. Paused ones stand still, and go on.
    """

    name: str
    cluster: Cluster
    targets: str
    possible = True

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


# ---------------------------------------------------------------- membership


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


# ---------------------------------------------------------------- the store


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


# Lets a fault begin in place of the one before; None ends it.
Impose = Callable[[StoreFault | None], object]


@dataclass
class StoreFaults:
    """Serves the requests to one service under a fault, or under none."""

    loop: Loop
    random: Random
    _fault: StoreFault | None = None

    def impose(self, fault: StoreFault | None) -> None:
        """An `Impose`."""
        self._fault = fault

    def serve(
        self, client: str, execute: Callable[[], Body], answer: Callable[[Body], object]
    ) -> None:
        """Execute a request and answer it, sooner or later or never (a `bench.services.Serve`)."""
        fault = self._fault
        if not fault or client not in fault.nodes or self.random.random() >= fault.share:
            answer(execute())
        elif fault.mode == LOST:
            execute()
        elif self.random.random() < 0.5:
            self._later(fault.mode, lambda: answer(execute()))
        else:
            self._later(fault.mode, answer, execute())

    def _later(self, mode: str, function: Callable[..., object], *arguments: Any) -> None:
        self.loop.call_later(self.random.randint(*WAITS_NS[mode]), function, *arguments)


@dataclass
class Store:
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
    possible = True

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
