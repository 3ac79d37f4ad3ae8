"""A search of all schedules of a system, depth first.

To go back, the search takes a copy of the system. A search that goes on where it was stopped has none yet: it
makes a new system and plays the events again that lead to the branch. A system is deterministic: the same
events lead to the same state.

*Merged states*, which can be left out: a state that was reached before, as its digest says, is not searched
again. It needs a system without cycles, in which equal digests mean equal futures. Events that touch nothing in
common lead to one state in any order, so of these orders one is followed further.

A bound on delays cuts the search. A schedule may deviate so often from the first enabled event, where taking
the event at place `n` counts as `n` deviations [Emmi, Qadeer, Rakamaric: Delay-bounded scheduling, POPL 2011].
Such a search is complete for its bound only. A state is searched again when it is reached with more delays
left, or with another order of what may happen.

A seed draws the order in which branches are searched. Each event has a priority, and all priorities are drawn
again after some events, as in probabilistic concurrency testing [Burckhardt and others, 2010]. A whole search
reaches the same ends with any seed. But it may reach a failure much sooner: without a seed, the schedules that
are searched first differ only near their end.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import zip_longest
from typing import NamedTuple, Protocol

UNBOUNDED = 1 << 60  # delays
PRIORITIES_LAST = 30  # events, until priorities are drawn again


class Event(NamedTuple):
    """One thing that may happen; `what` names a message, a node, a client or a length of time.

    The name is the same in every order of events that touch nothing in common.
    """

    kind: str
    what: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.what}".strip()


class Failing(Exception):
    """The system did what it must not do; `name` is an invariant or an anomaly."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name, self.text = name, text


class System(Protocol):
    """What is searched: a value that is changed by one event after the other."""

    def enabled(self) -> Sequence[Event]:
        """What may happen next, the most natural first; empty at an end."""

    def step(self, event: Event) -> None:
        """Let an enabled event happen. Raises `Failing`."""

    def digest(self) -> bytes:
        """Equal for states with the same futures and the same judgements."""

    def judge(self) -> None:
        """Judge an end; the system is not used afterwards. Raises `Failing`."""

    def copier(self) -> Callable[[], "System"]:
        """Makes copies of what it is now."""


@dataclass(slots=True)
class Frame:
    """A state on the way: the events still to be tried there."""

    todo: list[Event]
    parts: int  # how many events were to be tried
    delays: int  # how many more are allowed
    copier: Callable[[], System] | None = field(default=None, init=False)


@dataclass(slots=True)
class Counts:
    """`schedules`: played to an end; `merged`: up to a state that was reached before."""

    schedules: int = 0
    events: int = 0
    replayed: int = 0
    merged: int = 0
    delayed: int = 0  # branches that the bound on delays cut off


@dataclass(frozen=True, slots=True)
class Failed:
    """A schedule that fails: in its last event, or at the end that it reaches."""

    name: str
    text: str
    schedule: tuple[Event, ...]


@dataclass
class Search:
    """A search, which `plain` keeps between runs. `cpu_s`: seconds of CPU of all runs.

    `states` has the digest of each state visited, `ends` those of states without a future. `within`: with a
    bound, of each state and order of what may happen there, the most delays that were left.
    """

    merging: bool = True
    delays: int | None = None
    counts: Counts = field(default_factory=Counts)
    states: set[bytes] = field(default_factory=set)
    ends: set[bytes] = field(default_factory=set)
    within: dict[bytes, int] = field(default_factory=dict)
    failed: Failed | None = None
    started: bool = False
    seed: int | None = None
    cpu_s: float = 0.0
    _frames: list[Frame] = field(default_factory=list)
    _path: list[Event] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether everything was searched, or a schedule failed."""
        return self.failed is not None or (self.started and not self._frames)

    @property
    def fraction(self) -> float:
        """The share of the search that is done, if the branches of each state were of equal size."""
        if self.done:
            return 1.0
        share, weight = 0.0, 1.0
        for depth, frame in enumerate(self._frames, 1):
            is_begun, parts = depth < len(self._frames), max(1, frame.parts)
            share += weight * (parts - len(frame.todo) - is_begun) / parts
            weight /= parts
        return share

    def require_possible(self, make: Callable[[], System]) -> None:
        """Raise `ValueError` if this is no progress of a search of such a system."""
        steps = [[event] for event in (self.failed.schedule if self.failed else self._path)]
        todos = [each.todo for each in self._frames]
        with suppress(Failing):
            system = make()
            for step, todo in zip_longest(steps, todos):
                if impossible := {*(step or ()), *(todo or ())} - {*system.enabled()}:
                    raise ValueError(f"{min(impossible)} cannot happen there")
                for event in step or ():
                    system.step(event)

    def run(self, make: Callable[[], System], stop: Callable[[], bool]) -> None:
        """Go on until everything was searched, a schedule fails, or `stop()` after some event."""
        system = self._begin(make) if not self.started else None
        while self._frames and not self.failed and not stop():
            frame = self._frames[-1]
            if not frame.todo:
                self._frames.pop()
                if self._path:
                    self._path.pop()
                system = None
                continue
            system = system or self._back(make)
            if not self._advance(system, frame, frame.todo[0]):
                system = None

    def _begin(self, make: Callable[[], System]) -> System | None:
        self.started = True
        try:
            system = make()  # what comes before the exploration may fail, too
        except Failing as failing:
            self._fail(failing)
            return None
        delays = UNBOUNDED if self.delays is None else self.delays
        return system if self._enter(system, delays) else None

    def _back(self, make: Callable[[], System]) -> System:
        """The system in the state of the last frame."""
        if copier := self._frames[-1].copier:
            return copier()
        self.counts.replayed += len(self._path)
        system = make()
        for event in self._path:
            system.step(event)
        return system

    def _advance(self, system: System, frame: Frame, event: Event) -> bool:
        """Let an event happen; whether the system is now in a new frame."""
        self.counts.events += 1
        try:
            system.step(event)
        except Failing as failing:
            self._fail(failing, event)
            return False
        frame.todo.pop(0)
        delays = frame.delays - (frame.parts - len(frame.todo) - 1)
        self._path.append(event)
        if self._enter(system, delays):
            return True
        self._path.pop()
        return False

    def _enter(self, system: System, delays: int) -> bool:
        """Put a frame for the state of the system on the stack, if there is anything to try there."""
        enabled, digest = self._ordered(system.enabled()), system.digest()
        if not enabled:
            self._end(system, digest)
            return False
        if self.merging and self._is_known(digest, enabled, delays):
            self.counts.merged += 1
            return False
        self.states.add(digest)
        todo = [*enabled[: delays + 1]]
        self.counts.delayed += len(enabled) - len(todo)
        self._frames.append(Frame(todo, len(todo), delays))
        if len(todo) > 1:
            self._frames[-1].copier = system.copier()
        return True

    def _is_known(self, digest: bytes, enabled: Sequence[Event], delays: int) -> bool:
        """Whether all that may happen in a state was searched before, with as many delays left."""
        if self.delays is None:
            return digest in self.states
        place = digest + blake2b(repr(enabled).encode(), digest_size=16).digest()
        known = self.within.get(place, -1)
        self.within[place] = max(known, delays)
        return delays <= known

    def _ordered(self, events: Sequence[Event]) -> Sequence[Event]:
        """The events that may happen now, in the order in which they are tried."""
        if self.seed is None:
            return events
        drawn = f"{self.seed} {len(self._path) // PRIORITIES_LAST}"
        return sorted(events, key=lambda event: blake2b(f"{drawn} {event}".encode()).digest())

    def _end(self, system: System, digest: bytes) -> None:
        self.counts.schedules += 1
        self.states.add(digest)
        if self.merging and digest in self.ends:
            return
        self.ends.add(digest)
        try:
            system.judge()
        except Failing as failing:
            self._fail(failing)

    def _fail(self, failing: Failing, *last: Event) -> None:
        self.failed = Failed(failing.name, failing.text, (*self._path, *last))


def exactly(system: System, schedule: Iterable[Event]) -> Iterator[Event]:
    """Play a schedule; yields each event before it happens.

    Raises `Failing`, and `ValueError` for what cannot happen.
    """
    for event in schedule:
        if event not in system.enabled():
            raise ValueError(f"{event} cannot happen there: the schedule is of another version")
        yield event
        system.step(event)
