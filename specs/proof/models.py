"""The models that are proved, by the names that the manifest has for them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

from specs.manifest import PASS, VIOLATION, Configuration, load
from specs.proof import (
    durable_commits,
    head_log,
    head_log_broken,
    head_log_laws,
    head_log_states,
    task_claiming,
    vacuum,
)
from specs.proof.evaluation import Structure
from specs.proof.language import Model, Symbols
from specs.proof.tlc_graph import graph, state
from specs.second.configurations import second_model

MOST_STATES = 30_000
Pair = tuple[str, str]
Step = tuple[str, Structure]


class Proof(NamedTuple):
    """A model of TLA+, with what is proved of it.

    Attributes:
        decisions: each by the name of its operator, and in small letters what helpers know by them.
        model: it, with such decisions.
        instead: what stands in for a decision, by operator and replacement in the manifest; None: nothing.
        beside: what helpers know then.
        untrue: helpers that are false then, each when those before it are.
        unseen: the replacements that no proof here can see, each with the reason.
        reached: every state that a configuration reaches, with the steps from it.
        also: actions that TLA+ has under one name, and the proof under several.
    """

    decisions: Mapping[str, Any]
    model: Callable[[Any], Model]
    instead: Mapping[Pair, Any]
    unseen: Mapping[Pair, str]
    reached: Callable[[Configuration], Iterator[tuple[Structure, list[Step]]]]
    beside: Mapping[Pair, Mapping[str, Any]] = {}
    untrue: Mapping[Pair, tuple[str, ...]] = {}
    also: Mapping[str, tuple[str, ...]] = {}


def _walked(
    made: Callable[..., Structure], configuration: Configuration
) -> Iterator[tuple[Structure, list[Step]]]:
    """The states of the second checker, breadth first."""
    model: Any = second_model(configuration)
    seen = dict.fromkeys(model.initial())
    level = list(seen)
    structure = lru_cache(maxsize=None)(partial(made, model))
    while level:
        new = []
        for each in level:
            steps = list(model.steps(each))
            yield structure(each), [(name, structure(after)) for name, after in steps]
            for after in (model.representative(after) for _, after in steps):
                if after not in seen:
                    seen[after] = None
                    new.append(after)
        level = new
        structure.cache_clear()


def _found_by_tlc(
    structure: Callable[..., Structure], configuration: Configuration
) -> Iterator[tuple[Structure, list[Step]]]:
    states, steps = graph(configuration)
    made = lru_cache(maxsize=None)(lambda n: structure(configuration, state(states[n])))
    behind: dict[str, list[tuple[str, str]]] = {name: [] for name in states}
    for action, old, new in steps:
        behind[old].append((action, new))
    for name in states:
        yield made(name), [(action, made(new)) for action, new in behind[name]]


PROOFS: Mapping[str, Proof] = {
    "HeadLog": Proof(
        head_log.DECISIONS,
        head_log_laws.model,
        head_log_broken.INSTEAD,
        head_log_broken.UNSEEN,
        partial(_walked, head_log_states.structure),
        beside=head_log_broken.BESIDE,
        # A cas that is refused, and whose answer is lost; an answer that brings nothing.
        also={"Unknown": ("Conflict",), "Answered": ("Lost",)},
    ),
    "DurableCommits": Proof(
        durable_commits.DECISIONS,
        durable_commits.model,
        durable_commits.INSTEAD,
        {},
        partial(_found_by_tlc, durable_commits.structure),
        untrue=durable_commits.UNTRUE,
    ),
    "TaskClaiming": Proof(
        task_claiming.DECISIONS,
        task_claiming.model,
        task_claiming.INSTEAD,
        {},
        partial(_walked, task_claiming.structure),
        untrue=task_claiming.UNTRUE,
    ),
    "Vacuum": Proof(
        vacuum.DECISIONS,
        vacuum.model,
        vacuum.INSTEAD,
        vacuum.UNSEEN,
        partial(_found_by_tlc, vacuum.structure),
        untrue=vacuum.UNTRUE,
    ),
}


@cache
def right(name: str) -> Model:
    """The model with the decisions of TLA+."""
    return PROOFS[name].model(Symbols(**PROOFS[name].decisions))


def not_seen(configuration: Configuration) -> str:
    """Why no proof here can see what is wrong in a configuration; "": it can."""
    if configuration.specification == "FairSpec":
        return "liveness: TLC checks it at small sizes"
    unseen = PROOFS[configuration.model].unseen
    return "; ".join(unseen[pair] for pair in configuration.replace.items() if pair in unseen)


def broken(configuration: Configuration) -> Model:
    """The model with the decisions that a configuration names.

    Raises:
        KeyError: a decision of the manifest is not written here.
    """
    proof, pairs = PROOFS[configuration.model], list(configuration.replace.items())
    parts = dict(proof.decisions)
    for operator, other in pairs:
        if proof.instead[operator, other] is not None:
            parts[operator] = proof.instead[operator, other]
        parts |= proof.beside.get((operator, other), {})
    untrue = tuple(helper for pair in pairs for helper in proof.untrue.get(pair, ()))
    return replace(proof.model(Symbols(**parts)), untrue=untrue)


def named_law(configuration: Configuration) -> str:
    """The law that a broken configuration violates."""
    return configuration.expect.removeprefix(VIOLATION)


def wrong_configurations(name: str) -> list[Configuration]:
    """Those of the manifest that break a decision of this model."""
    return [c for c in load().configurations if c.model == name and c.broken]


def small_configurations(name: str) -> list[Configuration]:
    """Those whose states are visited: small, right, without fairness, and with few states."""
    return [
        c
        for c in load().configurations
        if c.model == name
        and (c.size, c.expect) == ("small", PASS)
        and c.specification != "FairSpec"
        and (c.distinct_states or 0) <= MOST_STATES
        and not any(pair in PROOFS[name].unseen for pair in c.replace.items())
    ]
