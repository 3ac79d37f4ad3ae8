"""States of small size: a witness that an action is possible, or a counterexample.

Every sort gets a few elements, numbers a few values, and each quantifier becomes the list of its cases. What
is left has no quantifier, so a solver decides it. That there is no counterexample of a size is no proof.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import z3

from specs.proof.language import Language, Model, Term, applied, arguments
from specs.proof.obligations import Obligation, hypotheses

SIZES = (2, 3)  # elements of each sort; numbers go up to it


def witness(model: Model, action: str) -> list[str] | None:
    """A small state in which an action is possible, a line a symbol."""
    return _found(model, action, hypotheses(model, action).values())


def counterexample(model: Model, obligation: Obligation) -> list[str] | None:
    """A small state in which the hypotheses hold, and the goal does not, as far as the step speaks of it."""
    part, _, facts, goal = obligation
    told = [goal, *(facts[name] for name in facts if name == part)]
    words = {"chosen", *re.findall(r"\w+", " ".join(term.sexpr() for term in told))}
    lines = _found(model, part, [*facts.values(), z3.Not(goal)])
    return lines and [line for line in lines if re.split(r"\W", line)[0] in words]


def _found(model: Model, part: str, facts: Iterable[Term]) -> list[str] | None:
    step, choices = model.step(part)
    for size in SIZES:
        small = _small(model.language, model.wide, max(size, model.numbers), size)
        solver = z3.Solver()
        solver.add(*map(small.expanded, facts), *small.closed(model, choices))
        if solver.check() == z3.sat:
            return list(_lines(model, small, solver.model(), step.becomes, choices))
    return None


class _Small:
    """A few elements of each sort, by its name, and numbers up to `top`."""

    def __init__(self, language: Language, wide: frozenset[str], top: int, size: int) -> None:
        self._domains: dict[str, Sequence[Term]] = {
            name: [z3.Const(f"{name.lower()}{n + 1}", sort) for n in range(size + (name in wide))]
            for name, sort in ((str(sort), sort) for sort in language.sorts.values())
            if sort != z3.BoolSort()
        }
        self._domains["Int"] = [z3.IntVal(number) for number in range(top + 1)]
        self._known: dict[Term, Term] = {}

    def expanded(self, term: Term) -> Term:
        """The term with the list of all cases for each quantifier."""
        if term not in self._known:
            self._known[term] = self._expanded(term)
        return self._known[term]

    def _expanded(self, term: Term) -> Term:
        if z3.is_quantifier(term):
            cases = product(*(self._domains[str(term.var_sort(n))] for n in range(term.num_vars())))
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
        symbols = (*model.facts.values(), *model.state.values())
        values = [applied(symbol, at) for symbol in symbols for at in self.points(symbol)]
        for term in (*values, *choices):
            if elements := self._domains.get(str(term.sort())):
                yield z3.Or(*(term == each for each in elements))

    def points(self, symbol: Term) -> Iterator[tuple[Term, ...]]:
        """All arguments of a symbol; of a constant, none at all, once."""
        yield from product(*(self._domains[str(sort)] for sort in arguments(symbol)))

    def names(self, values: Any) -> dict[str, str]:
        """The elements by what a solver's model calls them."""
        elements = (each for name in self._domains if name != "Int" for each in self._domains[name])
        return {str(values.eval(each, model_completion=True)): str(each) for each in elements}


_small = cache(_Small)


def _lines(
    model: Model, small: _Small, values: Any, becomes: Mapping[str, Term], choices: Sequence[Term]
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
        old, new = table(symbol, symbol), table(symbol, becomes.get(name, symbol))
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
