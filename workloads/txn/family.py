"""Workloads of transactions: client, transactions, anomalies and their sentences; and what is a family's own.

Beside cycles of dependencies, reads and writes alone show dirty reads and lost updates. [elle.txn]
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any

from runs.edn import dumps
from runs.facts import grouped
from runs.history import Keyword, Op, completions, keywords, printable
from workloads.digraph import EMPTY_GRAPH
from workloads.interface import (
    UNKNOWN,
    Case,
    Draft,
    Finding,
    Judge,
    Result,
    Setting,
    Steps,
    Workload,
)
from workloads.mixes import DEFAULT_COUNTS, DEFAULT_KEY_DIST, DISTRIBUTIONS, Endless, Keys
from workloads.replies import Form, Stateless, ask
from workloads.txn.cycles import ORDERS, DataEdges, Dependencies, Txn
from workloads.txn.models import DEFAULT_MODELS, forbidden_by, ruled_out

READ = Keyword("r")
_READS_MIN = 10  # fewer may all have come first

MicroOp = list[Any]  # [f, key, value]


def _perform(node: str, op: Op, reads: Form) -> Steps:
    """Send an operation as one transaction. `reads` says what a read may have for a value."""
    request = {"type": "txn", "txn": [[str(f), key, value] for f, key, value in op.value]}
    each = tuple(Form(*_filled(mop, reads)) for mop in op.value)
    filled = Form(
        "the transaction, its reads filled in", partial(_are_filled, each), dict(enumerate(each))
    )
    reply = yield from ask(node, request, txn=filled)
    return [[Keyword(f), key, value] for f, key, value in reply["txn"]]


def _filled(mop: MicroOp, reads: Form) -> tuple[str, Callable[[Any], bool]]:
    """What the answer to a micro-operation must be: the same, with any value for a read."""

    def matches(got: Any) -> bool:
        # By their text, because in Python 1, 1.0 and true are equal.
        if not isinstance(got, list) or len(got) != 3 or json.dumps(got[:2]) != json.dumps(mop[:2]):
            return False
        return reads.accepts(got[2]) if mop[0] == READ else json.dumps(got[2]) == json.dumps(mop[2])

    of_read = f"{json.dumps(mop[:2])[:-1]}, {reads.name}]"
    return of_read if mop[0] == READ else json.dumps(mop), matches


def _are_filled(each: Sequence[Form], txn: Any) -> bool:
    is_long = isinstance(txn, list) and len(txn) == len(each)
    return is_long and all(form.accepts(got) for form, got in zip(each, txn, strict=True))


def _transactions(setting: Setting, write: Keyword) -> Endless:
    """Draws by `key_dist`, `key_count`, `max_writes_per_key` and `max_txn_length`; `write` is what writes."""
    options, random = setting.options, setting.random("txn")
    name = options.get("key_dist") or DEFAULT_KEY_DIST
    count = options.get("key_count") or DEFAULT_COUNTS[name]
    writes, longest = options["max_writes_per_key"], options["max_txn_length"]
    keys = Keys(count, writes, setting.random("txn/keys"), DISTRIBUTIONS[name])

    def micro_op() -> MicroOp:
        key, value = keys.draw()
        return [READ, key, None] if value is None else [write, key, value]

    return Endless(lambda: Draft("txn", [micro_op() for _ in range(random.randint(1, longest))]))


# ---------------------------------------------------------------- explanations


def explain(result: Mapping[Any, Any], history: Sequence[Op]) -> list[Finding]:
    """A finding for each type of anomaly, with the first instance of it."""
    anomalies = result.get("anomalies", {})
    found = [_finding(str(name), anomalies[name], history) for name in anomalies]
    read = [
        value
        for op in history
        if op.f == "txn" and op.type == "ok"
        for f, _, value in op.value
        if f == READ
    ]
    if found and len(read) >= _READS_MIN and not any(read):
        found[0] = replace(
            found[0],
            sentence=f"No read returned a value: fill in what each read finds. {found[0].sentence}",
        )
    return found


def _finding(name: str, found: Any, history: Sequence[Op]) -> Finding:
    if name == EMPTY_GRAPH:
        text = "No transaction depends on another, so the history proves nothing."
        return Finding(name, False, 1, text, undecided=True)
    case = found[0]
    return Finding(name, True, len(found), _sentence(name, case), list(_witness(case, history)))


def _sentence(name: str, case: Case) -> str:
    if "steps" in case:
        return _cycle_sentence(case)
    words = {str(field): _word(value) for field, value in case.items()}
    return SENTENCES.get(name, CYCLE_EXISTS).format_map(words)


def _witness(case: Case, history: Sequence[Op]) -> Iterator[Op]:
    """The operations of an instance; where it has only values, those that read them first."""
    if "values" in case and "txns" not in case:
        reads = ([READ, case["key"], elements] for elements in case["values"])
        oks = [op for op in history if op.f == "txn" and op.type == "ok"]
        firsts = (next((op for op in oks if read in op.value), None) for read in reads)
        yield from (op for op in firsts if op)
    elif "scc" in case and "key" not in case:
        yield from (op for op in history if op.type != "invoke" and op.index in case["scc"])
    else:
        yield from case["cycle"][:-1] if "cycle" in case else case.get("txns", ())
        yield from (case[part] for part in ("writer", "op") if part in case)


def _word(value: Any) -> str:
    return str(value.index) if isinstance(value, Op) else dumps(printable(value))


SENTENCES = {
    "G1a": "Operation {op} read {mop}. Operation {writer} wrote that, and failed.",
    "G1b": "Operation {op} read {mop}. Operation {writer} wrote that, and then wrote the key again.",
    "no-writer-of-value": "Operation {op} read {mop}. No transaction wrote {element} to key {key}.",
    "internal": "Operation {op} read {mop}; by what it did itself before, that should be {expected}.",
    "future-read": "Operation {op} read {mop} before it appended {element} itself.",
    "duplicate-elements": "Operation {op} read {mop}; that has elements more than once: {duplicates}.",
    "incompatible-order": "Key {key} was read as {values}; neither is the beginning of the other.",
    "dirty-update": "Key {key} has {values}: the first was appended by a transaction that failed.",
    "lost-update": "Several transactions read {value} of key {key}, and each wrote the key.",
    "cyclic-versions": "Key {key}: by what was read and written, {scc} came before each other.",
}
STEPS = {
    "ww": "{before} wrote {value} to key {key} before {after} wrote {later}",
    "wr": "{after} read {value} of key {key} from {before}",
    "rw": "{before} read {value} of key {key} before {after} wrote {later}",
    "process": "{before} came before {after} in their process",
    "realtime": "{before} was over before {after} began",
}
CYCLE_EXISTS = "The operations {scc} depend on each other in a circle, which {not} forbids."


def _cycle_sentence(case: Case) -> str:
    """Each step of a cycle, as a part of one sentence."""
    cycle, steps = case["cycle"], case["steps"]
    pairs = zip(pairwise(cycle), steps, strict=True)
    parts = [_part(f"T{a.index}", f"T{b.index}", step) for (a, b), step in pairs]
    return f"{', '.join(parts[:-1])}; but {parts[-1]}. (T{cycle[0].index} is operation {cycle[0].index}.)"


def _shown(value: Any) -> str:
    """A value as EDN; a key that was never written has nothing."""
    return "nothing" if value is None or isinstance(value, Keyword) else dumps(value)


def _part(before: str, after: str, step: Case) -> str:
    names = {"value'": "later", "key": "key", "value": "value"}
    words = {name: _shown(step.get(field)) for field, name in names.items()}
    return STEPS[step["type"]].format(before=before, after=after, **words)


# ---------------------------------------------------------------- families


NO_WRITER = "no-writer-of-value"
_OF_NO_MODEL = (EMPTY_GRAPH, NO_WRITER)  # told whatever a run asks for
_EXISTS = "-cycle-exists"

Key = Any
Written = tuple[Key, Any]  # key, value
Writers = dict[Written, Op]  # what was written -> the operation that did it
Anomalies = Mapping[str, Any]  # by type: a list of cases, or True


@dataclass(frozen=True)
class Ordered:
    """What a family makes of a history.

    `edges` are the dependencies by kind, between the numbers of transactions. `cases` are its own anomalies,
    by type. `versions` has the values of each key whose order is known.
    """

    edges: Mapping[str, DataEdges]
    cases: Iterable[tuple[str, Case]]
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
            generator=_transactions(setting, self.write),
            open_client=partial(Stateless, perform=partial(_perform, reads=self.reads)),
            judge=self.judge,
            reusable=True,
        )

    @property
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
        cases = chain(
            ordered.cases,
            self._dirty_reads(oks, "G1a", failed, slice(None)),
            self._dirty_reads(oks, "G1b", _overwritten(writes), slice(-1, None)),
            self._unwritten(oks, {(key, value) for _, key, value in writes}, versions),
            self._lost_updates(oks),
            dependencies.cases(),
        )
        empty = {EMPTY_GRAPH: True} if dependencies.graph.is_empty() else {}
        return verdict({**grouped(cases), **empty}, models)

    def _writes(self, history: Sequence[Op]) -> Iterator[tuple[Op, Key, Any]]:
        """What transactions were asked to write, whatever became of them."""
        return (
            (op, key, value)
            for op in history
            if op.f == "txn"
            for f, key, value in op.value
            if f == self.write
        )

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
                    updates.setdefault((key, repr(first[key])), (first[key], []))[1].append(op)
        return (
            ("lost-update", keywords(key=key, value=value, txns=ops))
            for (key, _), (value, ops) in updates.items()
            if len(ops) > 1
        )


def _overwritten(writes: Iterable[tuple[Op, Key, Any]]) -> Writers:
    """What transactions wrote to a key that they wrote again, whatever became of them."""
    of_each = grouped(((id(op), key), (op, value)) for op, key, value in writes)
    return {(key, value): op for (_, key), written in of_each.items() for op, value in written[:-1]}


def hashable(value: Any) -> Any:
    """The value of a read; what no client writes as its text (in Python 1, 1.0 and true are equal)."""
    return value if value is None or type(value) in (int, str) else repr(value)


def apart(edges: Mapping[str, DataEdges]) -> dict[str, DataEdges]:
    """Leave out edges from a transaction to itself."""
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
    asked = (o for o in reversed(ORDERS) if any(each.endswith(f"-{o}") for each in forbidden))
    return frozenset(islice(asked, 1))


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
