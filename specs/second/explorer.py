"""Breadth-first search of all states of a small model; states are tuples."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

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


@dataclass(frozen=True)
class Exploration(Generic[S]):
    """What came out: the number of distinct states, and the broken law with the way to it.

    `path` holds (step, state) pairs from a first state on, the shortest way; it is empty when no law
    is broken. `complete` is false when the search stopped at its limit: then nothing is known.
    """

    distinct_states: int
    complete: bool = True
    broken_law: str | None = None
    path: tuple[tuple[str, S], ...] = ()


def explore(
    model: Model[S],
    laws: Iterable[str],
    most: int,
    step_laws: Mapping[str, Callable[[S, S], bool]] | None = None,
) -> Exploration[S]:
    """Visit every reachable state, and stop at the first state or step that breaks a law.

    `laws` are names of the model's invariants, `step_laws` are laws of steps. The search gives up after `most`
    distinct states.

    Raises:
        KeyError: the model has no law of that name.
    """
    checks = {name: model.laws()[name] for name in laws}
    of_steps = step_laws or {}
    came_from: dict[S, tuple[str, S] | None] = {}
    frontier: list[S] = []
    new: Iterator[tuple[str, S, S | None]]
    new = (("Init", state, None) for state in model.initial())
    while True:
        for step, found, parent in new:
            for name, allowed in of_steps.items():
                if parent is not None and not allowed(parent, found):
                    path = (*_path(came_from, parent), (step, found))
                    return Exploration(len(came_from), True, name, path)
            state = model.representative(found)
            if state in came_from:
                continue
            came_from[state] = None if parent is None else (step, parent)
            frontier.append(state)
            for name, holds in checks.items():
                if not holds(state):
                    return Exploration(len(came_from), True, name, _path(came_from, state))
            if len(came_from) > most:
                return Exploration(len(came_from), complete=False)
        if not frontier:
            return Exploration(len(came_from))
        level, frontier = frontier, []
        new = ((step, after, state) for state in level for step, after in model.steps(state))


def _path(came_from: Mapping[S, tuple[str, S] | None], state: S) -> tuple[tuple[str, S], ...]:
    path: list[tuple[str, S]] = []
    at: S | None = state
    while at is not None:
        origin = came_from[at]
        path.append((origin[0] if origin else "Init", at))
        at = origin[1] if origin else None
    return tuple(reversed(path))


def with_item(items: tuple[T, ...], number: int, item: T) -> tuple[T, ...]:
    """The items with another one in place `number`."""
    return (*items[:number], item, *items[number + 1 :])
