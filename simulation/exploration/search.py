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
from dataclasses import dataclass, field
from hashlib import blake2b
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
    copier: Callable[[], System]  # makes the system in this state


@dataclass(slots=True)
class Counts:
    """`schedules`: played to an end; `merged`: up to a state that was reached before."""

    schedules: int = 0
    events: int = 0
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
    """A search, which may go on in several runs. `cpu_s`: seconds of CPU of all of them.

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

    def run(self, make: Callable[[], System], stop: Callable[[], bool]) -> None:
        """Go on until everything was searched, a schedule fails, or `stop()` after some event."""
        try:
            self._go_on(make, stop)
        except Failing as failing:
            self.failed = Failed(failing.name, failing.text, tuple(self._path))

    def _go_on(self, make: Callable[[], System], stop: Callable[[], bool]) -> None:
        system = None
        if not self.started:
            self.started = True
            system = make()  # what comes before the exploration may fail, too
            self._enter(system, UNBOUNDED if self.delays is None else self.delays)
        while not (self.done or stop()):
            frame = self._frames[-1]
            if not frame.todo:
                self._frames.pop()
                if self._path:
                    self._path.pop()
                system = None
                continue
            system = system or frame.copier()
            if not self._advance(system, frame):
                system = None

    def _advance(self, system: System, frame: Frame) -> bool:
        """Let the next event of a frame happen; whether the system is now in a new frame."""
        self.counts.events += 1
        self._path.append(frame.todo.pop(0))
        system.step(self._path[-1])
        if self._enter(system, frame.delays - (frame.parts - len(frame.todo) - 1)):
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
        # Where one event is left, no copy is needed: the system itself goes on.
        copier = system.copier() if len(todo) > 1 else lambda: system
        self._frames.append(Frame(todo, len(todo), delays, copier))
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
        if not (self.merging and digest in self.ends):
            self.ends.add(digest)
            system.judge()


def exactly(system: System, schedule: Iterable[Event]) -> Iterator[Event]:
    """Play a schedule; yields each event before it happens.

    Raises `Failing`, and `ValueError` for what cannot happen.
    """
    for event in schedule:
        if event not in system.enabled():
            raise ValueError(f"{event} cannot happen there: the schedule is of another version")
        yield event
        system.step(event)
