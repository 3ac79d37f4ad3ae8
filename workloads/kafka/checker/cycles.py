"""Anomalies that are cycles of dependencies, after Adya. [elle.txn, restricted to what logs can show]

There are no read-write edges here: a poll that misses a message promises nothing about it. Four levels of
elle's hierarchy remain. Each is a set of edges that must have no cycle:

    G0             ww                  PL-1
    G1c            ww, wr              PL-2
    G0-realtime    ww, realtime        strong-PL-1
    G1c-realtime   ww, wr, realtime    strong-PL-2

Process order is part of realtime order, so it never has a level of its own. Each strongly connected
component of the whole graph has, for each level that no lower one implies, one cycle (the shortest found)
and one statement that the level's model does not hold (`strong-PL-2-cycle-exists`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from runs.keyword import Keyword, keywords
from workloads.digraph import Graph
from workloads.kafka.checker.cases import EMPTY_GRAPH, Case
from workloads.kafka.checker.graph import dependency_graph
from workloads.kafka.checker.observed import Facts, Key, Message, Transaction, micro_ops
from workloads.kafka.checker.versions import Log


@dataclass(frozen=True)
class Level:
    """A kind of cycle: its name, the edges it is made of, the model it rules out, what it implies."""

    anomaly: str
    edges: tuple[str, ...]
    model: str
    friendly_model: str
    implies: tuple[str, ...] = ()


LEVELS = (
    Level("G0", ("ww",), "PL-1", "read-uncommitted", ("G1c", "G0-realtime", "G1c-realtime")),
    Level("G1c", ("ww", "wr"), "PL-2", "read-committed", ("G1c-realtime",)),
    Level(
        "G0-realtime",
        ("ww", "realtime"),
        "strong-PL-1",
        "strong-read-uncommitted",
        ("G1c-realtime",),
    ),
    Level("G1c-realtime", ("ww", "wr", "realtime"), "strong-PL-2", "strong-read-committed"),
)


def cycle_cases(facts: Facts, logs: Mapping[Key, Log], ww_deps: bool) -> Iterator[tuple[str, Case]]:
    """The cycles of a history, by anomaly type.

    A history without any dependency at all is an anomaly of its own (`empty-transaction-graph`): it can
    hardly be a real one, and proves nothing.
    """
    graph = dependency_graph(facts, logs, ww_deps)
    if graph.is_empty() and facts.history:
        yield EMPTY_GRAPH, {}
    yield from graph_cases(graph, facts, logs)


def graph_cases(graph: Graph, facts: Facts, logs: Mapping[Key, Log]) -> Iterator[tuple[str, Case]]:
    """The cycles of `graph`, whose vertices are the transactions of `facts`."""
    wholes = graph.of(graph.edges).components()
    whole_of = {vertex: number for number, whole in enumerate(wholes) for vertex in whole}
    implied: list[set[str]] = [set() for _ in wholes]
    for level in LEVELS if wholes else ():
        digraph = graph.of(level.edges)
        cyclic: dict[int, list[list[int]]] = {}
        for component in digraph.components():
            cyclic.setdefault(whole_of[component[0]], []).append(component)
        for number, components in sorted(cyclic.items()):
            if level.anomaly in implied[number]:
                continue
            implied[number].update(level.implies)
            smallest = min(components, key=lambda each: len(digraph.transactions_in(each)))
            members = digraph.transactions_in(smallest)
            yield f"{level.model}-cycle-exists", _existence(level, members, facts)
            cycle = digraph.short_cycle(smallest)
            yield level.anomaly, _explained(level, cycle, facts, logs)


def _existence(level: Level, members: list[int], facts: Facts) -> Case:
    return keywords(
        type=Keyword(f"{level.model}-cycle-exists"),
        **{"not": Keyword(level.friendly_model)},
        subgraph=[
            Keyword(name) for kind in ("union", *level.edges) for name in _with_predicate(kind)
        ],
        scc_size=len(members),
        scc={facts.transactions[each].op.index for each in members},
    )


def _with_predicate(kind: str) -> tuple[str, ...]:
    """Elle names an edge with its variant for predicates, which logs do not have."""
    return (kind, f"{kind}p") if kind in ("ww", "wr") else (kind,)


def _explained(level: Level, cycle: list[int], facts: Facts, logs: Mapping[Key, Log]) -> Case:
    members = [facts.transactions[number] for number in cycle]
    steps = [
        _step(before, after, facts, logs, "ww" in level.edges)
        for before, after in pairwise(members)
    ]
    cycle_ops = [member.op for member in members]
    return keywords(cycle=cycle_ops, steps=tuple(steps), type=Keyword(level.anomaly))


def _step(
    before: Transaction, after: Transaction, facts: Facts, logs: Mapping[Key, Log], ww: bool
) -> Case:
    """Why `before` precedes `after`."""
    steps = (*_ww_steps(before, after, facts, logs),) if ww else ()
    for step in (*steps, *_wr_steps(before, after, facts)):
        return step
    assert after.invoked_at is not None, "only what was invoked has a realtime order"
    invocation = facts.history[after.invoked_at]
    return {
        **keywords(type=Keyword("realtime")),
        Keyword("a'"): before.op,
        Keyword("b"): invocation,
    }


def _wr_steps(before: Transaction, after: Transaction, facts: Facts) -> Iterator[Case]:
    for key, run in after.polls.items():
        for message in run.messages:
            if facts.writers.get(key, {}).get(message) is before:
                places = _places(before, after, ("send", "poll"), key, (message, message))
                yield keywords(type=Keyword("wr"), key=key, value=message, **places)
                return


def _ww_steps(
    before: Transaction, after: Transaction, facts: Facts, logs: Mapping[Key, Log]
) -> Iterator[Case]:
    for key, run in after.sends.items():
        log = logs.get(key, Log())
        for message in run.messages:
            index = log.index_of.get(message, 0)
            previous = log.order[index - 1] if index else None
            if index and facts.writers.get(key, {}).get(previous) is before:
                places = _places(before, after, ("send", "send"), key, (previous, message))
                value = keywords(type=Keyword("ww"), key=key, value=previous)
                yield {**value, Keyword("value'"): message, **keywords(**places)}
                return


def _places(
    before: Transaction,
    after: Transaction,
    f: tuple[str, str],
    key: Key,
    messages: tuple[Message, Message],
) -> dict[str, int | None]:
    """Which micro-operation of each transaction the step is about, counted from 0."""
    return {
        "a_mop_index": _place(before, f[0], key, messages[0]),
        "b_mop_index": _place(after, f[1], key, messages[1]),
    }


def _place(transaction: Transaction, f: str, key: Key, message: Message) -> int | None:
    op = transaction.op
    for place, mop in enumerate(op.value):
        sends, polls = micro_ops(replace(op, value=[mop]))
        run = (sends if f == "send" else polls).get(key)
        if run and message in run.messages:
            return place
    return None
