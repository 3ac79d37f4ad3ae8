"""What a workload of transactions is made of: its family's reads, writes and order; all else is the same.

Beside cycles of dependencies, reads and writes alone show dirty reads and lost updates. [elle.txn]
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from runs.history import Op, completions
from runs.keyword import Keyword, keywords
from workloads.interface import UNKNOWN, Judge, Result, Setting, Workload
from workloads.mixes import Endless
from workloads.replies import Form
from workloads.txn.client import READ, MicroOp, Transactions, TxnClient
from workloads.txn.cycles import EMPTY_GRAPH, ORDERS, Case, DataEdges, Dependencies, Txn
from workloads.txn.explain import explain
from workloads.txn.models import DEFAULT_MODELS, forbidden_by, ruled_out

NO_WRITER = "no-writer-of-value"
_OF_NO_MODEL = (EMPTY_GRAPH, NO_WRITER)  # told whatever a run asks for
_EXISTS = "-cycle-exists"

Key = Any
Written = tuple[Key, Any]  # key, value
Writers = dict[Written, Op]  # what was written -> the operation that did it
Cases = Iterable[tuple[str, Case]]
Anomalies = Mapping[str, Any]  # by type: a list of cases, or True


@dataclass(frozen=True)
class Ordered:
    """What a family makes of a history.

    `edges` are the dependencies by kind, between the numbers of transactions. `cases` are its own anomalies,
    by type. `versions` has the values of each key whose order is known.
    """

    edges: Mapping[str, DataEdges]
    cases: Cases
    versions: Mapping[Key, Collection[Any]]


@dataclass(frozen=True)
class Family:
    """What is particular to one kind of values.

    Args:
        write: the name of a write.
        reads: the form of what a read has for a value.
        seen: what such a value shows that was written, the newest last.
        order: makes edges and cases of the transactions, with the writes that failed.
    """

    write: Keyword
    reads: Form
    seen: Callable[[Any], Sequence[Any]]
    order: Callable[[Sequence[Txn], Writers], Ordered]

    def build(self, setting: Setting) -> Workload:
        """The workload for a run; `workloads.txn` names its options."""
        return Workload(
            generator=Endless(Transactions.of(setting, self.write).draw),
            open_client=partial(TxnClient, reads=self.reads),
            judge=self.judge(),
            reusable=True,
        )

    def judge(self) -> Judge:
        """Whether the models that a run asks for hold, as far as reads and writes can tell."""
        return Judge(self.check, explain)

    def check(self, history: Sequence[Op], options: Mapping[str, Any]) -> Result:
        """Judge a history by the option `consistency_models`; `workloads.txn` describes the result."""
        models = tuple(options.get("consistency_models") or DEFAULT_MODELS)
        txns = transactions(history)
        writes = list(self._writes(history))
        failed = {(key, value): op for op, key, value in writes if op.type == "fail"}
        ordered = self.order(txns, failed)
        dependencies = Dependencies(history, txns, ordered.edges, orders_for(models))
        oks = [txn.op for txn in txns if txn.is_ok]
        versions = None if options.get("strict") else ordered.versions
        found: dict[str, Any] = defaultdict(list)
        for name, case in chain(
            ordered.cases,
            self._dirty_reads(oks, "G1a", failed, slice(None)),
            self._dirty_reads(oks, "G1b", _overwritten(writes), slice(-1, None)),
            self._unwritten(oks, {(key, value) for _, key, value in writes}, versions),
            self._lost_updates(oks),
            dependencies.cases(),
        ):
            found[name].append(case)
        if dependencies.graph.is_empty():
            found[EMPTY_GRAPH] = True
        return verdict(found, models)

    def _writes(self, history: Sequence[Op]) -> Iterator[tuple[Op, Key, Any]]:
        """What transactions were asked to write, whatever became of them."""
        for op in history:
            for f, key, value in op.value if op.f == "txn" else ():
                if f == self.write:
                    yield op, key, value

    def reads_of(self, op: Op) -> Iterator[tuple[MicroOp, Key, Sequence[Any]]]:
        """The reads of an operation that succeeded: the micro-operation, its key, what it shows."""
        return ((mop, mop[1], self.seen(mop[2])) for mop in op.value if mop[0] == READ)

    def _dirty_reads(
        self, oks: Iterable[Op], name: str, writers: Writers, part: slice
    ) -> Iterator[tuple[str, Case]]:
        """The reads of which a part is what `writers`, other than themselves, wrote."""
        for op in oks:
            for mop, key, seen in self.reads_of(op):
                for element in seen[part]:
                    writer = writers.get((key, element))
                    if writer is not None and writer is not op:
                        yield name, keywords(op=op, mop=mop, writer=writer, element=element)

    def _unwritten(
        self, oks: Iterable[Op], written: set[Written], versions: Mapping[Key, Any] | None
    ) -> Iterator[tuple[str, Case]]:
        """The first read of each value that nobody wrote.

        The real checker stops at one in the order of its key, without a verdict. One that is in no such order
        is no matter there, so it counts with `--strict` alone (`versions` is None).
        """
        for op in oks:
            for mop, key, seen in self.reads_of(op):
                for element in seen:
                    counts = versions is None or element in versions.get(key, ())
                    if counts and (key, element) not in written:
                        written.add((key, element))
                        yield NO_WRITER, keywords(op=op, mop=mop, key=key, element=element)

    def _lost_updates(self, oks: Iterable[Op]) -> Iterator[tuple[str, Case]]:
        """Values of a key that several transactions read first, and then each wrote the key."""
        updates: dict[tuple[Key, str], tuple[Any, list[Op]]] = {}
        for op in oks:
            first: dict[Key, Any] = {}
            written = set()
            for f, key, value in op.value:
                if f == READ:
                    first.setdefault(key, value)
                elif key in first and key not in written:
                    written.add(key)
                    same = updates.setdefault((key, repr(first[key])), (first[key], []))
                    same[1].append(op)
        for (key, _), (value, ops) in updates.items():
            if len(ops) > 1:
                yield "lost-update", keywords(key=key, value=value, txns=ops)


def _overwritten(writes: Iterable[tuple[Op, Key, Any]]) -> Writers:
    """What transactions wrote to a key that they wrote again, whatever became of them."""
    found: Writers = {}
    last: dict[tuple[int, Key], Any] = {}
    for op, key, value in writes:
        if (id(op), key) in last:
            found[key, last[id(op), key]] = op
        last[id(op), key] = value
    return found


def hashable(value: Any) -> Any:
    """The value of a read; what no client writes as its text (in Python 1, 1.0 and true are equal)."""
    return value if value is None or type(value) in (int, str) else repr(value)


def apart(edges: Mapping[str, DataEdges]) -> dict[str, DataEdges]:
    """The edges between different transactions."""
    return {
        kind: {p: about for p, about in each.items() if p[0] != p[1]}
        for kind, each in edges.items()
    }


def transactions(history: Sequence[Op]) -> list[Txn]:
    """What succeeded or may have, in order of completion; what never completed comes last."""
    pairs = completions(history)
    found = []
    for at, op in enumerate(history):
        if op.f == "txn" and op.type == "invoke":
            completed = pairs.get(at, len(history) + at)
            last = history[completed] if at in pairs else op
            if last.type != "fail":
                found.append(Txn(last, at, completed))
    return sorted(found, key=lambda txn: txn.completed_at)


def orders_for(models: tuple[str, ...]) -> frozenset[str]:
    """The order that matters to these models besides the data: realtime, or that of processes, or none."""
    forbidden = forbidden_by(models)
    for order in reversed(ORDERS):
        if any(anomaly.endswith(f"-{order}") for anomaly in forbidden):
            return frozenset([order])
    return frozenset()


def verdict(anomalies: Anomalies, models: tuple[str, ...]) -> Result:
    """The workload's map in results.edn; the package's docstring describes it."""
    asked = (*forbidden_by(models), *_OF_NO_MODEL)
    weakest, others = ruled_out(anomalies)
    reported = {name: found for name, found in anomalies.items() if name in asked}
    if not reported:
        return keywords(valid=True)
    # `<model>-cycle-exists` says nothing where another anomaly rules out the model.
    impossible = set().union(*ruled_out(n for n in reported if not n.endswith(_EXISTS)))
    shown = sorted(
        name
        for name, found in reported.items()
        if not name.endswith(_EXISTS) or found[0]["not"] not in impossible
    )
    return {
        **keywords(
            valid=UNKNOWN if reported.keys() == {EMPTY_GRAPH} else False,
            anomaly_types=[Keyword(name) for name in shown],
            anomalies={Keyword(name): reported[name] for name in shown},
        ),
        Keyword("not"): set(map(Keyword, weakest)),
        Keyword("also-not"): set(map(Keyword, others)),
    }
