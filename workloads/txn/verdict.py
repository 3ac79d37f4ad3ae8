"""The verdict on a transactional history, and its anomalies in sentences."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runs.edn import dumps
from runs.history import Op, completions
from runs.keyword import Keyword, keywords
from workloads.interface import UNKNOWN, Finding
from workloads.txn.cycles import ORDERS, Case, Txn
from workloads.txn.models import DEFAULT_MODELS, forbidden_by, ruled_out

EMPTY_GRAPH = "empty-transaction-graph"
_EXISTS = "-cycle-exists"

Anomalies = Mapping[str, Any]  # by type: a list of cases, or True


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


def models_of(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The models that a run asks for."""
    return tuple(options.get("consistency_models") or DEFAULT_MODELS)


def orders_for(models: tuple[str, ...]) -> frozenset[str]:
    """The order that matters to these models besides the data: realtime, or that of processes, or none."""
    forbidden = forbidden_by(models)
    for order in reversed(ORDERS):
        if any(anomaly.endswith(f"-{order}") for anomaly in forbidden):
            return frozenset([order])
    return frozenset()


def verdict(anomalies: Anomalies, models: tuple[str, ...]) -> dict[Keyword, Any]:
    """The workload's map in results.edn; the package's docstring describes it."""
    forbidden = forbidden_by(models)
    weakest, others = ruled_out(anomalies)
    reported = {name: found for name, found in anomalies.items() if name in forbidden}
    if EMPTY_GRAPH in anomalies:
        reported[EMPTY_GRAPH] = True
    if not reported:
        return keywords(valid=True)
    shown = _without_redundant(reported)
    return {
        **keywords(
            valid=UNKNOWN if reported.keys() == {EMPTY_GRAPH} else False,
            anomaly_types=[Keyword(name) for name in sorted(shown)],
            anomalies={Keyword(name): shown[name] for name in sorted(shown)},
        ),
        Keyword("not"): set(map(Keyword, weakest)),
        Keyword("also-not"): set(map(Keyword, others)),
    }


def _without_redundant(reported: Anomalies) -> Anomalies:
    """Without `<model>-cycle-exists` where another anomaly rules out the model."""
    shown = {name: found for name, found in reported.items() if not name.endswith(_EXISTS)}
    weakest, others = ruled_out(shown)
    return shown | {
        name: found
        for name, found in reported.items()
        if name.endswith(_EXISTS) and found[0]["not"] not in weakest | others
    }


def explain(result: Mapping[Any, Any], history: Sequence[Op]) -> list[Finding]:  # noqa: ARG001
    """A finding for each type of anomaly, with the first instance of it."""
    return [
        _finding(str(name), result["anomalies"][name]) for name in result.get("anomaly-types", ())
    ]


def _finding(name: str, found: Any) -> Finding:
    if name == EMPTY_GRAPH:
        text = "No transaction depends on another, so the history proves nothing."
        return Finding(name, False, 1, text)
    first = found[0]
    if "steps" in first:
        return Finding(name, True, len(found), _cycle_sentence(first), list(first["cycle"][:-1]))
    ops = [first[part] for part in ("writer", "op") if part in first] or list(first.get("txns", ()))
    return Finding(name, True, len(found), _SENTENCES[name].format_map(_Words(first)), ops)


class _Words(Mapping[str, str]):
    """The fields of a case as text, by name."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def __getitem__(self, name: str) -> str:
        return _word(self._case[name])

    def __iter__(self) -> Iterator[str]:
        return map(str, self._case)

    def __len__(self) -> int:
        return len(self._case)


def _word(value: Any) -> str:
    return f"T{value.index}" if isinstance(value, Op) else dumps(value)


_SENTENCES = {
    "G1a": "{op} read {mop}, which {writer} wrote; but {writer} failed.",
    "G1b": "{op} read {mop}, which {writer} wrote and then overwrote itself.",
    "internal": "{op} read {mop}; by what it did itself before, that should be {expected}.",
    "future-read": "{op} read {mop} before it wrote {element} itself.",
    "duplicate-elements": "{op} read {mop}, in which elements come more than once: {duplicates}.",
    "incompatible-order": "Key {key} was read as {values}; neither is the beginning of the other.",
    "dirty-update": "Key {key}: an append of {values} that failed came before one that did not.",
    "lost-update": "Several transactions read {value} of key {key}, and each wrote it; one write is lost.",
    "cyclic-versions": "Key {key}: by what was read and written, {scc} each came before the other.",
}


def _cycle_sentence(case: Case) -> str:
    """Each step of a cycle, as a part of one sentence."""
    cycle, steps = case["cycle"], case["steps"]
    parts = [_part(f"T{a.index}", f"T{b.index}", step) for a, b, step in _triples(cycle, steps)]
    return f"{', '.join(parts[:-1])}; but {parts[-1]}. (T{cycle[0].index} is the operation of that index.)"


def _triples(cycle: Sequence[Op], steps: Sequence[Case]) -> Iterator[tuple[Op, Op, Case]]:
    return zip(cycle, cycle[1:], steps, strict=False)


def _shown(value: Any) -> str:
    """A value as EDN; a key that was never written has nothing."""
    return "nothing" if value is None or isinstance(value, Keyword) else dumps(value)


def _part(before: str, after: str, step: Case) -> str:
    key, value, later = (_shown(step.get(name)) for name in ("key", "value", "value'"))
    match step["type"]:
        case "ww":
            return f"{before} wrote {value} to key {key} before {after} wrote {later}"
        case "wr":
            return f"{after} read {value} of key {key} from {before}"
        case "rw":
            return f"{before} read {value} of key {key} before {after} wrote {later}"
        case "process":
            return f"{before} came before {after} in their process"
        case _:
            return f"{before} was over before {after} began"
