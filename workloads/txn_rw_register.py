"""txn-rw-register: transactions of reads and writes over registers.

    {"type": "txn", "txn": [["r", 1, null], ["w", 1, 6], ["w", 2, 9]]}
    {"type": "txn_ok", "txn": [["r", 1, 3], ["w", 1, 6], ["w", 2, 9]]}

`workloads.txn` says what is common to transactions. Here a read sees one value, so the order of a key's values
must be inferred. Two things say something of it: null comes before every value, and the value that a
transaction reads first comes before the one that it writes last. That order, and the reads of written values,
give the edges ww, rw and wr (`workloads.txn.cycles`) of transactions that succeeded. Beside cycles there are

    G1a              a value was read that a failed transaction wrote
    G1b              a value was read that its transaction wrote over itself
    internal         a transaction read what contradicts its own earlier read or write
    lost-update      several transactions read the same value of a key, and wrote the key
    cyclic-versions  the order of a key's values has a cycle; then only null is taken to come first

and with `--strict` `no-writer-of-value`: a value was read that nobody wrote. The real tool accepts such values.

The rules are those of Maelstrom's workload of this name and Elle's `rw-register` with `wfr-keys?`.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import rustworkx as rx

from runs.history import Op
from runs.keyword import Keyword, keywords
from workloads.interface import Judge, Result, Setting, Workload
from workloads.mixes import Endless
from workloads.replies import ANY
from workloads.txn.client import READ, Transactions, TxnClient
from workloads.txn.cycles import Case, DataEdges, Dependencies, Txn
from workloads.txn.explain import explain
from workloads.txn.local import (
    attempted_writes,
    dirty_reads,
    failed_writes,
    hashable,
    intermediate_writes,
    lost_updates,
)
from workloads.txn.verdict import (
    EMPTY_GRAPH,
    NO_WRITER,
    models_of,
    orders_for,
    transactions,
    verdict,
)

WRITE = Keyword("w")

Version = tuple[Any, Any]  # key, value
Order = set[tuple[Version, Version]]


def check(history: Sequence[Op], options: Mapping[str, Any]) -> Result:
    """Judge a history by the option `consistency_models`; `workloads.txn` describes the result."""
    models = models_of(options)
    txns = transactions(history)
    found: dict[str, Any] = defaultdict(list)
    order = _version_order(txns, found)
    for name, case in _local_cases(history, txns, strict=bool(options.get("strict"))):
        found[name].append(case)
    dependencies = Dependencies(history, txns, _edges(txns, order), orders_for(models))
    if dependencies.graph.is_empty():
        found[EMPTY_GRAPH] = True
    for name, case in dependencies.cases():
        found[name].append(case)
    return verdict(found, models)


def first_reads(op: Op) -> dict[Any, Any]:
    """The first read of each key that the transaction had not written before."""
    found: dict[Any, Any] = {}
    written = set()
    for f, key, value in op.value:
        if f == WRITE:
            written.add(key)
        elif key not in written:
            found.setdefault(key, hashable(value))
    return found


def last_writes(op: Op) -> dict[Any, Any]:
    """The last write of each key."""
    return {key: value for f, key, value in op.value if f == WRITE}


def _version_order(txns: Sequence[Txn], found: dict[str, Any]) -> Order:
    """Which value of a key came before which, as far as can be told. Cycles go into `found`."""
    initial: Order = set()
    inferred: Order = set()
    for txn in txns:
        reads, writes = first_reads(txn.op) if txn.is_ok else {}, last_writes(txn.op)
        for key, value in (*reads.items(), *writes.items()):
            if value is not None:
                initial.add(((key, None), (key, value)))
        for key in reads.keys() & writes.keys():
            if reads[key] is not None:
                inferred.add(((key, reads[key]), (key, writes[key])))
    cyclic = list(_cyclic(initial | inferred))
    if cyclic:
        found["cyclic-versions"] = cyclic
        return initial
    return initial | inferred


def _cyclic(order: Order) -> Iterator[Case]:
    """The keys whose values come before themselves."""
    graph: rx.PyDiGraph[Version, None] = rx.PyDiGraph()
    versions = list(dict.fromkeys(version for pair in sorted(order, key=repr) for version in pair))
    index = {version: number for number, version in enumerate(versions)}
    graph.add_nodes_from(versions)
    graph.add_edges_from_no_data([(index[a], index[b]) for a, b in order])
    for component in rx.strongly_connected_components(graph):
        if len(component) > 1:
            values = {versions[number][1] for number in component}
            key = versions[component[0]][0]
            yield keywords(key=key, scc=values)


def _edges(txns: Sequence[Txn], order: Order) -> dict[str, DataEdges]:
    writers, readers = defaultdict(list), defaultdict(list)
    for number, txn in enumerate(txns):
        if txn.is_ok:
            for version in last_writes(txn.op).items():
                writers[version].append(number)
            for version in first_reads(txn.op).items():
                readers[version].append(number)
    edges: dict[str, DataEdges] = {"ww": {}, "wr": {}, "rw": {}}
    for version, reading in readers.items():
        for reader in reading:
            for writer in writers.get(version, ()):
                edges["wr"][writer, reader] = version
    for before, after in order:
        for writer in writers.get(after, ()):
            about = (*before, after[1])
            edges["ww"] |= {(other, writer): about for other in writers.get(before, ())}
            edges["rw"] |= {(other, writer): about for other in readers.get(before, ())}
    return {
        kind: {p: about for p, about in each.items() if p[0] != p[1]}
        for kind, each in edges.items()
    }


def _local_cases(
    history: Sequence[Op], txns: Sequence[Txn], *, strict: bool
) -> Iterator[tuple[str, Case]]:
    oks = [txn.op for txn in txns if txn.is_ok]
    failed = failed_writes(history, WRITE)
    intermediate = intermediate_writes(history, WRITE)
    written = attempted_writes(history, WRITE)
    for op in oks:
        for mop in op.value:
            if mop[0] == READ:
                key, seen = mop[1], hashable(mop[2])
                yield from (("G1a", case) for case in dirty_reads(op, mop, seen, failed))
                yield from (("G1b", case) for case in dirty_reads(op, mop, seen, intermediate))
                if strict and seen is not None and (key, seen) not in written:
                    written.add((key, seen))
                    yield NO_WRITER, keywords(op=op, mop=mop, key=key, element=seen)
        yield from (("internal", case) for case in _internal(op))
    yield from (("lost-update", case) for case in lost_updates(oks, WRITE))


def _internal(op: Op) -> Iterator[Case]:
    """The first read that contradicts what the transaction itself did before."""
    state: dict[Any, Any] = {}
    for mop in op.value:
        f, key, value = mop[0], mop[1], hashable(mop[2])
        if f == READ and key in state and state[key] != value:
            yield keywords(op=op, mop=mop, expected=state[key])
            return
        state[key] = value


def build(setting: Setting) -> Workload:
    """The workload for this run; `workloads.txn` names its options."""
    return Workload(
        generator=Endless(Transactions.of(setting, WRITE).draw),
        open_client=partial(TxnClient, reads=ANY),
        judge=judge(),
        reusable=True,
    )


def judge() -> Judge:
    """Whether the models that a run asks for hold, as far as reads and writes can tell."""
    return Judge(check, explain)
