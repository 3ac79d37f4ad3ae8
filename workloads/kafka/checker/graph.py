"""The dependency graph between the transactions of a kafka history. Edges:

wr         T1 sent a message and T2 polled it
ww         T1's message immediately precedes T2's in the log of a key (only on request)
realtime   T1 was acknowledged before T2 was invoked (`workloads.digraph`)
"""

from collections.abc import Iterator, Mapping

from workloads.digraph import Graph, realtime_edges
from workloads.kafka.checker.observed import Facts, Key, Transaction
from workloads.kafka.checker.versions import Log


def dependency_graph(facts: Facts, logs: Mapping[Key, Log], ww_deps: bool) -> Graph:
    """The graph of all transactions in `facts`; `ww_deps` asks for write-write edges too."""
    number_of = {each.completed_at: number for number, each in enumerate(facts.transactions)}
    edges = {
        "wr": list(_wr_edges(facts, number_of)),
        "ww": list(_ww_edges(facts, logs, number_of)) if ww_deps else [],
        "realtime": list(realtime_edges(facts.history, facts.transactions)),
    }
    return Graph(len(facts.transactions), edges)


def _wr_edges(facts: Facts, number_of: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Edges from writers to other transactions; a send that the history's end cut off is no vertex."""
    for reader, transaction in enumerate(facts.transactions):
        writers: set[Transaction | None] = set()
        for key, run in transaction.polls.items():
            writers.update(map(facts.writers.get(key, {}).get, run.messages))
        for writer in writers:
            number = number_of.get(writer.completed_at, reader) if writer else reader
            if number != reader:
                yield number, reader


def _ww_edges(
    facts: Facts, logs: Mapping[Key, Log], number_of: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    for key, by_message in facts.writers.items():
        log = logs.get(key, Log())
        for message, later in by_message.items():
            index = log.index_of.get(message, 0)
            earlier = by_message.get(log.order[index - 1]) if index else None
            if earlier is None or earlier is later:
                continue
            before, after = (number_of.get(each.completed_at) for each in (earlier, later))
            if before is not None and after is not None:
                yield before, after
