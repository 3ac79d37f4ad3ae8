"""Hosts on a virtual clock: each runs one node as an object of this process.

A node reads as the real one does: all lines that are there at once, then it writes all its answers at once.
Before that it thinks, for a time drawn for each line, and reads nothing meanwhile. A killed node loses its
memory and the lines on their way to it. A paused node does nothing, and its pipe keeps the lines.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from math import ceil
from typing import Protocol

from bench.cluster import Host, OnLine
from bench.loop import Loop
from bench.verdict.silence import Pipes

NS = 1_000_000_000
Think = Callable[[], int]  # draws nanoseconds


class NodeSession(Protocol):
    """A node without I/O: lines in, lines out; see `leaderless.runtime.session.Session`."""

    @property
    def deadline(self) -> float | None:
        """When `pass_time` is next needed, in seconds, or None."""

    def receive_all(
        self, lines: Sequence[bytes], now: float, arrived_at: float | None = None
    ) -> None:
        """Take lines that came together, at time `now` in seconds, and notice deadlines that have come.

        They may have lain in the pipe since `arrived_at`.
        """
        for line in lines:
            self.receive(line, now, arrived_at)
        if (deadline := self.deadline) is not None and deadline <= now:
            self.pass_time(now)

    def receive(self, line: bytes, now: float, arrived_at: float | None = None) -> None:
        """Take one line."""

    def pass_time(self, now: float) -> None:
        """The deadline came."""

    def take(self) -> bytes:
        """What is to be written now: whole lines."""


# (the node's name, which of its starts this is, from 1) -> a node that has received no line yet.
MakeNode = Callable[[str, int], NodeSession]


@dataclass(eq=False)
class SimulatedHost:
    """One node; `make(name, incarnation)` gives its session, a new one for each start.

    `on_line` is called with each line that the node writes, `on_kill` with the name of a node that is killed,
    `on_resume` with that of a node that goes on after it stood still. `on_old_lines` is called just before it
    reads its first lines after that, with its name and with when it stopped (ns).
    """

    name: str
    loop: Loop
    on_line: OnLine
    make: MakeNode
    think_ns: Think
    _: KW_ONLY
    on_kill: Callable[[str], object] = lambda _: None
    on_resume: Callable[[str], object] = lambda _: None
    on_old_lines: Callable[[str, int], object] = lambda _name, _stopped_ns: None

    def __post_init__(self) -> None:
        self._starts = 0
        self._paused = False
        self._stopped_ns: int | None = None  # of the first stop after which nothing was read yet
        self._inbox: list[bytes] = []
        self._reading = False  # a reading is planned
        self._alarm_ns: int | None = None  # the earliest timer that is set
        self._session: NodeSession | None = None

    @property
    def alive(self) -> bool:
        """Whether the node runs (a paused one does)."""
        return self._session is not None

    def start(self) -> None:
        self._starts += 1
        self._session = self.make(self.name, self._starts)
        self._paused = False

    restart = start

    def kill(self) -> None:
        self._session = None
        self._inbox, self._stopped_ns = [], None
        self._reading, self._alarm_ns = False, None
        self.on_kill(self.name)

    def pause(self) -> None:
        if not self._paused and self._stopped_ns is None:
            self._stopped_ns = self.loop.now_ns()
        self._paused = True

    def resume(self) -> None:
        """Go on with whatever came meanwhile."""
        self._paused = False
        if not self._inbox:
            self._stopped_ns = None
        if self._inbox and not self._reading:
            self._plan_reading()
        if self._session:
            self._set_alarm(self._session)
        self.on_resume(self.name)

    def postmortem(self) -> str:
        return f"an object in this process, {'alive' if self.alive else 'killed'}"

    def pipes(self) -> Pipes:
        return Pipes(unread_bytes=sum(map(len, self._inbox)))

    def deliver(self, message: bytes) -> None:
        """Put a line into the node's pipe."""
        if self._session:
            self._inbox.append(message)
            if not (self._reading or self._paused):
                self._plan_reading()

    def _plan_reading(self) -> None:
        self._reading = True
        think_ns = sum(self.think_ns() for _ in self._inbox)
        self.loop.call_at(self.loop.now_ns() + think_ns, self._read, self._session)

    def _read(self, session: NodeSession) -> None:
        if session is not self._session or not self._reading:
            return
        self._reading = False
        if self._paused:
            return
        lines, self._inbox = self._inbox, []
        now_s = self.loop.now_ns() / NS
        stopped_ns, self._stopped_ns = self._stopped_ns, None
        if stopped_ns is not None:
            self.on_old_lines(self.name, stopped_ns)
        # After it stood still, the real node's loop says so.
        session.receive_all(lines, now_s, None if stopped_ns is None else stopped_ns / NS)
        self._write(session)

    def _write(self, session: NodeSession) -> None:
        for line in session.take().splitlines():
            self.on_line(self.name, line)
        self._set_alarm(session)

    def _set_alarm(self, session: NodeSession) -> None:
        if session is not self._session or (deadline := session.deadline) is None:
            return
        at_ns = max(ceil(deadline * NS), self.loop.now_ns() + 1)
        if self._alarm_ns is None or at_ns < self._alarm_ns:
            self._alarm_ns = at_ns
            self.loop.call_at(at_ns, self._ring, session, at_ns)

    def _ring(self, session: NodeSession, at_ns: int) -> None:
        if session is not self._session or at_ns != self._alarm_ns:
            return
        self._alarm_ns = None
        if not self._paused:
            session.pass_time(self.loop.now_ns() / NS)
            self._write(session)


@dataclass(eq=False)
class SimulatedHosts:
    """All nodes of a run, by name; `new` makes the host of one."""

    names: Sequence[str]
    new: Callable[[str], SimulatedHost]
    by_name: dict[str, SimulatedHost] = field(default_factory=dict)

    def prepare(self) -> list[Host]:
        return [self.add(name) for name in self.names]

    def add(self, name: str) -> Host:
        self.by_name[name] = host = self.new(name)
        return host

    def stop(self) -> None:
        for host in self.by_name.values():
            host.kill()
