"""Hosts on a virtual clock: each runs one node as an object of this process.

A node reads as the real one does: all lines that are there at once, then all its answers in one write. It
thinks before that, for a time drawn for each line, and hears nothing new meanwhile. A killed node loses its
memory and the lines on their way to it; a paused one does nothing, and its pipe keeps the lines.
"""

from collections.abc import Callable, Sequence
from math import ceil

from bench.hosts import Host, OnLine
from bench.loop import Loop
from simulation.nodes import MakeSpeaker, Speaker

NS = 1_000_000_000
Think = Callable[[], int]  # draws nanoseconds


class SimulatedHost:
    """One node; `make(name, incarnation)` gives its session, a new one for each start."""

    def __init__(
        self, name: str, loop: Loop, on_line: OnLine, make: MakeSpeaker, think_ns: Think
    ) -> None:
        self.name = name
        self._loop, self._on_line = loop, on_line
        self._make, self._think_ns = make, think_ns
        self._starts = 0
        self._paused = False
        self._inbox: list[bytes] = []
        self._reading = False  # a reading is planned
        self._alarm_ns: int | None = None  # the earliest timer that is set
        self._speaker: Speaker | None = None

    @property
    def alive(self) -> bool:
        """Whether the node runs (a paused one does)."""
        return self._speaker is not None

    def start(self) -> None:
        """Begin with an empty memory."""
        self._starts += 1
        self._speaker = self._make(self.name, self._starts)
        self._paused = False

    restart = start

    def kill(self) -> None:
        """Lose everything."""
        self._speaker = None
        self._inbox = []
        self._reading, self._alarm_ns = False, None

    def pause(self) -> None:
        """Stop where it is."""
        self._paused = True

    def resume(self) -> None:
        """Go on with whatever came meanwhile."""
        self._paused = False
        if self._inbox and not self._reading:
            self._plan_reading()
        if self._speaker:
            self._set_alarm(self._speaker)

    def postmortem(self) -> str:
        """For a report."""
        return f"an object in this process, {'alive' if self.alive else 'killed'}"

    def deliver(self, message: bytes) -> None:
        """Put a line into the node's pipe."""
        if self._speaker:
            self._inbox.append(message)
            if not (self._reading or self._paused):
                self._plan_reading()

    def _plan_reading(self) -> None:
        self._reading = True
        think_ns = sum(self._think_ns() for _ in self._inbox)
        self._loop.call_at(self._loop.now_ns() + think_ns, self._read, self._speaker)

    def _read(self, speaker: Speaker) -> None:
        if speaker is not self._speaker or not self._reading:
            return
        self._reading = False
        if self._paused:
            return
        lines, self._inbox = self._inbox, []
        now_s = self._loop.now_ns() / NS
        for line in lines:
            speaker.receive(line, now_s)
        if (deadline := speaker.deadline) is not None and deadline <= now_s:
            speaker.pass_time(now_s)
        self._speak(speaker)

    def _speak(self, speaker: Speaker) -> None:
        for line in speaker.take().splitlines():
            self._on_line(self.name, line)
        self._set_alarm(speaker)

    def _set_alarm(self, speaker: Speaker) -> None:
        if speaker is not self._speaker or (deadline := speaker.deadline) is None:
            return
        at_ns = max(ceil(deadline * NS), self._loop.now_ns() + 1)
        if self._alarm_ns is None or at_ns < self._alarm_ns:
            self._alarm_ns = at_ns
            self._loop.call_at(at_ns, self._ring, speaker, at_ns)

    def _ring(self, speaker: Speaker, at_ns: int) -> None:
        if speaker is not self._speaker or at_ns != self._alarm_ns:
            return
        self._alarm_ns = None
        if not self._paused:
            speaker.pass_time(self._loop.now_ns() / NS)
            self._speak(speaker)


class SimulatedHosts:
    """All nodes of a run."""

    def __init__(self, hosts: Sequence[SimulatedHost]) -> None:
        self._hosts = hosts

    def start(self) -> list[Host]:
        """Start them all."""
        for host in self._hosts:
            host.start()
        return list(self._hosts)

    def stop(self) -> None:
        """They are garbage from now on."""
        for host in self._hosts:
            host.kill()
