"""Of rustworkx what the checkers of transactions use, in Python alone. Edges come as there, the last first."""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any

Weighted = tuple[int, int, Any]


class PyDiGraph:
    """A graph of vertices 0, 1, 2, ..."""

    def __init__(self) -> None:
        self._out: list[list[Weighted]] = []
        self._in: list[list[Weighted]] = []

    def __len__(self) -> int:
        return len(self._out)

    def add_nodes_from(self, values: Iterable[object]) -> None:
        self._grow(len(self) + len(list(values)))

    def extend_from_weighted_edge_list(self, edges: Iterable[Weighted]) -> None:
        for edge in edges:
            start, end, _ = edge
            self._grow(max(start, end) + 1)
            self._out[start].append(edge)
            self._in[end].append(edge)

    def extend_from_edge_list(self, edges: Iterable[tuple[int, int]]) -> None:
        self.extend_from_weighted_edge_list((start, end, None) for start, end in edges)

    add_edges_from_no_data = extend_from_edge_list

    def successor_indices(self, vertex: int) -> list[int]:
        return [end for _, end, _ in reversed(self._out[vertex])]

    def in_edges(self, vertex: int) -> list[Weighted]:
        return self._in[vertex][::-1]

    def _grow(self, count: int) -> None:
        for edges in (self._out, self._in):
            edges.extend([] for _ in range(count - len(edges)))


def strongly_connected_components(graph: PyDiGraph) -> list[list[int]]:
    """Tarjan's algorithm, without recursion. [Tarjan, Depth-first search and linear graph algorithms, 1972]"""
    number: dict[int, int] = {}  # in order of discovery
    low: dict[int, int] = {}
    done: set[int] = set()
    waiting: list[int] = []
    found: list[list[int]] = []
    for root in range(len(graph)):
        way = [] if root in number else [(root, iter(graph.successor_indices(root)))]
        while way:
            vertex, following = way[-1]
            if vertex not in number:
                number[vertex] = low[vertex] = len(number)
                waiting.append(vertex)
            for after in following:
                if after not in number:
                    way.append((after, iter(graph.successor_indices(after))))
                    break
                if after not in done:
                    low[vertex] = min(low[vertex], number[after])
            else:
                way.pop()
                if way:
                    low[way[-1][0]] = min(low[way[-1][0]], low[vertex])
                if low[vertex] == number[vertex]:
                    component = [waiting.pop()]
                    while component[-1] != vertex:
                        component.append(waiting.pop())
                    found.append(component)
                    done.update(component)
    return found


def dijkstra_shortest_path_lengths(
    graph: PyDiGraph, start: int, cost: Callable[[Any], float]
) -> dict[int, float]:
    """What a way from `start` to each other vertex costs at least."""
    lengths: dict[int, float] = {}
    heap = [(0.0, start)]
    while heap:
        length, vertex = heappop(heap)
        if vertex not in lengths:
            lengths[vertex] = length
            for _, end, weight in graph._out[vertex]:
                heappush(heap, (length + cost(weight), end))
    del lengths[start]
    return lengths
