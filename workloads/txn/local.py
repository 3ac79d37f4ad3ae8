"""Anomalies that reads and writes show without any cycle: dirty reads and lost updates. [elle.txn]"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from runs.history import Op
from runs.keyword import keywords
from workloads.txn.client import READ, MicroOp
from workloads.txn.cycles import Case

Writers = dict[tuple[Any, Any], Op]  # (key, value) -> the operation that wrote it


def hashable(value: Any) -> Any:
    """The value of a read; what no client writes as its text (in Python 1, 1.0 and true are equal)."""
    return value if value is None or type(value) in (int, str) else repr(value)


def failed_writes(history: Sequence[Op], write: str) -> Writers:
    """What transactions wrote that certainly failed."""
    return {
        (key, value): op
        for op in history
        if op.f == "txn" and op.type == "fail"
        for f, key, value in op.value
        if f == write
    }


def intermediate_writes(ops: Collection[Op], write: str) -> Writers:
    """What transactions wrote to a key that they wrote again."""
    found: Writers = {}
    for op in ops:
        last: dict[Any, Any] = {}
        for f, key, value in op.value:
            if f == write:
                if key in last:
                    found[key, last[key]] = op
                last[key] = value
    return found


def dirty_reads(op: Op, mop: MicroOp, seen: Any, writers: Writers) -> Iterator[Case]:
    """The case that a read saw what `writers`, other than itself, wrote."""
    writer = writers.get((mop[1], seen))
    if writer is not None and writer is not op:
        yield keywords(op=op, mop=mop, writer=writer, element=seen)


def lost_updates(oks: Collection[Op], write: str) -> Iterator[Case]:
    """Values of a key that several transactions read first, and then each wrote the key."""
    updates: dict[tuple[Any, str], tuple[Any, list[Op]]] = {}
    for op in oks:
        for key, value in _read_then_written(op, write):
            updates.setdefault((key, repr(value)), (value, []))[1].append(op)
    for (key, _), (value, ops) in updates.items():
        if len(ops) > 1:
            yield keywords(key=key, value=value, txns=ops)


def _read_then_written(op: Op, write: str) -> Iterator[tuple[Any, Any]]:
    """The keys that a transaction read before it wrote them, with the value of the first read."""
    first: dict[Any, Any] = {}
    written = set()
    for f, key, value in op.value:
        if f == READ:
            first.setdefault(key, value)
        elif f == write and key not in written and key in first:
            written.add(key)
            yield key, first[key]
