"""The checks of a proof, in pieces that several processes can share."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from specs.manifest import VIOLATION, Configuration
from specs.proof.evaluation import Computed, Structure, both, changed, transition
from specs.proof.language import Model, terms
from specs.proof.models import MODELS, broken, not_seen
from specs.proof.obligations import (
    PROVED,
    REFUTED,
    UNKNOWN,
    Answer,
    Obligation,
    obligations,
    parts,
    prove,
)
from specs.proof.small import counterexample, witness
from specs.proof.walks import CACHED, found_by_tlc


class Report(NamedTuple):
    """What came out of a piece.

    Attributes:
        title: what was checked.
        answers: of each obligation.
        wrong: what is not as it should be; empty: all is well.
        told: what else is to be told.
    """

    title: str
    answers: tuple[tuple[str, Answer], ...] = ()
    wrong: tuple[str, ...] = ()
    told: str = ""


def check_part(name: str, part: str, law: str = "") -> Report:
    """Prove the obligations of a part, and look for a small state in which its action is possible."""
    model = MODELS[name]
    found = [(each, prove(each)) for each in obligations(model, part, law)]
    wrong = [line for each, answer in found for line in _complaints(model, each, answer)]
    if part in {*model.actions} - model.never and not law and witness(model, part) is None:
        wrong.append(f"{name}/{part} is possible in no small state")
    answers = tuple((f"{name}/{each.name}", answer) for each, answer in found)
    return Report(f"{name}/{part}", answers, tuple(wrong))


def _complaints(model: Model, obligation: Obligation, answer: Answer) -> Iterator[str]:
    if {answer.z3, answer.cvc5} == {PROVED, REFUTED}:
        yield f"{obligation.name}: z3 says {answer.z3}, cvc5 {answer.cvc5}"
    if answer.z3 != PROVED:
        found = counterexample(model, obligation)
        told = "; no counterexample of small size" if found is None else "\n" + shown(found)
        yield f"{obligation.name}: {UNKNOWN if found is None else 'false'}{told}"


def shown(lines: Sequence[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def check_broken(configuration: Configuration) -> Report:
    """With a wrong decision there is a small state from which a step breaks the law that the manifest names.

    If there is none, helpers are left out that the decision makes false; a step is shown that breaks each.
    """
    title, law = configuration.title, configuration.expect.removeprefix(VIOLATION)
    if reason := not_seen(configuration):
        return Report(title, told=f"not seen: {reason}")
    model, told = broken(configuration), list[str]()
    for number, helper in enumerate((*model.untrue, law)):
        kept = model.without(*model.untrue[:number])
        laws = dict.fromkeys((law, helper))
        found = (_broken(kept, each, MODELS[configuration.model]) for each in laws)
        step, state = next(filter(None, found), ("", []))
        if not step:
            return Report(title, wrong=(f"{title}: no small state breaks {helper}",))
        told.append(step)
        if step.endswith(f" {law}"):
            break
    return Report(title, told=f"{', then '.join(told)}\n{shown(state)}")


def _broken(model: Model, law: str, right: Model) -> tuple[str, list[str]] | None:
    """The first step that breaks a law; those that are others than in the right model are tried first."""
    found = [
        (each, _is_as(each, right)) for p in parts(model)[1:] for each in obligations(model, p, law)
    ]
    ordered = (obligation for obligation, _ in sorted(found, key=lambda each: each[1]))
    states = ((each.part, counterexample(model, each)) for each in ordered)
    return next(((f"{part} breaks {law}", state) for part, state in states if state), None)


def _is_as(obligation: Obligation, model: Model) -> bool:
    """Whether this is an obligation of the model."""
    part, law, facts, goal = obligation
    return any(
        goal.eq(each.goal) and (part not in facts or facts[part].eq(each.hypotheses[part]))
        for each in obligations(model, part, law)
    )


class Walk:
    """Whether a model says just what the states and steps are that somebody else has found."""

    def __init__(self, model: Model) -> None:
        s, laws = model.at(), {**model.axioms, **model.laws, **model.follows}
        self.initial = Computed(model.initial(s))
        self._laws = {law: Computed(term) for law, term in terms(laws, s).items()}
        self._actions = {name: Computed(transition(model, name)) for name in model.actions}
        self._same = {n: Computed(changed(model, n, value)) for n, value in model.state.items()}
        self._becomes = {name: model.step(name)[0].becomes.keys() for name in model.actions}
        self._also = model.also
        self.steps: Counter[str] = Counter()

    def broken_laws(self, state: Structure) -> list[str]:
        """The laws and helpers that do not hold in a state."""
        return [name for name, law in self._laws.items() if not law.holds(state)]

    def takes(self, name: str, before: Structure, after: Structure) -> bool:
        """Whether this is a step of the model; TLC says `Next` where it cannot name an action."""
        names = self._actions if name == "Next" else (name, *self._also.get(name, ()))
        step = both(before, after)
        others = {
            n
            for n, same in self._same.items()
            if before.parts[n].of != after.parts[n].of and not same.holds(step)
        }
        may = (n for n in names if others <= self._becomes[n])
        taken = next((n for n in may if self._actions[n].holds(step)), None)
        self.steps[taken or "none"] += 1
        return taken is not None


def check_walk(configuration: Configuration, most: int) -> Report:
    """In states that TLC reaches, of each depth `most`, the laws hold, and each step is one of the actions.

    Where the model is written in Python, too, that takes the same steps.
    """
    model, title = MODELS[configuration.model], configuration.title
    walk, wrong, number = Walk(model), dict[str, None](), 0
    assert model.structure
    structure = lru_cache(CACHED)(partial(model.structure, configuration))
    unlike = model.unlike and model.unlike(configuration)
    for number, (found, steps) in enumerate(found_by_tlc(configuration, most), 1):
        state = structure(found)
        taken = ((name, walk.takes(name, state, structure(after))) for name, after in steps)
        begins = number > 1 or walk.initial.holds(state)
        said = [
            *([] if begins else ["it begins in another state"]),
            *(f"{law} is false" for law in walk.broken_laws(state)),
            *(f"{name} is no step of the proof's model" for name, fits in taken if not fits),
            *(unlike(found, steps) if unlike else ()),
        ]
        wrong |= dict.fromkeys(f"{title}: {each}" for each in said)
    return Report(title, wrong=tuple(wrong), told=f"{number} states, {walk.steps.total()} steps")
