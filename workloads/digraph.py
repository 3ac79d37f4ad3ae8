"""Graphs of transactions: edges by kind, strongly connected components, shortest cycles, and realtime order.

Vertices are numbers: the transactions in order of completion, then *moments* of the run.

Realtime order has quadratically many pairs. Elle draws its transitive reduction, which has an edge for
each pair of concurrent operations. This graph draws the order through moments: T1 -> the first moment
after it -> the next moment ... -> T2. That has the same paths, and at most three edges for a transaction.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import rustworkx as rx

from runs.history import Op

Edges = list[tuple[int, int]]
_STARTS = 64  # how many transactions of a component are tried as the start of the shortest cycle


class Interval(Protocol):
    """A transaction: where in the history it was invoked, if it was, and completed."""

    @property
    def invoked_at(self) -> int | None: ...
    @property
    def completed_at(self) -> int: ...


@dataclass(frozen=True)
class Graph:
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


@dataclass(frozen=True)
class Digraph:
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
    distances = rx.dijkstra_shortest_path_lengths(graph, start, float)
    distance_of = {**distances, start: 0.0}
    path = [start]
    while len(path) == 1 or path[-1] != start:
        edges = graph.in_edges(path[-1])
        path.append(min(edges, key=lambda edge: distance_of[edge[0]] + edge[2])[0])
    return path[::-1]


def realtime_edges(
    history: Sequence[Op], transactions: Sequence[Interval]
) -> Iterator[tuple[int, int]]:
    """Edges from what was acknowledged to what was invoked later, by way of moments.

    A moment comes before the first invocation after some acknowledgement, and follows all of these.
    """
    number_of = {each.completed_at: number for number, each in enumerate(transactions)}
    completed_by = {each.invoked_at: each.completed_at for each in transactions}
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
