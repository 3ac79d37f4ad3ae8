"""States of small size: a witness that an action is possible, or a counterexample.

Every sort gets a few elements, numbers a few values, and each quantifier becomes the list of its cases. What
is left has no quantifier, so a solver decides it. That there is no counterexample of a size is no proof.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import z3

from specs.proof.language import Language, Model, Symbols, Term, applied, arguments
from specs.proof.obligations import Obligation

SIZES = (2, 3)  # elements of each sort; numbers go up to it


def witness(model: Model, action: str) -> list[str] | None:
    """A small state of the invariant in which an action is possible, a line a symbol."""
    step, choices = model.step(action)
    facts = [*model.axioms.values(), *model.invariant(model.before()).values(), step.when]
    return _found(model, facts, model.after(step), choices)


def counterexample(model: Model, obligation: Obligation) -> list[str] | None:
    """A small state in which the hypotheses hold, and the goal does not."""
    after, choices = model.before(), list[Term]()
    if obligation.part in model.actions:
        step, choices = model.step(obligation.part)
        after = model.after(step)
    hypotheses = obligation.hypotheses
    told = [obligation.goal, *(hypotheses[name] for name in hypotheses if name == obligation.part)]
    facts = [*hypotheses.values(), z3.Not(obligation.goal)]
    return _found(model, facts, after, choices, told)


def _found(
    model: Model,
    facts: Sequence[Term],
    after: Symbols,
    choices: Sequence[Term],
    told: Sequence[Term] = (),
) -> list[str] | None:
    """The state as far as some terms speak of it, or None: there is none."""
    words = {*re.findall(r"\w+", " ".join(term.sexpr() for term in told))}
    for size in SIZES:
        small = _small(model.language, model.wide, max(size, model.numbers), size)
        solver = z3.Solver()
        solver.add(*map(small.expanded, facts), *small.closed(model, choices))
        if solver.check() == z3.sat:
            lines = _lines(model, small, solver.model(), after, choices)
            return [line for line in lines if {*re.findall(r"^\w+", line)} <= {*words, "chosen"}]
    return None


class _Small:
    """The elements of each sort, by its name."""

    def __init__(self, domains: Mapping[str, Sequence[Term]]) -> None:
        self._domains = domains
        self._known: dict[Term, Term] = {}

    def expanded(self, term: Term) -> Term:
        """The term with the list of all cases for each quantifier."""
        if term not in self._known:
            self._known[term] = self._expanded(term)
        return self._known[term]

    def _expanded(self, term: Term) -> Term:
        if z3.is_quantifier(term):
            sorts = [str(term.var_sort(number)) for number in range(term.num_vars())]
            cases = product(*(self._domains[sort] for sort in sorts))
            body, join = term.body(), z3.And if term.is_forall() else z3.Or
            return join(*(self._expanded(z3.substitute_vars(body, *at[::-1])) for at in cases))
        if not z3.is_bool(term) or not term.num_args():
            return term
        parts = [self._expanded(each) for each in term.children()]
        if z3.is_and(term) or z3.is_or(term):  # of as many as there are
            return z3.And(*parts) if z3.is_and(term) else z3.Or(*parts)
        return term.decl()(*parts)

    def closed(self, model: Model, choices: Sequence[Term]) -> Iterator[Term]:
        """Elements differ, and what is chosen or is a function of them is one of them."""
        yield from (z3.Distinct(*each) for name, each in self._domains.items() if name != "Int")
        for symbol in (*model.facts.values(), *model.state.values()):
            yield from (self._is_one(applied(symbol, at)) for at in self.points(symbol))
        yield from map(self._is_one, choices)

    def _is_one(self, term: Term) -> Term:
        elements = self._domains.get(str(term.sort()))
        return z3.Or(*(term == each for each in elements)) if elements else z3.BoolVal(True)

    def points(self, symbol: Term) -> Iterator[tuple[Term, ...]]:
        """All arguments of a symbol; of a constant, none at all, once."""
        yield from product(*(self._domains[str(sort)] for sort in arguments(symbol)))

    def names(self, values: Any) -> dict[str, str]:
        """The elements by what a solver's model calls them."""
        elements = (each for name in self._domains if name != "Int" for each in self._domains[name])
        return {str(values.eval(each, model_completion=True)): str(each) for each in elements}


@cache
def _small(language: Language, wide: frozenset[str], top: int, size: int) -> _Small:
    domains: dict[str, list[Term]] = {}
    for sort in language.sorts.values():
        name = str(sort)
        if sort == z3.IntSort():
            domains[name] = [z3.IntVal(number) for number in range(top + 1)]
        elif sort != z3.BoolSort():
            numbers = range(1, size + (name in wide) + 1)
            domains[name] = [z3.Const(f"{name.lower()}{number}", sort) for number in numbers]
    return _Small(domains)


def _lines(
    model: Model, small: _Small, values: Any, after: Symbols, choices: Sequence[Term]
) -> Iterator[str]:
    """The choices, each symbol before the step, and where it is another one then."""
    names = small.names(values)

    def value(term: Term) -> str:
        text = str(values.eval(small.expanded(term), model_completion=True))
        return names.get(text, text)

    def table(symbol: Term, of: Any) -> dict[str, str]:
        return {",".join(map(str, at)): value(applied(of, at)) for at in small.points(symbol)}

    yield "chosen: " + (", ".join(f"{c} = {value(c)}" for c in choices) or "nothing")
    for name, symbol in {**model.state, **model.facts}.items():
        old, new = table(symbol, symbol), table(symbol, getattr(after, name, symbol))
        yield f"{name}: {_listed(old)}"
        if changed := {at: new[at] for at in old if new[at] != old[at]}:
            yield f"{name}': {_listed(changed)}"


def _listed(table: Mapping[str, str]) -> str:
    """Points with their values; of a set, its elements."""
    if set(table) == {""}:
        return table[""]
    if set(table.values()) <= {"True", "False"}:
        return "{" + ", ".join(at for at, value in table.items() if value == "True") + "}"
    return ", ".join(f"{at} -> {value}" for at, value in table.items())
