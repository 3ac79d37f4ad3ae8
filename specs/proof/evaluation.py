"""The same terms in a concrete state: each is made into a Python function once, and computed.

A `Structure` is a concrete state as logic sees it: the elements of each sort, and what each symbol is there.
Numbers are those of its domains; of others no law says anything that could differ.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import z3

from specs.proof.language import Model, Term, applied, arguments

# What a function is where its state has nothing; nothing equals it or compares with it, not it itself.
UNSET = math.nan
THEN = "_then"  # the name of a symbol behind a step ends so
_INFIX = {
    **{z3.Z3_OP_AND: "and", z3.Z3_OP_OR: "or", z3.Z3_OP_EQ: "==", z3.Z3_OP_DISTINCT: "!="},
    **{z3.Z3_OP_LE: "<=", z3.Z3_OP_LT: "<", z3.Z3_OP_GE: ">=", z3.Z3_OP_GT: ">"},
    **{z3.Z3_OP_ADD: "+", z3.Z3_OP_SUB: "-", z3.Z3_OP_MUL: "*"},
}
_FORMS = {
    **{z3.Z3_OP_TRUE: "True", z3.Z3_OP_FALSE: "False", z3.Z3_OP_NOT: "(not {})"},
    **{z3.Z3_OP_IMPLIES: "(not {} or {})", z3.Z3_OP_ITE: "({1} if {0} else {2})"},
    z3.Z3_OP_UMINUS: "(-{})",
}


class Part(NamedTuple):
    """What a symbol is; `of`: the part of the concrete state that it is made from."""

    of: Any
    value: Any


class Structure(NamedTuple):
    """Elements by the name of their sort, and symbols by name."""

    domains: Mapping[str, tuple[Any, ...]]
    parts: Mapping[str, Part]


class Computed:
    """A term as a Python function of what it names; computed once for the same parts of a state."""

    def __init__(self, term: Term) -> None:
        self._symbols: dict[str, None] = {}
        self._sorts: dict[str, None] = {}
        self._known: dict[Any, bool] = {}
        text = self._text(term)
        names = (*(f"all_{sort}" for sort in self._sorts), *self._symbols)
        self._function = eval(f"lambda {', '.join(names)}: {text}")

    def holds(self, at: Structure) -> bool:
        """Whether it is true."""
        domains, parts = [at.domains[s] for s in self._sorts], [at.parts[n] for n in self._symbols]
        key = (*domains, *(part.of for part in parts))
        if key not in self._known:
            self._known[key] = bool(self._function(*domains, *(part.value for part in parts)))
        return self._known[key]

    def _text(self, term: Term, bound: tuple[str, ...] = ()) -> str:
        if z3.is_quantifier(term):
            return self._quantifier(term, bound)
        if z3.is_var(term):
            return str(bound[-1 - z3.get_var_index(term)])
        if z3.is_int_value(term):
            return str(term)
        kind, parts = term.decl().kind(), [self._text(each, bound) for each in term.children()]
        if kind in _INFIX:
            return f"({f' {_INFIX[kind]} '.join(parts)})"
        if kind in _FORMS:
            return _FORMS[kind].format(*parts)
        name = str(term.decl().name())
        if kind != z3.Z3_OP_UNINTERPRETED:
            raise NotImplementedError(f"{name} has no form in Python")
        self._symbols[name] = None
        return f"{name}({', '.join(parts)})" if parts else name

    def _quantifier(self, term: Term, bound: tuple[str, ...]) -> str:
        """A loop for each variable; each condition is tried as soon as it can be."""
        sorts = [str(term.var_sort(number)) for number in range(term.num_vars())]
        names = tuple(f"v{len(bound) + number}" for number in range(len(sorts)))
        told, said = (z3.BoolVal(True), term.body()) if term.is_exists() else (term.body(), None)
        if z3.is_implies(told):
            said, told = told.children()
        conditions = [self._text(each, bound + names) for each in _conjuncts(said)]
        self._sorts |= dict.fromkeys(sorts)
        result = self._text(told, bound + names)
        loops, tried = "", set[str]()
        for number, (name, sort) in enumerate(zip(names, sorts, strict=True), 1):
            later = re.compile("|".join(rf"\b{other}\b" for other in names[number:]) or "$.")
            ready = [each for each in conditions if each not in tried and not later.search(each)]
            loops += f" for {name} in all_{sort}" + "".join(f" if {each}" for each in ready)
            tried.update(ready)
        if term.is_exists():
            return f"any({result}{loops})"
        return "True" if result in conditions else f"all({result}{loops})"


def _conjuncts(term: Term | None) -> Iterator[Term]:
    if term is not None and z3.is_and(term):
        for each in term.children():
            yield from _conjuncts(each)
    elif term is not None:
        yield term


def changed(model: Model, name: str, value: Callable[..., Term]) -> Term:
    """A symbol has this value behind a step, or is unset; of messages and ghosts some may be missing."""
    symbol = model.state[name]
    at = [z3.Const(f"at{number}", sort) for number, sort in enumerate(arguments(symbol))]
    result = symbol.range() if at else symbol.sort()
    then = z3.Function(name + THEN, *(each.sort() for each in at), result)(*at)
    missing = z3.Not(then) if name in model.aside else z3.Distinct(then, then)
    fits = z3.Or(missing, then == applied(value, at))
    return z3.ForAll(at, fits) if at else fits


def transition(model: Model, name: str) -> Term:
    """There are choices with which an action makes each symbol that it changes what it is behind the step."""
    step, choices = model.step(name)
    images = (changed(model, symbol, value) for symbol, value in step.becomes.items())
    whole = z3.And(step.when, *images)
    return z3.Exists(choices, whole) if choices else whole


def both(before: Structure, after: Structure) -> Structure:
    """A state and the one behind a step, among the elements of both."""
    elements = {sort: (*each, *after.domains[sort]) for sort, each in before.domains.items()}
    then = {name + THEN: part for name, part in after.parts.items()}
    domains = {sort: tuple(dict.fromkeys(each)) for sort, each in elements.items()}
    return Structure(domains, {**before.parts, **then})
