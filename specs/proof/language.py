"""The language of the proofs: sorts, symbols, states, steps.

A model is written once, as terms of first-order logic. `specs.proof.obligations` gives them to solvers, and
`specs.proof.evaluation` computes them in a concrete state. A variable's first letter says its sort, and
a symbol is declared by letters: `known="n h"` is a function of a node to a head.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import z3

Term = Any  # z3 has no types for mypy
Symbols = SimpleNamespace


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
        patterns = [z3.MultiPattern(*hint) for hint in hints if all(map(_is_plain, hint))]
        self._depth -= 1
        return quantifier(variables, term, patterns=patterns)

    def variables(self, body: Callable[..., Any], suffix: str = "", skip: int = 0) -> list[Term]:
        """A constant for each parameter of a function, but for the first `skip`."""
        names = list(inspect.signature(body).parameters)[skip:]
        return [z3.Const(name + suffix, self.sorts[name[0]]) for name in names]

    def symbols(self, **declared: str) -> dict[str, Term]:
        """A function, or a constant, for each name."""
        return {name: self._symbol(name, letters.split()) for name, letters in declared.items()}

    def _symbol(self, name: str, letters: list[str]) -> Term:
        *arguments, result = (self.sorts[letter] for letter in letters)
        return z3.Function(name, *arguments, result) if arguments else z3.Const(name, result)


class Step(NamedTuple):
    """An action with its choices: when it may happen, and what each symbol that it changes is then."""

    when: Term
    becomes: Mapping[str, Term]


@dataclass(frozen=True)
class Model:
    """What is proved. A promised law has its name in TLA+; that of a helper is in small letters.

    Attributes:
        facts: symbols that never change; `state`: those that do.
        aside: symbols of the state that may lose elements in any step: messages, which may be lost, and ghosts.
        actions: each a function of the state before and of what is chosen.
        invariant: laws and helpers of one state; `of_steps`: laws of the state before and after.
        follows: what is true in every state of the invariant.
        wide: sorts of which a small state has one element more; `numbers`: up to which it has all.
        never: actions that a wrong decision alone makes possible.
        untrue: helpers that a wrong decision makes false, each when those before it are.
    """

    language: Language
    facts: Mapping[str, Term]
    state: Mapping[str, Term]
    axioms: Mapping[str, Term]
    initial: Callable[[Symbols], Term]
    actions: Mapping[str, Callable[..., Step]]
    invariant: Callable[[Symbols], Mapping[str, Term]]
    of_steps: Callable[[Symbols, Symbols], Mapping[str, Term]] = lambda _, __: {}
    follows: Callable[[Symbols], Mapping[str, Term]] = lambda _: {}
    aside: frozenset[str] = frozenset()
    wide: frozenset[str] = frozenset()
    numbers: int = 0
    never: frozenset[str] = frozenset()
    untrue: tuple[str, ...] = ()

    def before(self) -> Symbols:
        """The state in which a step begins."""
        return Symbols(**self.state)

    def without(self, *helpers: str) -> "Model":
        """It without these helpers."""
        kept = lambda s: {n: law for n, law in self.invariant(s).items() if n not in helpers}
        return replace(self, invariant=kept)

    def step(self, name: str) -> tuple[Step, list[Term]]:
        """An action in this state, and its choices."""
        action = self.actions[name]
        choices = self.language.variables(action, skip=1)
        return action(self.before(), *choices), choices

    def after(self, step: Step) -> Symbols:
        """The state behind a step."""
        return Symbols(**{**self.state, **step.becomes})


def put(function: Callable[..., Term], *point_and_value: Term) -> Callable[..., Term]:
    """The function with another value at one point."""
    *point, value = point_and_value

    def changed(*at: Term) -> Term:
        here = z3.And(*(a == b for a, b in zip(at, point, strict=True)))
        return z3.If(here, value, function(*at))

    return changed


def added(predicate: Callable[..., Term], *point: Term) -> Callable[..., Term]:
    """The set with one element more."""
    return put(predicate, *point, z3.BoolVal(True))


def removed(predicate: Callable[..., Term], *point: Term) -> Callable[..., Term]:
    """The set without one element."""
    return put(predicate, *point, z3.BoolVal(False))


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
