"""States of small size: a witness that an action is possible, or a counterexample.

Every sort gets a few elements, numbers a few values, and each quantifier becomes the list of its cases. What
is left has no quantifier, so a solver decides it. That there is no counterexample of a size is no proof.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import z3

from specs.proof.language import Model, Symbols, Term, arguments
from specs.proof.obligations import Obligation

Domains = Mapping[str, Sequence[Term]]
SIZES = (2, 3)  # elements of each sort; numbers go up to it


class Found(NamedTuple):
    """A state in which a step is possible, as lines."""

    size: int
    lines: tuple[str, ...]


def witness(model: Model, action: str) -> Found | None:
    """A small state of the invariant in which an action is possible."""
    step, choices = model.step(action)
    facts = [*model.axioms.values(), *model.invariant(model.before()).values(), step.when]
    return _found(model, facts, model.after(step), choices)


def counterexample(model: Model, obligation: Obligation) -> Found | None:
    """A small state in which the hypotheses hold, and the goal does not."""
    after, choices = model.before(), list[Term]()
    if obligation.part in model.actions:
        step, choices = model.step(obligation.part)
        after = model.after(step)
    facts = [*obligation.hypotheses.values(), z3.Not(obligation.goal)]
    return _found(model, facts, after, choices)


def _found(
    model: Model, facts: Sequence[Term], after: Symbols, choices: Sequence[Term]
) -> Found | None:
    for size in SIZES:
        domains = _domains(model, size)
        solver = z3.Solver()
        for fact in facts:
            solver.add(expanded(fact, domains))
        solver.add(*_closed(model, choices, domains))
        if solver.check() == z3.sat:
            shown = _Shown(model, solver.model(), domains)
            return Found(size, tuple(shown.lines(after, choices)))
    return None


def _domains(model: Model, size: int) -> dict[str, list[Term]]:
    found: dict[str, list[Term]] = {}
    for sort in model.language.sorts.values():
        name = str(sort)
        if sort == z3.IntSort():
            found[name] = [z3.IntVal(number) for number in range(max(size, model.numbers) + 1)]
        elif sort != z3.BoolSort():
            count = size + (name in model.wide)
            found[name] = [z3.Const(f"{name.lower()}{n}", sort) for n in range(1, count + 1)]
    return found


def expanded(term: Term, domains: Domains) -> Term:
    """The term with the list of all cases for each quantifier."""
    if z3.is_quantifier(term):
        sorts = [term.var_sort(number) for number in range(term.num_vars())]
        cases = product(*(domains[str(sort)] for sort in sorts))
        join = z3.And if term.is_forall() else z3.Or
        body = term.body()
        return join(*(expanded(z3.substitute_vars(body, *reversed(at)), domains) for at in cases))
    if not _has_quantifier(term):
        return term
    parts = [expanded(each, domains) for each in term.children()]
    if z3.is_and(term):
        return z3.And(*parts)
    return z3.Or(*parts) if z3.is_or(term) else term.decl()(*parts)


def _has_quantifier(term: Term) -> bool:
    return z3.is_quantifier(term) or any(map(_has_quantifier, term.children()))


def _closed(model: Model, choices: Sequence[Term], domains: Domains) -> Iterator[Term]:
    """Elements differ, and what is chosen or is a function of them is one of them."""
    for name, elements in domains.items():
        if name != "Int":
            yield z3.Distinct(*elements)
    for symbol in (*model.facts.values(), *model.state.values()):
        yield from (_is_one(symbol(*at), domains) for at in _points(symbol, domains))
        if z3.is_expr(symbol):
            yield _is_one(symbol, domains)
    yield from (_is_one(choice, domains) for choice in choices)


def _is_one(term: Term, domains: Domains) -> Term:
    elements = domains.get(str(term.sort()), ())
    return z3.Or(*(term == each for each in elements)) if elements else z3.BoolVal(True)


def _points(symbol: Term, domains: Domains) -> Iterator[tuple[Term, ...]]:
    if sorts := arguments(symbol):
        yield from product(*(domains[str(sort)] for sort in sorts))


class _Shown:
    """A model of a solver, in the words of the proof's model."""

    def __init__(self, model: Model, values: Any, domains: Domains) -> None:
        self._model, self._domains = model, domains
        self._values = values
        self._names = {
            str(values.eval(each, model_completion=True)): str(each)
            for name, elements in domains.items()
            if name != "Int"
            for each in elements
        }

    def lines(self, after: Symbols, choices: Sequence[Term]) -> Iterator[str]:
        """The choices, each symbol before the step, and those that it changes."""
        yield "chosen: " + (", ".join(f"{c} = {self._value(c)}" for c in choices) or "nothing")
        for name, symbol in {**self._model.state, **self._model.facts}.items():
            old = dict(self._table(symbol, symbol))
            yield f"{name}: {_listed(old)}"
            if (new := getattr(after, name, symbol)) is not symbol:
                changed = {at: value for at, value in self._table(symbol, new) if old[at] != value}
                if changed:
                    yield f"{name}': {_listed(changed)}"

    def _table(self, symbol: Term, value: Any) -> Iterator[tuple[str, str]]:
        if z3.is_expr(symbol):
            yield "", self._value(value)
        for at in _points(symbol, self._domains):
            yield ",".join(map(str, at)), self._value(value(*at))

    def _value(self, term: Term) -> str:
        text = str(self._values.eval(expanded(term, self._domains), model_completion=True))
        return self._names.get(text, text)


def _listed(table: Mapping[str, str]) -> str:
    """Points with their values; of a set, its elements."""
    if set(table) == {""}:
        return table[""]
    if set(table.values()) <= {"True", "False"}:
        return "{" + ", ".join(at for at, value in table.items() if value == "True") + "}"
    return ", ".join(f"{at} -> {value}" for at, value in table.items())
