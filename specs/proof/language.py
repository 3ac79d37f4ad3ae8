"""The language of the proofs: sorts, symbols, steps, models.

A model is written once, as terms of first-order logic. `specs.proof.obligations` gives them to solvers, and
`specs.proof.evaluation` computes them in a concrete state. A variable's first letter says its sort, and
a symbol is declared by letters: `known="n h"` is a function of a node to a head.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import z3

Term = Any  # z3 has no types for mypy
Symbols = SimpleNamespace  # what each name is in one state
Formulas = Mapping[str, Callable[..., Any]]  # each of a state, or of two, and of what it is said
YES, NO = z3.BoolVal(True), z3.BoolVal(False)


class Language:
    """The sorts of a model, by the letter of their variables; `int` and `bool` are those of logic."""

    def __init__(self, **letters: str | type) -> None:
        known = {int: z3.IntSort(), bool: z3.BoolSort()}
        self.sorts: dict[str, Term] = {
            letter: z3.DeclareSort(name) if isinstance(name, str) else known[name]
            for letter, name in letters.items()
        }
        self._depth = 0

    def each(
        self, body: Callable[..., Term], at: Callable[..., Sequence[Sequence[Term]]] | None = None
    ) -> Term:
        """`each(lambda n, i: ...)`: for every node n and number i.

        `at(n, i)`: groups of terms; a solver thinks of this where it has those of a group.
        """
        return self._bound(z3.ForAll, body, at)

    def some(self, body: Callable[..., Term]) -> Term:
        """`some(lambda i: ...)`: there is such a number i."""
        return self._bound(z3.Exists, body)

    def _bound(
        self,
        quantifier: Callable[..., Term],
        body: Callable[..., Term],
        at: Callable[..., Sequence[Sequence[Term]]] | None = None,
    ) -> Term:
        # A name says how deep it is bound: none hides another, and equal formulas are written alike.
        self._depth += 1
        variables = self.variables(body, str(self._depth))
        term = body(*variables)
        hints = at(*variables) if at else ()
        self._depth -= 1
        patterns = [z3.MultiPattern(*hint) for hint in hints if all(map(_is_plain, hint))]
        return quantifier(variables, term, patterns=patterns)

    def variables(self, body: Callable[..., Any], suffix: str = "", skip: int = 0) -> list[Term]:
        """A constant for each parameter of a function, but for the first `skip`."""
        names = list(inspect.signature(body).parameters)[skip:]
        return [z3.Const(name + suffix, self.sorts[name[0]]) for name in names]

    def symbols(self, **declared: str) -> dict[str, Term]:
        """A function, or a constant, for each name."""
        sorts = {name: [self.sorts[c] for c in text.split()] for name, text in declared.items()}
        return {
            name: z3.Function(name, *of) if len(of) > 1 else z3.Const(name, *of)
            for name, of in sorts.items()
        }


class Step(NamedTuple):
    """An action with its choices: when it may happen, and what each symbol that it changes is then."""

    when: Term
    becomes: Mapping[str, Term]


class Wrong(NamedTuple):
    """What the manifest puts in the place of a definition.

    Attributes:
        instead: the formula; None: the model allows it already.
        beside: what stands in for other definitions then.
        untrue: helpers that are false then, each when those before it are.
        unseen: why no proof here can see it; "": it can.
    """

    instead: Callable[..., Any] | None = None
    beside: tuple[tuple[str, Callable[..., Any]], ...] = ()
    untrue: tuple[str, ...] = ()
    unseen: str = ""


@dataclass(frozen=True, eq=False)
class Model:
    """What is proved. A promised law has its name in TLA+; that of a helper is in small letters.

    Attributes:
        facts: symbols that never change; `state`: those that do.
        definitions: of a state; those that are decisions have their names in TLA+.
        actions: each of the state before and of what is chosen.
        laws: laws and helpers of one state; `of_steps`: laws of the state before and after.
        follows: what is true in every state of the laws.
        axioms: what is true of facts.
        wrong: by the name of a definition, and of what the manifest puts in its place.
        structure: a concrete state as `evaluation` needs it, made of a configuration and of a state of TLC.
        unlike: of a configuration, who says in which steps the model in Python differs from TLC.
        visited: the configurations whose states are visited; none: all small ones.
        aside: symbols of the state that may lose elements in any step: messages, which may be lost, and ghosts.
        wide: sorts of which a small state has one element more; `numbers`: up to which it has all.
        never: actions that a wrong decision alone makes possible.
        also: actions that TLA+ has under one name, and the proof under several.
        untrue: see `Wrong`.
    """

    language: Language
    facts: Mapping[str, Term]
    state: Mapping[str, Term]
    definitions: Formulas
    initial: Callable[[Symbols], Term]
    actions: Formulas
    laws: Formulas
    of_steps: Formulas = field(default_factory=dict)
    follows: Formulas = field(default_factory=dict)
    axioms: Formulas = field(default_factory=dict)
    wrong: Mapping[tuple[str, str], Wrong] = field(default_factory=dict)
    structure: Callable[..., Any] | None = None
    unlike: Callable[..., Callable[..., Iterator[str]]] | None = None
    visited: tuple[str, ...] = ()
    aside: frozenset[str] = frozenset()
    wide: frozenset[str] = frozenset()
    numbers: int = 0
    never: frozenset[str] = frozenset()
    also: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    untrue: tuple[str, ...] = ()

    def at(self, **changed: Term) -> Symbols:
        """A state; where nothing is said of a symbol, it is as when a step begins."""
        s = Symbols(**{**self.facts, **self.state, **changed})
        vars(s).update({name: partial(meant, s) for name, meant in self.definitions.items()})
        return s

    def step(self, name: str) -> tuple[Step, list[Term]]:
        """An action in the state in which it begins, and its choices. What is no action changes nothing."""
        if name not in self.actions:
            return Step(YES, {}), []
        choices = self.language.variables(self.actions[name], skip=1)
        return self.actions[name](self.at(), *choices), choices

    def patched(self, instead: Formulas, untrue: Sequence[str] = ()) -> "Model":
        """It with other definitions."""
        return replace(self, definitions={**self.definitions, **instead}, untrue=tuple(untrue))

    def without(self, *helpers: str) -> "Model":
        """It without these helpers."""
        return replace(self, laws={n: law for n, law in self.laws.items() if n not in helpers})


def terms(formulas: Formulas, *states: Symbols) -> dict[str, Term]:
    """What formulas say of states."""
    return {name: formula(*states) for name, formula in formulas.items()}


def put(function: Callable[..., Term], *point_and_value: Term) -> Callable[..., Term]:
    """The function with another value at one point."""
    *point, value = point_and_value
    here = lambda at: z3.And(*(a == b for a, b in zip(at, point, strict=True)))
    return lambda *at: z3.If(here(at), value, function(*at))


def added(predicate: Callable[..., Term], *point: Term) -> Callable[..., Term]:
    """The set with one element more."""
    return put(predicate, *point, YES)


def removed(predicate: Callable[..., Term], *point: Term) -> Callable[..., Term]:
    """The set without one element."""
    return put(predicate, *point, NO)


def arguments(symbol: Term) -> list[Term]:
    """The sorts of a function's arguments; of a constant none."""
    is_function = isinstance(symbol, z3.FuncDeclRef)
    return [symbol.domain(n) for n in range(symbol.arity())] if is_function else []


def applied(function: Any, at: Sequence[Term]) -> Term:
    """The function at these arguments; without any it is a constant."""
    return function(*at) if at else function


def _is_plain(term: Term) -> bool:
    """Whether it is made of symbols alone, as a hint must be; in a state behind a step it is not."""
    return z3.is_var(term) or (
        term.decl().kind() == z3.Z3_OP_UNINTERPRETED and all(map(_is_plain, term.children()))
    )
