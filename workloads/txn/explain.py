"""The anomalies of a transactional history in sentences."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from runs.edn import dumps
from runs.history import Op, printable
from runs.keyword import Keyword
from workloads.interface import Finding
from workloads.txn.client import READ
from workloads.txn.cycles import EMPTY_GRAPH, Case


def explain(result: Mapping[Any, Any], history: Sequence[Op]) -> list[Finding]:
    """A finding for each type of anomaly, with the first instance of it."""
    anomalies = result.get("anomalies", {})
    return [_finding(str(name), anomalies[name], history) for name in anomalies]


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
