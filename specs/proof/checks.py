"""The checks of a proof, in pieces that several processes can share."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import z3

from specs.manifest import Configuration
from specs.proof.evaluation import Action, Law, Structure
from specs.proof.language import Model, Term, applied, arguments
from specs.proof.models import PROOFS, broken, named_law, not_seen, right
from specs.proof.obligations import (
    FOLLOWS,
    INITIAL,
    PROVED,
    UNKNOWN,
    Answer,
    Obligation,
    obligations,
    parts,
    prove,
)
from specs.proof.small import counterexample, witness


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
    model = right(name)
    answers: list[tuple[str, Answer]] = []
    wrong: list[str] = []
    for obligation in obligations(model, part):
        if law in ("", obligation.law):
            answer = prove(obligation)
            answers.append((f"{name}/{obligation.name}", answer))
            wrong += _complaints(model, obligation, answer)
    if part in model.actions and part not in model.never and witness(model, part) is None:
        wrong.append(f"{name}/{part} is possible in no small state")
    return Report(f"{name}/{part}", tuple(answers), tuple(wrong))


def _complaints(model: Model, obligation: Obligation, answer: Answer) -> Iterator[str]:
    if answer.disagrees:
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
    if reason := not_seen(configuration):
        return Report(configuration.title, told=f"not seen: {reason}")
    model, title, law = broken(configuration), configuration.title, named_law(configuration)
    told: list[str] = []
    for number, helper in enumerate((*model.untrue, "")):
        kept = model.without(*model.untrue[:number])
        for each in (law, *([helper] if helper else [])):
            if found := _broken_law(kept, each, configuration.model):
                part, state = found
                told.append(f"{part} breaks {each}")
                break
        else:
            return Report(title, wrong=(f"{title}: no small state breaks {helper or law}",))
        if told[-1].endswith(law):
            break
    return Report(title, told=f"{', then '.join(told)}\n{shown(state)}")


def _broken_law(model: Model, law: str, name: str) -> tuple[str, list[str]] | None:
    """The first step that breaks a law; those that are others than in the right model are tried first."""
    right_model = right(name)
    same = {part: _same_step(model, right_model, part) for part in parts(model)}
    for part in sorted(parts(model), key=lambda part: same[part]):
        for obligation in obligations(model, part):
            if obligation.law == law and part != INITIAL:
                found = counterexample(model, obligation)
                if found:
                    return part, found
    return None


def _same_step(model: Model, other: Model, part: str) -> bool:
    if part == FOLLOWS:
        laws, others = (each.follows(each.before()) for each in (model, other))
        return all(law.eq(others[name]) for name, law in laws.items())
    if part not in model.actions:
        return True
    (one, _), (two, _) = model.step(part), other.step(part)
    if not one.when.eq(two.when):
        return False
    images = zip(one.becomes.items(), two.becomes.items(), strict=True)
    return all(n == m and _same_image(model, n, a, b) for (n, a), (m, b) in images)


def _same_image(model: Model, name: str, one: Term, other: Term) -> bool:
    at = [z3.Const(f"at{n}", sort) for n, sort in enumerate(arguments(model.state[name]))]
    return bool(applied(one, at).eq(applied(other, at)))


class Walk:
    """Whether a model says just what the states and steps are that somebody else has found."""

    def __init__(self, name: str) -> None:
        model = right(name)
        s = model.before()
        self.initial = Law(model.initial(s))
        laws = {**model.axioms, **model.invariant(s), **model.follows(s)}
        self._laws = {law: Law(term) for law, term in laws.items()}
        self._actions = {action: Action(model, action) for action in model.actions}
        self._also = PROOFS[name].also
        self.steps: Counter[str] = Counter()

    def broken_laws(self, state: Structure) -> list[str]:
        """The laws and helpers that do not hold in a state."""
        return [name for name, law in self._laws.items() if not law.holds(state)]

    def takes(self, name: str, before: Structure, after: Structure) -> bool:
        """Whether this is a step of the model; TLC says `Next` where it cannot name an action."""
        names = self._actions if name == "Next" else (name, *self._also.get(name, ()))
        taken = next((n for n in names if self._actions[n].leads(before, after)), None)
        self.steps[taken or "none"] += 1
        return taken is not None


def check_walk(configuration: Configuration, most: int) -> Report:
    """In the first `most` states that are reached the invariant holds, and each step is one of its actions."""
    walk, wrong, number = Walk(configuration.model), list[str](), 0
    for state, steps in islice(PROOFS[configuration.model].reached(configuration), most):
        number += 1
        if number == 1 and not walk.initial.holds(state):
            wrong.append(f"{configuration.title}: it begins in another state")
        wrong += [f"{configuration.title}: {law} is false" for law in walk.broken_laws(state)]
        wrong += [
            f"{configuration.title}: {name} is no step of the proof's model"
            for name, after in steps
            if not walk.takes(name, state, after)
        ]
    rest = "" if number < most else ", the first of more"
    told = f"{number} states{rest}, {walk.steps.total()} steps"
    return Report(configuration.title, wrong=tuple(dict.fromkeys(wrong)), told=told)
