"""Cycles of dependencies between transactions, and the models that they rule out. [Adya 1999; elle.txn]

Edges say that one transaction must come before another:

    ww         T2 overwrote (or appended right after) what T1 wrote
    wr         T2 read what T1 wrote
    rw         T2 overwrote (or appended right after) what T1 read
    process    T1 was acknowledged to the process that invoked T2 later
    realtime   T1 was acknowledged before T2 was invoked

A model asks that some of these edges have no cycle (`LEVELS`). Snapshot isolation asks it of cycles in which
no two rw edges are neighbours. These are looked for in a graph that has each transaction twice: as it is
entered by an rw edge, and by another. No rw edge leaves the first of the two.

Each strongly connected component of the whole graph gives, for every model that fails in it and that no weaker
failing model implies, a statement (`PL-3-cycle-exists`) and one short cycle. The cycle is named by its edges:
G0 has only ww, G1c also wr, G-single-item one rw, G-nonadjacent-item several that are no neighbours, G2-item
any. The name ends with `-process` or `-realtime` if the cycle needs such an edge.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from runs.history import Keyword, Op, keywords
from workloads.digraph import Edges, Graph, Level, realtime_edges
from workloads.interface import Case

Pair = tuple[int, int]
# (transaction, transaction) -> what the edge is about: key, value, and the value that came after it if any
DataEdges = dict[Pair, tuple[Any, ...]]
DATA = ("ww", "wr", "rw")
ORDERS = ("process", "realtime")


@dataclass(frozen=True, slots=True)
class Txn:
    """A transaction that succeeded or may have: its completion, and its place in the history."""

    op: Op
    invoked_at: int
    completed_at: int

    @property
    def is_ok(self) -> bool:
        return self.op.type == "ok"


def _levels(order: tuple[str, ...], models: Sequence[str]) -> Iterator[Level]:
    ww, wr, si, *serializable = models
    yield Level(ww, ("ww", *order))
    yield Level(wr, ("ww", "wr", *order))
    for model in (si, *serializable):
        yield Level(model, ("ww", "wr", *order, "rw"), apart=model == si)


LEVELS = (
    *_levels((), ("PL-1", "PL-2", "PL-SI", "PL-2.99", "PL-3")),
    *_levels(
        ("process",),
        (
            "strong-session-PL-1",
            "strong-session-PL-2",
            "strong-session-snapshot-isolation",
            "strong-session-serializable",
        ),
    ),
    *_levels(("realtime",), ("strong-PL-1", "strong-PL-2", "strong-snapshot-isolation", "PL-SS")),
)


@dataclass(frozen=True)
class Dependencies:
    """The transactions of a history, in order of completion, and the edges between them.

    `orders` are those of process and realtime order that are asked for.
    """

    history: Sequence[Op]
    transactions: Sequence[Txn]
    data: Mapping[str, DataEdges]
    orders: frozenset[str]

    @cached_property
    def graph(self) -> Graph:
        """Build the graph; orders that are not asked for have no edges."""
        return Graph(len(self.transactions), {kind: self._edges(kind) for kind in (*DATA, *ORDERS)})

    def _edges(self, kind: str) -> Edges:
        if kind in DATA:
            return list(self.data[kind])
        if kind not in self.orders:
            return []
        if kind == "realtime":
            ends = [(each.invoked_at, each.completed_at) for each in self.transactions]
            return list(realtime_edges(self.history, ends))
        return list(self._process_edges())

    def _process_edges(self) -> Iterator[Pair]:
        """From each acknowledged transaction to the next one of its process."""
        last: dict[Any, int] = {}
        for number, txn in enumerate(self.transactions):
            if txn.op.process in last:
                yield last[txn.op.process], number
            if txn.is_ok:
                last[txn.op.process] = number

    def cases(self) -> Iterator[tuple[str, Case]]:
        """What is wrong, by the type of anomaly; the weakest models first."""
        asked = self.orders | set(DATA)
        for broken in self.graph.broken(each for each in LEVELS if asked.issuperset(each.kinds)):
            yield broken.statement(broken.level.kinds, self.transactions)
            yield self._named(broken.level, broken.cycle)

    def _named(self, level: Level, cycle: Sequence[int]) -> tuple[str, Case]:
        """A cycle with a reason for each step, and the name that these reasons give it."""
        steps = [self._step(level, *pair) for pair in pairwise(cycle)]
        name = _name([str(step["type"]) for step in steps])
        ops = [self.transactions[number].op for number in cycle]
        return name, keywords(cycle=ops, steps=steps, type=Keyword(name))

    def _step(self, level: Level, before: int, after: int) -> Case:
        """Why one transaction precedes another. An rw edge is named only where there is no other."""
        for kind in level.kinds:
            if kind in DATA:
                if about := self.data[kind].get((before, after)):
                    key, value, *later = about
                    step = keywords(type=Keyword(kind), key=key, value=value)
                    return step | ({Keyword("value'"): later[0]} if later else {})
            elif self._is_before(kind, before, after):
                return keywords(type=Keyword(kind))
        raise AssertionError(f"no edge {level.kinds} from {before} to {after}")

    def _is_before(self, order: str, before: int, after: int) -> bool:
        first, second = self.transactions[before], self.transactions[after]
        same = order == "realtime" or first.op.process == second.op.process
        return first.is_ok and same and first.completed_at < second.invoked_at


def _name(kinds: Sequence[str]) -> str:
    """The type of a cycle by the kinds of its edges, in their order."""
    rw = kinds.count("rw")
    neighbours = any(pair == ("rw", "rw") for pair in pairwise((*kinds, kinds[0])))
    if rw == 1:
        name = "G-single-item"
    elif rw:
        name = "G2-item" if neighbours else "G-nonadjacent-item"
    else:
        name = "G1c" if "wr" in kinds else "G0"
    return name + next((f"-{each}" for each in reversed(ORDERS) if each in kinds), "")
