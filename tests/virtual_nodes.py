"""Real nodes on the bench's virtual clock: a `Session` each, fed line by line, its timers on the loop."""

from collections.abc import Callable

from bench.hosts import OnLine
from bench.loop import VirtualLoop
from leaderless.core.strategy import Options
from leaderless.runtime.session import Session
from tests.fakes import StrategyMaker, new_session
from tests.virtual import THINK_NS


class SessionHost:
    """Runs one session on the loop; it takes `THINK_NS` for a line."""

    def __init__(self, loop: VirtualLoop, name: str, on_line: OnLine, session: Session) -> None:
        self.name = name
        self._loop, self._on_line, self._session = loop, on_line, session

    def start(self) -> None:
        """Nothing to start."""

    def postmortem(self) -> str:
        """Such a node does not die."""
        return "a session in this process"

    def deliver(self, message: bytes) -> None:
        """Let the node have a line."""
        self._loop.call_at(self._loop.now_ns() + THINK_NS, self._receive, message)

    def _receive(self, message: bytes) -> None:
        self._session.receive(message, self._now_s)
        self._speak()

    def _pass_time(self) -> None:
        deadline = self._session.deadline
        if deadline is not None and deadline <= self._now_s:
            self._session.pass_time(self._now_s)
            self._speak()

    def _speak(self) -> None:
        for line in self._session.take().splitlines():
            self._on_line(self.name, line)
        if (deadline := self._session.deadline) is not None:
            self._loop.call_at(int(deadline * 1e9) + 1, self._pass_time)

    @property
    def _now_s(self) -> float:
        return self._loop.now_ns() / 1e9


def nodes_of(strategy: str | StrategyMaker) -> Callable[[VirtualLoop, str, OnLine], SessionHost]:
    """What `VirtualRun` makes its nodes with."""

    def make(loop: VirtualLoop, name: str, on_line: OnLine) -> SessionHost:
        return SessionHost(loop, name, on_line, new_session(strategy, options=Options()))

    return make
