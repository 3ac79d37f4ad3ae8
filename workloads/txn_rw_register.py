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

from collections.abc import Iterator, Sequence
from typing import Any

import rustworkx as rx

from runs.facts import grouped
from runs.history import Keyword, Op, keywords
from workloads.interface import Case
from workloads.replies import ANY
from workloads.txn.cycles import DataEdges, Txn
from workloads.txn.family import READ, Family, Key, Ordered, Writers, apart, hashable

WRITE = Keyword("w")

Version = tuple[Key, Any]  # key, value
Order = dict[tuple[Version, Version], None]  # a set that keeps its order


def _seen(value: Any) -> list[Any]:
    return [] if value is None else [hashable(value)]


def _order(txns: Sequence[Txn], _failed: Writers) -> Ordered:
    order, cyclic = _version_order(txns)
    cases = [("cyclic-versions", case) for case in cyclic]
    oks = (txn.op for txn in txns if txn.is_ok)
    internal = (("internal", case) for op in oks for case in _internal(op))
    return Ordered(_edges(txns, order), [*cases, *internal], {})


def _first_reads(op: Op) -> dict[Key, Any]:
    """The first read of each key that the transaction had not written before."""
    found: dict[Key, Any] = {}
    written = set()
    for f, key, value in op.value:
        if f == WRITE:
            written.add(key)
        elif key not in written:
            found.setdefault(key, hashable(value))
    return found


def _last_writes(op: Op) -> dict[Key, Any]:
    """The last write of each key."""
    return {key: value for f, key, value in op.value if f == WRITE}


def _version_order(txns: Sequence[Txn]) -> tuple[Order, list[Case]]:
    """Which value of a key came before which, as far as can be told; and the cycles."""
    initial: Order = {}
    inferred: Order = {}
    for txn in txns:
        reads, writes = _first_reads(txn.op) if txn.is_ok else {}, _last_writes(txn.op)
        initial |= {
            ((key, None), (key, value)): None
            for key, value in (*reads.items(), *writes.items())
            if value is not None
        }
        inferred |= {
            ((key, value), (key, writes[key])): None
            for key, value in reads.items()
            if key in writes and value is not None
        }
    cyclic = list(_cyclic(initial | inferred))
    return initial if cyclic else initial | inferred, cyclic


def _cyclic(order: Order) -> Iterator[Case]:
    """The keys whose values come before themselves."""
    graph: rx.PyDiGraph[Version, None] = rx.PyDiGraph()
    versions = list(dict.fromkeys(version for pair in sorted(order, key=repr) for version in pair))
    index = {version: number for number, version in enumerate(versions)}
    graph.add_nodes_from(versions)
    graph.add_edges_from_no_data([(index[a], index[b]) for a, b in order])
    return (
        keywords(key=versions[component[0]][0], scc={versions[number][1] for number in component})
        for component in rx.strongly_connected_components(graph)
        if len(component) > 1
    )


def _edges(txns: Sequence[Txn], order: Order) -> dict[str, DataEdges]:
    oks = [(number, txn.op) for number, txn in enumerate(txns) if txn.is_ok]
    writers = grouped((each, number) for number, op in oks for each in _last_writes(op).items())
    readers = grouped((each, number) for number, op in oks for each in _first_reads(op).items())
    wr: DataEdges = {
        (writer, reader): version
        for version, reading in readers.items()
        for reader in reading
        for writer in writers.get(version, ())
    }
    edges: dict[str, DataEdges] = {"ww": {}, "wr": wr, "rw": {}}
    for before, after in order:
        for writer in writers.get(after, ()):
            about = (*before, after[1])
            edges["ww"] |= {(other, writer): about for other in writers.get(before, ())}
            edges["rw"] |= {(other, writer): about for other in readers.get(before, ())}
    return apart(edges)


def _internal(op: Op) -> Iterator[Case]:
    """The first read that contradicts what the transaction itself did before."""
    state: dict[Any, Any] = {}
    for mop in op.value:
        f, key, value = mop[0], mop[1], hashable(mop[2])
        if f == READ and key in state and state[key] != value:
            yield keywords(op=op, mop=mop, expected=state[key])
            return
        state[key] = value


FAMILY = Family(WRITE, ANY, _seen, _order)
build, JUDGE = FAMILY.build, FAMILY.judge
