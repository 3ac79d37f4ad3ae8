"""Breadth-first search of all states of a small model; states are tuples."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeVar

from runs.collection import collection_paused

S = TypeVar("S", bound=Hashable)
T = TypeVar("T")


class Model(Protocol[S]):
    """A protocol: its first states, its steps and what must hold in every state."""

    def initial(self) -> Iterable[S]:
        """The states in which it may begin."""

    def steps(self, state: S) -> Iterator[tuple[str, S]]:
        """Every step that is possible in `state`: its name and the state after it."""

    def laws(self) -> Mapping[str, Callable[[S], bool]]:
        """Invariants by name."""

    def representative(self, state: S) -> S:
        """One state for all that differ only in the names of equal parts; as a rule no parts are equal."""
        return state


class Exploration(NamedTuple):
    """What came out: the number of distinct states, and the broken law if there is one.

    `complete` is false when the search stopped at its limit: then nothing is known.
    """

    distinct_states: int
    complete: bool = True
    broken_law: str | None = None


@collection_paused()
def explore(
    model: Model[S],
    laws: Iterable[str],
    most: int,
    step_laws: Mapping[str, Callable[[S, S], bool]] | None = None,
) -> Exploration:
    """Visit every reachable state, and stop at the first state or step that breaks a law.

    `laws` are names of the model's invariants, `step_laws` are laws of steps. The search gives up after `most`
    distinct states.

    Raises:
        KeyError: the model has no law of that name.
    """
    checks = {name: model.laws()[name] for name in laws}
    of_steps = step_laws or {}
    known: set[S] = set()
    frontier: list[S] = []
    new: Iterator[tuple[S, S | None]]
    new = ((state, None) for state in model.initial())
    while True:
        for found, before in new:
            for name, allowed in of_steps.items():
                if before is not None and not allowed(before, found):
                    return Exploration(len(known), broken_law=name)
            state = model.representative(found)
            if state in known:
                continue
            known.add(state)
            frontier.append(state)
            for name, holds in checks.items():
                if not holds(state):
                    return Exploration(len(known), broken_law=name)
            if len(known) > most:
                return Exploration(len(known), complete=False)
        if not frontier:
            return Exploration(len(known))
        level, frontier = frontier, []
        new = ((after, state) for state in level for _, after in model.steps(state))


def with_item(items: tuple[T, ...], number: int, item: T) -> tuple[T, ...]:
    """The items with another one in place `number`."""
    return (*items[:number], item, *items[number + 1 :])
