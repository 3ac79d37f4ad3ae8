"""txn-list-append: transactions of reads and appends over lists.

    {"type": "txn", "txn": [["r", 1, null], ["append", 1, 6], ["append", 2, 9]]}
    {"type": "txn_ok", "txn": [["r", 1, [8]], ["append", 1, 6], ["append", 2, 9]]}

`workloads.txn` says what is common to transactions. Here a read shows all that was appended before it. So the
longest read of a key gives the order of its elements, up to the last one read. An append that nobody read comes
after that one; a key with one append and no read has that element. From the order come the edges ww, wr and rw
(`workloads.txn.cycles`), between transactions that succeeded or may have. Beside cycles there are

    G1a                 an element was read that a failed transaction appended
    G1b                 a read ends with an element after which its transaction appended more
    internal            a transaction read what contradicts its own earlier reads and appends
    future-read         a transaction read an element before it appended that itself
    duplicate-elements  a read has an element more than once
    incompatible-order  of two reads of a key, neither is the beginning of the other
    dirty-update        after an append that failed comes one that succeeded
    lost-update         several transactions read the same list of a key, and appended to it
    no-writer-of-value  an element was read that nobody appended; no model allows it

The rules are those of Maelstrom's workload of this name and Elle's `list-append`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from runs.facts import grouped
from runs.history import Keyword, Op, keywords
from workloads.interface import Case
from workloads.replies import ARRAY
from workloads.txn.cycles import DataEdges, Txn
from workloads.txn.family import READ, Family, Key, Ordered, Writers, apart, hashable

APPEND = Keyword("append")
INIT = Keyword("init")  # stands for the element before the first

Element = Any


def _seen(elements: Any) -> list[Element]:
    is_plain = set(map(type, elements or ())) <= {int}
    return elements or [] if is_plain else list(map(hashable, elements))


def _order(txns: Sequence[Txn], failed: Writers) -> Ordered:
    seen = _lists(txns)
    order = {key: [*dict.fromkeys(lists[-1])] for key, lists in seen.items()}
    return Ordered(_edges(txns, order), _cases(txns, failed, seen), order)


def _lists(txns: Sequence[Txn]) -> dict[Key, list[list[Element]]]:
    """The different lists that each key was seen as, the longest last; empty ones are left out."""
    written = (mop for txn in txns for mop in txn.op.value)
    appended = grouped((key, value) for f, key, value in written if f == APPEND)
    read: dict[Key, dict[str, list[Element]]] = defaultdict(dict)
    for txn in txns:
        for _, key, elements in FAMILY.reads_of(txn.op) if txn.is_ok else ():
            if elements:
                read[key][repr(elements)] = [*elements]
    single = {key: [values] for key, values in appended.items() if len(values) == 1}
    return single | {key: sorted(lists.values(), key=len) for key, lists in read.items()}


def _edges(txns: Sequence[Txn], order: Mapping[Key, list[Element]]) -> dict[str, DataEdges]:
    """The dependencies by kind, between the numbers of transactions."""
    writer: dict[tuple[Key, Element], int] = {
        (key, value): number
        for number, txn in enumerate(txns)
        for f, key, value in txn.op.value
        if f == APPEND
    }
    readers = grouped(
        ((key, elements[-1] if elements else INIT), number)
        for number, txn in enumerate(txns)
        if txn.is_ok
        for _, key, elements in FAMILY.reads_of(txn.op)
    )
    before = {
        (key, after): previous
        for key, elements in order.items()
        for previous, after in pairwise((INIT, *elements))
    }
    edges: dict[str, DataEdges] = {"ww": {}, "wr": {}, "rw": {}}
    for (key, element), number in writer.items():
        previous = before.get((key, element), order[key][-1] if key in order else INIT)
        about = (key, previous, element)
        if (key, previous) in writer:
            edges["ww"][writer[key, previous], number] = about
        edges["rw"] |= {(reader, number): about for reader in readers.get((key, previous), ())}
        edges["wr"] |= {
            (number, reader): (key, element) for reader in readers.get((key, element), ())
        }
    return apart(edges)


def _cases(
    txns: Sequence[Txn], failed: Writers, seen: Mapping[Key, list[list[Element]]]
) -> Iterator[tuple[str, Case]]:
    for op in (txn.op for txn in txns if txn.is_ok):
        for mop, _, elements in FAMILY.reads_of(op):
            if twice := {element: n for element, n in Counter(elements).items() if n > 1}:
                yield "duplicate-elements", keywords(op=op, mop=mop, duplicates=twice)
        yield from (("internal", case) for case in _internal(op))
        yield from (("future-read", case) for case in _future_reads(op))
    yield from (("incompatible-order", case) for case in _incompatible(seen))
    yield from (("dirty-update", case) for case in _dirty_updates(txns, failed, seen))


def _internal(op: Op) -> Iterator[Case]:
    """The first read that contradicts what the transaction itself did before."""
    known: dict[Key, list[Element]] = {}  # by key: what its list must be, or (`ends`) must end with
    ends: dict[Key, list[Element]] = defaultdict(list)
    for mop in op.value:
        f, key, value = mop
        if f == APPEND:
            (known if key in known else ends)[key].append(value)
            continue
        elements = value or []
        wanted = known.get(key, ends.get(key, []))
        got = elements if key in known else elements[len(elements) - len(wanted) :]
        if got != wanted or len(elements) < len(wanted):
            yield keywords(op=op, mop=mop, expected=wanted if key in known else ["...", *wanted])
            return
        known[key] = list(elements)


def _future_reads(op: Op) -> Iterator[Case]:
    """The first read of an element that the transaction appended only later."""
    read: dict[tuple[Key, Element], Any] = {}
    for mop in op.value:
        if mop[0] == READ:
            for element in mop[2] or ():
                read.setdefault((mop[1], hashable(element)), mop)
        elif (mop[1], mop[2]) in read:
            yield keywords(op=op, mop=read[mop[1], mop[2]], element=mop[2])
            return


def _incompatible(seen: Mapping[Key, list[list[Element]]]) -> Iterator[Case]:
    """For each key the first two of its lists that contradict each other."""
    for key, lists in seen.items():
        for shorter, longer in pairwise(lists):
            if longer[: len(shorter)] != shorter:
                yield keywords(key=key, values=[shorter, longer])
                break


def _dirty_updates(
    txns: Sequence[Txn],
    failed: Writers,
    seen: Mapping[Key, list[list[Element]]],
) -> Iterator[Case]:
    """Appends that failed, and the next one in the order of the key that succeeded."""
    succeeded = {
        (key, value): txn.op
        for txn in txns
        if txn.is_ok
        for f, key, value in txn.op.value
        if f == APPEND
    }
    for key, lists in seen.items():
        aborted: Op | None = None
        since: list[Element] = []
        for element in dict.fromkeys(lists[-1]):
            since = [*since, element]
            if (key, element) in failed:
                aborted, since = (aborted, since) if aborted else (failed[key, element], [element])
            elif (key, element) in succeeded:
                if aborted:
                    yield keywords(key=key, values=since, txns=[aborted, succeeded[key, element]])
                aborted, since = None, []


FAMILY = Family(APPEND, ARRAY, _seen, _order)
build, JUDGE = FAMILY.build, FAMILY.judge
