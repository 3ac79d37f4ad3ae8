"""The same terms in a concrete state: each is made into a Python function once, and computed.

A `Structure` is a concrete state as logic sees it: the elements of each sort, and what each symbol is there.
Numbers are those of its domains; of others no law says anything that could differ.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import z3

from specs.proof.language import Model, Term, applied, arguments

UNSET = (
    math.nan
)  # what a function is where its state has nothing; nothing equals it or compares with it
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


class Code(NamedTuple):
    """A term as a Python function; `symbols`, `sorts`: what it needs of a structure."""

    function: Callable[..., Any]
    symbols: tuple[str, ...]
    sorts: tuple[str, ...]
    known: dict[Any, bool]

    def __call__(self, at: Structure, *values: Any) -> Any:
        domains = (at.domains[sort] for sort in self.sorts)
        return self.function(*domains, *(at.parts[name].value for name in self.symbols), *values)

    def holds(self, at: Structure) -> bool:
        """Whether it is true; computed once for the same parts of a state."""
        key = tuple(at.parts[name].of for name in self.symbols)
        key += tuple(at.domains[sort] for sort in self.sorts)
        if key not in self.known:
            self.known[key] = bool(self(at))
        return self.known[key]


class _Writer:
    """Writes a term as Python; `free` are constants that are passed."""

    def __init__(self, free: Iterable[Term]) -> None:
        self.free = {str(each) for each in free}
        self.symbols: dict[str, None] = {}
        self.sorts: dict[str, None] = {}

    def text(self, term: Term, bound: tuple[str, ...] = ()) -> str:
        if z3.is_quantifier(term):
            return self._quantifier(term, bound)
        if z3.is_var(term):
            return str(bound[-1 - z3.get_var_index(term)])
        if z3.is_int_value(term):
            return str(term)
        kind, parts = term.decl().kind(), [self.text(each, bound) for each in term.children()]
        if kind in _INFIX:
            return f"({f' {_INFIX[kind]} '.join(parts)})"
        if kind in _FORMS:
            return _FORMS[kind].format(*parts)
        name = str(term.decl().name())
        if kind != z3.Z3_OP_UNINTERPRETED:
            raise NotImplementedError(f"{name} has no form in Python")
        if name not in self.free:
            self.symbols[name] = None
        return f"{name}({', '.join(parts)})" if parts else name

    def _quantifier(self, term: Term, bound: tuple[str, ...]) -> str:
        names = tuple(f"v{len(bound) + number}" for number in range(term.num_vars()))
        loops = " ".join(
            f"for {name} in {self.domain(term.var_sort(number))}"
            for number, name in enumerate(names)
        )
        body = self.text(term.body(), bound + names)
        return f"{'all' if term.is_forall() else 'any'}({body} {loops})"

    def domain(self, sort: Term) -> str:
        self.sorts[str(sort)] = None
        return f"all_{sort}"

    def code(self, text: str, values: Iterable[str]) -> Code:
        symbols, sorts = tuple(self.symbols), tuple(self.sorts)
        names = (*(f"all_{sort}" for sort in sorts), *symbols, *values)
        return Code(eval(f"lambda {', '.join(names)}: {text}"), symbols, sorts, {})


def compiled(term: Term, *free: Term) -> Code:
    """A term as a function of a structure and of the values of free constants."""
    writer = _Writer(free)
    return writer.code(writer.text(term), map(str, free))


class Action:
    """An action: whether it leads from one structure to another, and with which choices."""

    def __init__(self, model: Model, name: str) -> None:
        step, choices = model.step(name)
        self._aside = model.aside
        self._arguments = {name: [str(s) for s in arguments(f)] for name, f in model.state.items()}
        self._known: dict[Any, bool] = {}
        self._choices = _choices(step.when, choices)
        self._becomes = {
            symbol: _update(model, symbol, value, choices) for symbol, value in step.becomes.items()
        }
        codes = (self._choices, *self._becomes.values())
        self._reads = tuple(dict.fromkeys(name for code in codes for name in code.symbols))
        self._unchanged = tuple(name for name in model.state if name not in self._becomes)

    def leads(self, before: Structure, after: Structure) -> bool:
        """Whether there are choices with which every symbol is then what it is in `after`."""
        if not all(self._is_same(name, before, after) for name in self._unchanged):
            return False
        key = (
            tuple(before.parts[name].of for name in self._reads),
            tuple(after.parts[name].of for name in self._becomes),
            tuple(before.domains.values()),
            tuple(after.domains.values()),
        )
        if key not in self._known:
            both = _united(before, after)
            self._known[key] = any(self._fits(both, after, at) for at in self._choices(both))
        return self._known[key]

    def _is_same(self, name: str, before: Structure, after: Structure) -> bool:
        old, new = before.parts[name], after.parts[name]
        value = old.value if callable(old.value) else lambda: old.value
        return old.of == new.of or self._agree(name, _united(before, after), after, value)

    def _fits(self, before: Structure, after: Structure, chosen: Sequence[Any]) -> bool:
        return all(
            self._agree(name, before, after, lambda *at, code=code: code(before, *chosen, *at))
            for name, code in self._becomes.items()
        )

    def _agree(
        self, name: str, before: Structure, after: Structure, value: Callable[..., Any]
    ) -> bool:
        """Whether a symbol has this value in `after`; of messages and ghosts some may be missing there."""
        new, aside = after.parts[name].value, name in self._aside
        if not (sorts := self._arguments[name]):
            return _is_unset(new) or bool(new == value())
        for at in product(*(before.domains[sort] for sort in sorts)):
            found = new(*at)
            if not (_is_unset(found) or (aside and not found) or found == value(*at)):
                return False
        return True


def _is_unset(value: Any) -> bool:
    return value is UNSET


def _united(before: Structure, after: Structure) -> Structure:
    """The state before, among the elements of both."""
    domains = {
        sort: tuple(dict.fromkeys((*elements, *after.domains[sort])))
        for sort, elements in before.domains.items()
    }
    return before._replace(domains=domains)


def _choices(when: Term, choices: Sequence[Term]) -> Code:
    """All choices with which an action may happen; each condition is tried as soon as it can be."""
    writer, left = _Writer(choices), list(_conjuncts(when))
    text, chosen = "", set()
    for choice in (None, *choices):
        if choice is not None:
            chosen.add(str(choice))
            text += f" for {choice} in {writer.domain(choice.sort())}"
        ready = [each for each in left if _constants(each) & writer.free <= chosen]
        left = [each for each in left if not _constants(each) & writer.free <= chosen]
        text += "".join(f" if {writer.text(each)}" for each in ready)
    everything = "".join(f"{choice}, " for choice in choices)
    start = "for _ in (0,)" if not text.startswith(" for") else ""
    return writer.code(f"(({everything}) {start}{text})", ())


def _conjuncts(term: Term) -> Iterator[Term]:
    if z3.is_and(term):
        for each in term.children():
            yield from _conjuncts(each)
    else:
        yield term


@cache
def _constants(term: Term) -> frozenset[str]:
    if z3.is_quantifier(term):
        return _constants(term.body())
    own = {str(term)} if z3.is_const(term) else set()
    return frozenset(own.union(*map(_constants, term.children())))


def _update(model: Model, name: str, value: Term, choices: Sequence[Term]) -> Code:
    at = [z3.Const(f"at{n}", sort) for n, sort in enumerate(arguments(model.state[name]))]
    return compiled(applied(value, at), *choices, *at)
