"""Consistency models of transactions: which is weaker than which, and which anomalies each one forbids.

Names are Elle's. Many models have two: Adya's (`PL-2`) and the usual one (`read-committed`). A model forbids
its own anomalies, those of weaker models, and every anomaly that implies one of these. If a model cannot hold,
no stronger one can. [facts: elle's consistency_model.clj, which names its sources]
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from runs.facts import grouped

DEFAULT_MODELS = ("strict-serializable",)
_ADYA = {
    "consistent-view": "PL-2+",
    "conflict-serializable": "PL-3",
    "cursor-stability": "PL-CS",
    "forward-consistent-view": "PL-FCV",
    "monotonic-snapshot-read": "PL-MSR",
    "monotonic-view": "PL-2L",
    "read-committed": "PL-2",
    "read-uncommitted": "PL-1",
    "repeatable-read": "PL-2.99",
    "serializable": "PL-3",
    "snapshot-isolation": "PL-SI",
    "strict-serializable": "PL-SS",
    "strong-serializable": "PL-SS",
    "update-serializable": "PL-3U",
    "strong-session-read-uncommitted": "strong-session-PL-1",
    "strong-session-read-committed": "strong-session-PL-2",
    "strong-read-uncommitted": "strong-PL-1",
    "strong-read-committed": "strong-PL-2",
}
_USUAL = {adya: usual for usual, adya in _ADYA.items()} | {
    "PL-3": "serializable",
    "PL-SS": "strong-serializable",
}
# A model -> those next below it.
_WEAKER: Mapping[str, Sequence[str]] = {
    "1SR": (),
    "PL-2": ("PL-1",),
    "PL-2+": ("PL-CS", "PL-2L"),
    "PL-2.99": ("PL-CS", "monotonic-atomic-view"),
    "PL-2L": ("PL-2",),
    "PL-3": ("PL-2.99", "PL-3U", "PL-SI", "view-serializable"),
    "PL-3U": ("PL-FCV",),
    "PL-CS": ("PL-2",),
    "PL-FCV": ("PL-2+",),
    "PL-MSR": ("PL-2",),
    "PL-SI": ("PL-FCV", "monotonic-atomic-view", "PL-MSR", "parallel-snapshot-isolation", "prefix"),
    "PL-SS": (
        "PL-3",
        "linearizable",
        "PL-SI",
        "strong-snapshot-isolation",
        "strong-session-serializable",
        "session-serializable",
    ),
    "causal": ("writes-follow-reads", "PRAM"),
    "causal-cerone": ("read-atomic",),
    "linearizable": ("sequential",),
    "monotonic-atomic-view": ("PL-2",),
    "parallel-snapshot-isolation": ("causal-cerone", "update-atomic"),
    "PRAM": ("monotonic-reads", "monotonic-writes", "read-your-writes"),
    "prefix": ("causal-cerone",),
    "read-atomic": ("monotonic-atomic-view",),
    "sequential": ("causal",),
    "session-serializable": ("1SR",),
    "strong-PL-1": ("strong-session-PL-1",),
    "strong-PL-2": ("strong-session-PL-2", "strong-PL-1"),
    "strong-session-PL-1": ("PL-1",),
    "strong-session-PL-2": ("PL-2", "strong-session-PL-1"),
    "strong-session-serializable": ("PL-3", "strong-session-snapshot-isolation"),
    "strong-session-snapshot-isolation": ("PL-SI", "strong-session-PL-2"),
    "strong-snapshot-isolation": ("strong-session-snapshot-isolation", "strong-PL-2"),
    "update-atomic": ("read-atomic",),
}
# A model -> what it forbids beyond what the weaker ones do. Cycles in its graph are `<model>-cycle-exists`.
_FORBIDDEN: Mapping[str, Sequence[str]] = {
    "PL-1": ("G0", "duplicate-elements", "cyclic-versions", "PL-1-cycle-exists"),
    "PL-2": ("G1", "PL-2-cycle-exists"),
    "PL-2+": ("G1", "G-single"),
    "PL-2.99": ("G1", "G2-item", "PL-2.99-cycle-exists", "lost-update"),
    "PL-2L": ("G1",),
    "PL-3": ("G1", "G2", "internal", "PL-3-cycle-exists"),
    "PL-3U": ("G1",),
    "PL-CS": ("G1", "lost-update"),
    "PL-FCV": ("G1",),
    "PL-MSR": ("G1",),
    "PL-SI": ("internal", "G1", "G-nonadjacent", "PL-SI-cycle-exists"),
    "PL-SS": ("G1", "G1c-realtime", "G2-realtime", "PL-SS-cycle-exists"),
    "causal-cerone": ("internal", "G1a"),
    "parallel-snapshot-isolation": ("internal", "G1a"),
    "prefix": ("internal", "G1a"),
    "read-atomic": ("internal", "G1a", "future-read"),
    "strong-PL-1": ("G0-realtime", "strong-PL-1-cycle-exists"),
    "strong-PL-2": ("G1c-realtime", "strong-PL-2-cycle-exists"),
    "strong-session-PL-1": ("G0-process", "strong-session-PL-1-cycle-exists"),
    "strong-session-PL-2": ("G1c-process", "strong-session-PL-2-cycle-exists"),
    "strong-session-serializable": (
        "G1-process",
        "G2-process",
        "strong-session-serializable-cycle-exists",
    ),
    "strong-session-snapshot-isolation": (
        "internal",
        "G1-process",
        "G-nonadjacent-process",
        "strong-session-snapshot-isolation-cycle-exists",
    ),
    "strong-snapshot-isolation": (
        "internal",
        "G1-realtime",
        "G-nonadjacent-realtime",
        "strong-snapshot-isolation-cycle-exists",
    ),
    "update-atomic": ("lost-update",),
}
# An anomaly -> those that it is a case of; the same holds for the variants with process and realtime order.
_CASE_OF: Mapping[str, Sequence[str]] = {
    "G0": ("G1c",),
    "G1c": ("G1",),
    "G1": (),
    "G-single-item": ("G-single", "G-nonadjacent-item"),
    "G-single": ("G-nonadjacent",),
    "G-nonadjacent-item": ("G-nonadjacent", "G2-item"),
    "G-nonadjacent": ("G2",),
    "G2-item": ("G2",),
    "G2": (),
}
_CASE_OF_ALONE: Mapping[str, Sequence[str]] = {
    "G1a": ("G1",),
    "G1b": ("G1",),
    "incompatible-order": ("G1a",),
    "future-read": ("G1c",),
    "dirty-update": ("G1a",),
    "lost-update": ("write-skew", "G2-item"),
    "write-skew": ("G2",),
}


_VARIANTS = ("", "-process", "-realtime")  # each is a case of the next
IMPLIED: Mapping[str, set[str]] = {
    **{anomaly: set(others) for anomaly, others in _CASE_OF_ALONE.items()},
    **{
        anomaly + variant: {
            *(other + variant for other in others),
            *([anomaly + weaker] if weaker else []),
        }
        for anomaly, others in _CASE_OF.items()
        for variant, weaker in pairwise((*_VARIANTS, ""))
    },
}
NAMES = tuple(
    sorted(_ADYA.keys() | _USUAL.keys() | _WEAKER.keys() | set().union(*_WEAKER.values()))
)


def canonical(model: str) -> str:
    """Adya's name of a model, or the one that it has."""
    return _ADYA.get(model, model)


def usual(model: str) -> str:
    """The usual name of a model, or the one that it has."""
    return _USUAL.get(model, model)


def _closure(start: Iterable[str], following: Mapping[str, Iterable[str]]) -> set[str]:
    """Everything that can be reached, the start with it."""
    found: set[str] = set()
    border = set(start)
    while border:
        found |= border
        border = {each for one in border for each in following.get(one, ())} - found
    return found


def _reversed(graph: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    return grouped((after, before) for before, afters in graph.items() for after in afters)


@lru_cache(maxsize=64)
def forbidden_by(models: tuple[str, ...]) -> frozenset[str]:
    """The anomalies that cannot be in a history of which all these models hold."""
    weaker = _closure(map(canonical, models), _WEAKER)
    direct = {anomaly for model in weaker for anomaly in _FORBIDDEN.get(model, ())}
    return frozenset(_closure(direct, _reversed(IMPLIED)))


def stronger(models: Iterable[str]) -> set[str]:
    """The models that cannot hold if one of these does not, by Adya's names."""
    return _closure(map(canonical, models), _reversed(_WEAKER))


def ruled_out(anomalies: Iterable[str]) -> tuple[set[str], set[str]]:
    """The weakest models that cannot hold with these anomalies, and the stronger ones, by their usual names."""
    implied = _closure(anomalies, IMPLIED)
    direct = {model for model, found in _FORBIDDEN.items() if implied.intersection(found)}
    impossible = stronger(direct)
    weakest = {
        model
        for model in impossible
        if not impossible.intersection(_closure([model], _WEAKER) - {model})
    }
    return set(map(usual, weakest)), set(map(usual, impossible - weakest))
