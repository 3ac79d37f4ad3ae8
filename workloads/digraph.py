"""Graphs of transactions: edges by kind, the levels that their cycles break, shortest cycles, realtime order.

Vertices are numbers: the transactions in order of completion, then *moments* of the run.

Realtime order has quadratically many pairs. Elle draws its transitive reduction, which has an edge for
each pair of concurrent operations. This graph draws the order through moments: T1 -> the first moment
after it -> the next moment ... -> T2. That has the same paths, and at most three edges for a transaction.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import rustworkx as rx

from runs.facts import grouped
from runs.history import Keyword, Op, keywords
from workloads.interface import Case
from workloads.txn.models import stronger, usual

EMPTY_GRAPH = "empty-transaction-graph"  # the anomaly of a history without any dependency
Edges = list[tuple[int, int]]
_STARTS = 64  # how many transactions of a component are tried as the start of the shortest cycle


class Level(NamedTuple):
    """A model, and the edges that must have no cycle if it holds.

    `apart`: but for cycles in which two edges of the last kind are neighbours.
    """

    model: str
    kinds: tuple[str, ...]
    apart: bool = False


class Graph(NamedTuple):
    """The edges of each kind. Vertices below `transactions` are transactions, the others are moments."""

    transactions: int
    edges: Mapping[str, Edges]

    def is_empty(self) -> bool:
        """Whether no transaction depends on another."""
        return not any(self.edges.values())

    def of(self, kinds: Iterable[str]) -> "Digraph":
        """The graph with the edges of these kinds only."""
        graph: rx.PyDiGraph[None, None] = rx.PyDiGraph()
        for kind in kinds:
            graph.extend_from_edge_list(self.edges[kind])
        return Digraph(graph, self.transactions)

    def apart(self, plain: Iterable[str], rare: str) -> "Digraph":
        """Without two `rare` edges in a row: a transaction t that one enters is t + `transactions`."""
        count = self.transactions

        def moved(vertex: int) -> int:
            return vertex if vertex < count else vertex + count  # moments come after both

        graph: rx.PyDiGraph[None, None] = rx.PyDiGraph()
        for kind in plain:
            edges = self.edges[kind]
            graph.extend_from_edge_list([(moved(a), moved(b)) for a, b in edges])
            graph.extend_from_edge_list([(a + count, moved(b)) for a, b in edges if a < count])
        graph.extend_from_edge_list([(a, b + count) for a, b in self.edges[rare]])
        return Digraph(graph, 2 * count)

    def broken(self, levels: Iterable[Level]) -> Iterator["BrokenLevel"]:
        """The levels that cycles break, the weakest models first.

        Each strongly connected component of the whole graph breaks every level that has a cycle in it, and that
        no weaker broken level implies.
        """
        wholes = self.of(self.edges).components()
        whole_of = {vertex: number for number, whole in enumerate(wholes) for vertex in whole}
        failed: list[set[str]] = [set() for _ in wholes]  # the models that cannot hold
        for level in levels if wholes else ():
            *plain, last = level.kinds
            digraph = self.apart(plain, last) if level.apart else self.of(level.kinds)
            cyclic = grouped(
                (whole_of[digraph.transactions_in(each)[0] % self.transactions], each)
                for each in digraph.components()
            )
            for number, components in sorted(cyclic.items()):
                if level.model not in failed[number]:
                    failed[number] |= stronger([level.model])
                    yield self._broken(level, digraph, components)

    def _broken(
        self, level: Level, digraph: "Digraph", components: list[list[int]]
    ) -> "BrokenLevel":
        smallest = min(components, key=lambda each: len(digraph.transactions_in(each)))
        members = {each % self.transactions for each in digraph.transactions_in(smallest)}
        cycle = [each % self.transactions for each in digraph.short_cycle(smallest)]
        return BrokenLevel(level, sorted(members), cycle)


class BrokenLevel(NamedTuple):
    """A level that does not hold, the transactions of its smallest component, and a short cycle in that."""

    level: Level
    members: list[int]
    cycle: list[int]

    def statement(self, subgraph: Iterable[str], transactions: Sequence[Any]) -> tuple[str, Case]:
        """The type of anomaly that says that there is a cycle, and its case [elle.txn].

        `transactions`: those of the graph; each has its operation as `op`.
        """
        name = f"{self.level.model}-cycle-exists"
        return name, keywords(
            type=Keyword(name),
            **{"not": Keyword(usual(self.level.model))},
            subgraph=list(map(Keyword, subgraph)),
            scc_size=len(self.members),
            scc={transactions[member].op.index for member in self.members},
        )


class Digraph(NamedTuple):
    """A graph of transactions and moments."""

    graph: "rx.PyDiGraph[None, None]"
    transactions: int

    def components(self) -> list[list[int]]:
        """The strongly connected components of more than one vertex, each ascending."""
        found = rx.strongly_connected_components(self.graph)
        return sorted(sorted(each) for each in found if len(each) > 1)

    def transactions_in(self, vertices: Iterable[int]) -> list[int]:
        """Those of `vertices` that are transactions."""
        return [vertex for vertex in vertices if vertex < self.transactions]

    def short_cycle(self, component: list[int]) -> list[int]:
        """The transactions of a short cycle in a component, the first one repeated at the end.

        It is the shortest cycle through any of the component's first transactions.
        """
        members = set(component)
        # A cycle is as long as the number of its transactions: an edge to a moment costs nothing.
        costs = [
            (vertex, after, float(after < self.transactions))
            for vertex in component
            for after in self.graph.successor_indices(vertex)
            if after in members
        ]
        inside: rx.PyDiGraph[None, float] = rx.PyDiGraph()
        inside.extend_from_weighted_edge_list(costs)
        starts = self.transactions_in(component)[:_STARTS]
        cycles = (_shortest_cycle(inside, start) for start in starts)
        return min(map(self.transactions_in, cycles), key=len)


def _shortest_cycle(graph: "rx.PyDiGraph[None, float]", start: int) -> list[int]:
    """A cheapest path from `start` back to it, both ends included; `start` is on a cycle.

    The library's own paths would need memory quadratic in their length, so this walks back along its
    distances. The walk ends, because the moments, between which edges cost nothing, form no cycle.
    """
    distance_of = {**rx.dijkstra_shortest_path_lengths(graph, start, float), start: 0.0}
    path = [start]
    while len(path) == 1 or path[-1] != start:
        edges = graph.in_edges(path[-1])
        path.append(min(edges, key=lambda edge: distance_of[edge[0]] + edge[2])[0])
    return path[::-1]


def realtime_edges(
    history: Sequence[Op], transactions: Sequence[tuple[int | None, int]]
) -> Iterator[tuple[int, int]]:
    """Edges from what was acknowledged to what was invoked later, by way of moments.

    `transactions`: where in the history each was invoked, if it was, and completed.
    A moment comes before the first invocation after some acknowledgement, and follows all of these.
    """
    number_of = {completed: number for number, (_, completed) in enumerate(transactions)}
    completed_by = dict(transactions)
    moment = len(transactions) - 1  # the last one, once there is one
    before: list[int] = []  # the moment before the next one, and what was acknowledged since
    for at, op in enumerate(history):
        if at in number_of and op.type == "ok":
            before.append(number_of[at])
        elif op.type == "invoke" and at in completed_by and before:
            if before != [moment]:
                moment += 1
                yield from ((each, moment) for each in before)
                before = [moment]
            yield moment, number_of[completed_by[at]]
