"""The dependency graph between transactions, and the little graph theory that its cycles need.

Vertices are numbers: the transactions in order of completion, then *moments* of the run. Edges:

    wr         T1 sent a message and T2 polled it
    ww         T1's message immediately precedes T2's in the log of a key (only on request)
    realtime   T1 was acknowledged before T2 was invoked

Realtime order has quadratically many pairs. Instead of a transitive reduction (elle's, which has an edge
for each pair of concurrent operations), it is drawn through moments: T1 -> the first moment after it ->
the next moment ... -> T2. That has the same paths, and at most three edges for a transaction.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from workloads.kafka.checker.facts import Facts, Key, Transaction
from workloads.kafka.checker.versions import Log

Successors = dict[int, list[int]]
Neighbours = Callable[[int], Iterable[int]]


@dataclass
class Graph:
    """The edges of each kind; vertices from `first_moment` on are moments."""

    first_moment: int
    edges: dict[str, Successors] = field(default_factory=dict)

    def neighbours(self, kinds: Iterable[str], within: set[int] | None = None) -> Neighbours:
        """Where the edges of `kinds` lead from a vertex, `within` a set of vertices if one is given."""
        chosen = [self.edges[kind] for kind in kinds if kind in self.edges]

        def successors(vertex: int) -> Iterable[int]:
            reached = (to for edges in chosen for to in edges.get(vertex, ()))
            return reached if within is None else (to for to in reached if to in within)

        return successors

    def is_empty(self) -> bool:
        """Whether no transaction depends on another."""
        return not any(self.edges.values())

    def transactions_in(self, vertices: Iterable[int]) -> list[int]:
        """Those of `vertices` that are transactions, in order of completion."""
        return sorted(vertex for vertex in vertices if vertex < self.first_moment)


def dependency_graph(facts: Facts, logs: Mapping[Key, Log], ww_deps: bool) -> Graph:
    """The graph of all transactions in `facts`; `ww_deps` asks for write-write edges too."""
    graph = Graph(len(facts.transactions))
    graph.edges["wr"] = _wr_edges(facts)
    if ww_deps:
        graph.edges["ww"] = _ww_edges(facts, logs)
    graph.edges["realtime"] = _realtime_edges(facts)
    return graph


def _numbers(facts: Facts) -> dict[int, int]:
    return {each.completed_at: number for number, each in enumerate(facts.transactions)}


def _wr_edges(facts: Facts) -> Successors:
    """Edges from writers to other transactions; a send that was cut off is no vertex."""
    number_of = _numbers(facts)
    edges: dict[int, list[int]] = {}
    for reader, transaction in enumerate(facts.transactions):
        found: set[Transaction | None] = set()
        for key, run in transaction.polls.items():
            found.update(map(facts.writers.get(key, {}).get, run.messages))
        for writer in found:
            number = number_of.get(writer.completed_at, reader) if writer else reader
            if number != reader:
                edges.setdefault(number, []).append(reader)
    return edges


def _ww_edges(facts: Facts, logs: Mapping[Key, Log]) -> Successors:
    number_of = _numbers(facts)
    edges: dict[int, list[int]] = {}
    for key, by_message in facts.writers.items():
        log = logs.get(key, Log())
        for message, later in by_message.items():
            index = log.index_of.get(message, 0)
            earlier = by_message.get(log.order[index - 1]) if index else None
            if earlier is None or earlier is later:
                continue
            pair = [number_of.get(each.completed_at) for each in (earlier, later)]
            if pair[0] is not None and pair[1] is not None:
                edges.setdefault(pair[0], []).append(pair[1])
    return edges


def _realtime_edges(facts: Facts) -> Successors:
    """Moments are numbered from the number of transactions on; each gathers what was acknowledged before."""
    number_of = _numbers(facts)
    completed_by = {each.invoked_at: each.completed_at for each in facts.transactions}
    edges: dict[int, list[int]] = {}
    next_moment = len(facts.transactions)
    moments: list[int] = []  # the last one, once there is one
    acknowledged: list[int] = []  # since then
    for at, op in enumerate(facts.history):
        if at in number_of and op.type == "ok":
            acknowledged.append(number_of[at])
        elif op.type == "invoke" and at in completed_by and (acknowledged or moments):
            if acknowledged:
                for each in (*moments, *acknowledged):
                    edges.setdefault(each, []).append(next_moment)
                moments, acknowledged = [next_moment], []
                next_moment += 1
            edges.setdefault(moments[0], []).append(number_of[completed_by[at]])
    return edges


def components(vertices: Iterable[int], neighbours: Neighbours) -> list[list[int]]:
    """The strongly connected components of more than one vertex."""
    search = _Tarjan(neighbours)
    for vertex in vertices:
        if vertex not in search.order:
            search.explore(vertex)
    return search.found


class _Tarjan:
    """Tarjan's algorithm (1972), with a stack of its own in place of recursion."""

    def __init__(self, neighbours: Neighbours) -> None:
        self.neighbours = neighbours
        self.order: dict[int, int] = {}
        self.found: list[list[int]] = []
        self._low: dict[int, int] = {}
        self._open: list[int] = []
        self._is_open: set[int] = set()

    def explore(self, root: int) -> None:
        """Search everything that `root` reaches and that has not been searched."""
        order, low = self.order, self._low
        work = [(root, self._enter(root))]
        while work:
            vertex, following = work[-1]
            for after in following:
                if after not in order:
                    work.append((after, self._enter(after)))
                    break
                if after in self._is_open:
                    low[vertex] = min(low[vertex], order[after])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[vertex])
                if low[vertex] == order[vertex]:
                    self._leave(vertex)

    def _enter(self, vertex: int) -> Iterator[int]:
        self.order[vertex] = self._low[vertex] = len(self.order)
        self._open.append(vertex)
        self._is_open.add(vertex)
        return iter(self.neighbours(vertex))

    def _leave(self, root: int) -> None:
        place = len(self._open) - 1
        while self._open[place] != root:
            place -= 1
        component = self._open[place:]
        del self._open[place:]
        self._is_open.difference_update(component)
        if len(component) > 1:
            self.found.append(component)


def shortest_cycle(start: int, neighbours: Neighbours, is_free: Callable[[int], bool]) -> list[int]:
    """A shortest path from `start` back to it, both ends included; entering a free vertex costs nothing.

    `start` must be on some cycle. (Breadth-first search with edges of cost 0 and 1.)
    """
    origin: dict[int, int] = {}
    queue = deque([start])
    while queue:
        vertex = queue.popleft()
        for after in neighbours(vertex):
            if after == start:
                return _path(start, vertex, origin)
            if after not in origin:
                origin[after] = vertex
                (queue.appendleft if is_free(after) else queue.append)(after)
    raise ValueError(f"vertex {start} is on no cycle")


def _path(start: int, last: int, origin: Mapping[int, int]) -> list[int]:
    path = [start, last] if last != start else [start]
    while path[-1] != start:
        path.append(origin[path[-1]])
    return path[::-1]
