"""All states of a small system as a graph: every state reached, and every event that may happen there.

States near the beginning are visited first, and no event is left out: what a search may skip, because it leads
nowhere new, a reader may choose.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from simulation.exploration.search import Event, Failing, System

S = TypeVar("S")
EVENTS_MAX = 30_000
Make = Callable[[], System]


class Seen(NamedTuple, Generic[S]):
    """What a look at a system gave, and what failed: in the step that led there, or judging this end."""

    state: S
    failed: Failing | None
    end: bool


class Arrow(NamedTuple):
    """An event, and the number of the state after it."""

    event: Event
    target: int


@dataclass
class Graph(Generic[S]):
    """States in the order in which they were reached; `arrows` of one are None where the search was cut."""

    states: list[Seen[S]] = field(default_factory=list)
    arrows: list[list[Arrow] | None] = field(default_factory=list)
    events: int = 0

    @property
    def cut(self) -> int:
        """How many states were reached whose events were not played."""
        return sum(arrows is None for arrows in self.arrows)


def walked(
    make: Make,
    look: Callable[[System], S],
    events_max: int = EVENTS_MAX,
    *,
    along: Sequence[Event] = (),
    stop: bool = False,
) -> Graph[S]:
    """The graph of a system; `look` shows a state of it.

    `along`: a schedule whose states are in the graph in any case, with all their events. `stop`: at the first
    state that fails.
    """
    walk = _Walk(make, look)
    walk.follow(along)
    walk.spread(events_max, stop=stop)
    return walk.graph


def seen_of(system: System, look: Callable[[System], S], failed: Failing | None) -> Seen[S]:
    """A state after a step, which `failed`; an end is judged, and the system not used afterwards."""
    state, end = look(system), failed is None and not system.enabled()
    if end:
        try:
            system.judge()
        except Failing as failing:
            failed = failing
    return Seen(state, failed, end)


class _Walk(Generic[S]):
    def __init__(self, make: Make, look: Callable[[System], S]) -> None:
        self._look = look
        self.graph: Graph[S] = Graph()
        self._places: dict[tuple[bytes, str], int] = {}
        self._todo: dict[int, Make] = {}  # copies of states, in the order of their depth
        self._failed = False
        self._enter(make(), None)

    def follow(self, schedule: Sequence[Event]) -> None:
        """Play all events of the states on the way of a schedule."""
        at = 0
        for event in schedule:
            if at in self._todo:
                self._open(at)
            at = next(arrow.target for arrow in self.graph.arrows[at] or () if arrow.event == event)

    def spread(self, events_max: int, *, stop: bool) -> None:
        """Play all events of all states, those near the beginning first."""
        while self._todo and self.graph.events < events_max and not (stop and self._failed):
            self._open(next(iter(self._todo)))

    def _open(self, number: int) -> None:
        """Play every event of a state."""
        copy = self._todo.pop(number)
        arrows = self.graph.arrows[number] = []
        for event in copy().enabled():
            after, failing = copy(), None
            try:
                after.step(event)
            except Failing as found:
                failing = found
            self.graph.events += 1
            arrows.append(Arrow(event, self._enter(after, failing)))

    def _enter(self, system: System, failing: Failing | None) -> int:
        """The number of the state that a system is in."""
        key = system.digest(), str(failing or "")
        known = self._places.setdefault(key, len(self.graph.states))
        if known == len(self.graph.states):
            seen = seen_of(system, self._look, failing)
            self._failed |= seen.failed is not None
            self.graph.states.append(seen)
            goes_on = not (seen.failed or seen.end)
            self.graph.arrows.append(None if goes_on else [])
            if goes_on:
                self._todo[known] = system.copier()
        return known
