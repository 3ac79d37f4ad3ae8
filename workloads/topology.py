"""Which nodes are neighbours: the real tool's arrangements. [facts: Maelstrom's workload/broadcast.clj]"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isqrt

Neighbours = dict[str, list[str]]


def topology(name: str, nodes: Sequence[str]) -> Neighbours:
    """The neighbours of each node in an arrangement of `TOPOLOGIES`. A line of one node is empty."""
    return TOPOLOGIES[name](nodes)


def _of_edges(nodes: Sequence[str], parents: Mapping[int, Sequence[int]]) -> Neighbours:
    """Neighbours by number of each node, as names."""
    return {nodes[number]: [nodes[other] for other in others] for number, others in parents.items()}


def _grid(nodes: Sequence[str]) -> Neighbours:
    """Rows of a square that is just large enough; each node has at most four neighbours."""
    width = isqrt(len(nodes) - 1) + 1

    def around(number: int) -> list[int]:
        column = number % width
        beside = [number + width, number - width]
        beside += [number + 1] if column + 1 < width else []
        beside += [number - 1] if column else []
        return [other for other in beside if 0 <= other < len(nodes)]

    return _of_edges(nodes, {number: around(number) for number in range(len(nodes))})


def _line(nodes: Sequence[str]) -> Neighbours:
    """Each node has the one before and the one after it."""
    return _tree(1, nodes) if len(nodes) > 1 else {}


def _total(nodes: Sequence[str]) -> Neighbours:
    """Everybody has everybody else."""
    return {node: [other for other in nodes if other != node] for node in nodes}


def _tree(branches: int, nodes: Sequence[str]) -> Neighbours:
    """Each node has its parent, then its children, of which there are at most so many."""

    def around(number: int) -> list[int]:
        first = number * branches + 1
        children = range(first, min(first + branches, len(nodes)))
        return [*([(number - 1) // branches] if number else []), *children]

    return _of_edges(nodes, {number: around(number) for number in range(len(nodes))})


TOPOLOGIES: dict[str, Callable[[Sequence[str]], Neighbours]] = {
    "line": _line,
    "grid": _grid,
    "total": _total,
    "tree": partial(_tree, 2),
    "tree2": partial(_tree, 2),
    "tree3": partial(_tree, 3),
    "tree4": partial(_tree, 4),
}
