"""The verdict on a transactional history, and its anomalies in sentences."""

from collections.abc import Mapping, Sequence
from typing import Any

from runs.history import Op, completions
from runs.keyword import Keyword, keywords
from workloads.interface import UNKNOWN, Result
from workloads.txn.cycles import ORDERS, Txn
from workloads.txn.models import DEFAULT_MODELS, forbidden_by, ruled_out

EMPTY_GRAPH = "empty-transaction-graph"
NO_WRITER = "no-writer-of-value"
_OF_NO_MODEL = (EMPTY_GRAPH, NO_WRITER)  # told whatever a run asks for
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


def verdict(anomalies: Anomalies, models: tuple[str, ...]) -> Result:
    """The workload's map in results.edn; the package's docstring describes it."""
    forbidden = forbidden_by(models)
    weakest, others = ruled_out(anomalies)
    reported = {
        name: found for name, found in anomalies.items() if name in (*forbidden, *_OF_NO_MODEL)
    }
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
