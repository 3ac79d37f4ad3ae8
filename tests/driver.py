"""Runs processes of the core against a store in the test's hand, one store call at a time.

Each call is carried out, or loses its answer, or is lost itself, or arrives only later (see `Fate`): whatever
a network may do to it. Time stands still until a test lets it pass.
"""

from collections.abc import Callable
from typing import Any, Literal

from leaderless.core.messages import Outcome, StoreAnswer, StoreCall, StoreOp, Unknown
from leaderless.core.process import Process
from leaderless.core.scheduler import Scheduler
from leaderless.core.strategy import Clock

Apply = Callable[[StoreOp], Outcome]
Fate = Literal["ok", "answer lost", "call lost", "late"]
FATES: tuple[Fate, ...] = ("ok", "answer lost", "call lost", "late")


class Driver:
    """One worker. `results` are what its processes returned, or the exceptions that ended them."""

    def __init__(self, apply: Apply) -> None:
        self.clock = Clock()
        self.results: list[Any] = []
        self.calls: list[StoreCall] = []  # under way, oldest first
        self.late: list[StoreOp] = []  # whose callers gave up, and which may arrive yet
        self._apply = apply
        self._processes = Scheduler(timeout_s=1.0)

    @property
    def running(self) -> bool:
        """Whether a process waits for something that can come: an answer or a time."""
        return self._processes.deadline is not None

    def start(self, process: Process) -> None:
        """Run a process until it waits."""
        self._processes.start(self._watched(process))
        self._collect()

    def call(self, process: Process) -> Any:
        """Run a process to its end undisturbed; returns or raises as it does."""
        self.start(process)
        self.finish()
        result = self.results.pop()
        if isinstance(result, Exception):
            raise result
        return result

    def carry_out(self, fate: Fate = "ok", which: int = 0) -> None:
        """Let something become of a call under way."""
        number, op = self.calls.pop(which % len(self.calls))
        outcome = self._apply(op) if fate in ("ok", "answer lost") else None
        if fate == "late":
            self.late.append(op)
        answer = outcome if outcome is not None and fate == "ok" else Unknown()
        self._processes.answer(StoreAnswer(number, answer))
        self._collect()

    def arrive(self) -> None:
        """Let the oldest call arrive that is late; nobody waits for its answer."""
        self._apply(self.late.pop(0))

    def pass_time(self) -> None:
        """Let time pass until something is due."""
        assert self._processes.deadline is not None, "nothing is ever due"
        self.clock.now = self._processes.now = self._processes.deadline
        self._processes.expire()
        self._collect()

    def step(self) -> None:
        """The next thing that happens when nothing goes wrong."""
        if self.calls:
            self.carry_out()
        else:
            self.pass_time()

    def finish(self) -> None:
        """Run all processes to their ends."""
        while self.running:
            self.step()

    def _watched(self, process: Process) -> Process:
        try:
            self.results.append((yield from process))
        except Exception as error:
            self.results.append(error)

    def _collect(self) -> None:
        self.calls += [call for call in self._processes.take() if isinstance(call, StoreCall)]
