"""Anomalies that are cycles of dependencies, after Adya. [elle.txn, restricted to what logs can show]

Edges say that one transaction must come before another:

    wr         T1 sent a message and T2 polled it
    ww         T1's message immediately precedes T2's in the log of a key (only on request)
    realtime   T1 was acknowledged before T2 was invoked (`workloads.digraph`)

There are no read-write edges: a poll that misses a message promises nothing about it. Four levels of elle's
hierarchy remain. Each is a set of edges that must have no cycle:

    G0             ww                  PL-1
    G1c            ww, wr              PL-2
    G0-realtime    ww, realtime        strong-PL-1
    G1c-realtime   ww, wr, realtime    strong-PL-2

Process order is part of realtime order, so it never has a level of its own. Each strongly connected
component of the whole graph has, for each level that no lower one implies, one cycle (the shortest found)
and one statement that the level's model does not hold (`strong-PL-2-cycle-exists`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from runs.history import Keyword, keywords
from workloads.digraph import EMPTY_GRAPH, Graph, Level, realtime_edges
from workloads.interface import Case
from workloads.kafka.checker.logs import SeenLog
from workloads.kafka.checker.observed import Facts, Key, Message, Transaction, micro_ops

LEVELS = {
    Level("PL-1", ("ww",)): "G0",
    Level("PL-2", ("ww", "wr")): "G1c",
    Level("strong-PL-1", ("ww", "realtime")): "G0-realtime",
    Level("strong-PL-2", ("ww", "wr", "realtime")): "G1c-realtime",
}


def dependency_graph(facts: Facts, logs: Mapping[Key, SeenLog], ww_deps: bool) -> Graph:
    """The graph of all transactions in `facts`; `ww_deps` asks for write-write edges too."""
    number_of = {each.completed_at: number for number, each in enumerate(facts.transactions)}
    ends = [(each.invoked_at, each.completed_at) for each in facts.transactions]
    edges = {
        "wr": list(_wr_edges(facts, number_of)),
        "ww": list(_ww_edges(facts, logs, number_of)) if ww_deps else [],
        "realtime": list(realtime_edges(facts.history, ends)),
    }
    return Graph(len(facts.transactions), edges)


def _wr_edges(facts: Facts, number_of: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Edges from writers to other transactions; a send that the history's end cut off is no vertex."""
    for reader, transaction in enumerate(facts.transactions):
        writers: set[Transaction | None] = set()
        for key, pairs in transaction.polls.items():
            writers.update(map(facts.writers.get(key, {}).get, pairs.messages))
        for writer in writers:
            number = number_of.get(writer.completed_at, reader) if writer else reader
            if number != reader:
                yield number, reader


def _ww_edges(
    facts: Facts, logs: Mapping[Key, SeenLog], number_of: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    for key, by_message in facts.writers.items():
        log = logs.get(key, SeenLog())
        for message, later in by_message.items():
            index = log.index_of.get(message, 0)
            earlier = by_message.get(log.order[index - 1]) if index else None
            if earlier is None or earlier is later:
                continue
            before, after = (number_of.get(each.completed_at) for each in (earlier, later))
            if before is not None and after is not None:
                yield before, after


def cycle_cases(
    facts: Facts, logs: Mapping[Key, SeenLog], ww_deps: bool
) -> Iterator[tuple[str, Case]]:
    """The cycles of a history, by anomaly type.

    A history without any dependency at all is an anomaly of its own (`empty-transaction-graph`): it can
    hardly be a real one, and proves nothing.
    """
    graph = dependency_graph(facts, logs, ww_deps)
    if graph.is_empty() and facts.history:
        yield EMPTY_GRAPH, {}
    yield from graph_cases(graph, facts, logs)


def graph_cases(
    graph: Graph, facts: Facts, logs: Mapping[Key, SeenLog]
) -> Iterator[tuple[str, Case]]:
    """The cycles of `graph`, whose vertices are the transactions of `facts`."""
    for broken in graph.broken(LEVELS):
        kinds = broken.level.kinds
        # Elle names an edge with its variant for predicates, which logs do not have.
        names = [
            name
            for kind in ("union", *kinds)
            for name in ((kind, f"{kind}p") if kind in ("ww", "wr") else (kind,))
        ]
        yield broken.statement(names, facts.transactions)
        anomaly = LEVELS[broken.level]
        members = [facts.transactions[number] for number in broken.cycle]
        steps = tuple(_step(*pair, facts, logs, "ww" in kinds) for pair in pairwise(members))
        cycle = [member.op for member in members]
        yield anomaly, keywords(cycle=cycle, steps=steps, type=Keyword(anomaly))


def _step(
    before: Transaction, after: Transaction, facts: Facts, logs: Mapping[Key, SeenLog], ww: bool
) -> Case:
    """Say why one transaction precedes another: by a message, or by time."""
    for kind, f, by_key in (("ww", "send", after.sends if ww else {}), ("wr", "poll", after.polls)):
        for key, pairs in by_key.items():
            log = logs.get(key, SeenLog())
            for message in pairs.messages:
                index = log.index_of.get(message, 0)
                earlier = (log.order[index - 1] if index else None) if kind == "ww" else message
                is_known = index or kind == "wr"
                if is_known and facts.writers.get(key, {}).get(earlier) is before:
                    later = {Keyword("value'"): message} if kind == "ww" else {}
                    return {
                        **keywords(type=Keyword(kind), key=key, value=earlier),
                        **later,
                        **keywords(
                            a_mop_index=_place(before, "send", key, earlier),
                            b_mop_index=_place(after, f, key, message),
                        ),
                    }
    assert after.invoked_at is not None, "only what was invoked has a realtime order"
    return {
        **keywords(type=Keyword("realtime")),
        Keyword("a'"): before.op,
        Keyword("b"): facts.history[after.invoked_at],
    }


def _place(transaction: Transaction, f: str, key: Key, message: Message) -> int | None:
    op = transaction.op
    for place, mop in enumerate(op.value):
        sends, polls = micro_ops(replace(op, value=[mop]))
        pairs = (sends if f == "send" else polls).get(key)
        if pairs and message in pairs.messages:
            return place
    return None
