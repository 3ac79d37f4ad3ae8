"""Runs processes of the core without a node around them, one store call at a time.

A recipe, a read of the log or a compaction needs no messages, only a store. A test decides what becomes of
each call: it is carried out, or its answer is lost, or the call itself is lost, or it arrives only later (see
`Fate`). That is whatever a network may do to it. Time stands still until a test lets it pass.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from leaderless.core.messages import Note, Outcome, StoreAnswer, StoreCall, StoreOp, Unknown
from leaderless.core.pace import Pace
from leaderless.core.process import Process
from leaderless.core.scheduler import Scheduler
from leaderless.core.strategy import Clock
from leaderless.core.timeouts import StoreTimeouts

T = TypeVar("T")
Apply = Callable[[StoreOp], Outcome]
Fate = Literal["ok", "answer lost", "call lost", "late"]
LOST = Unknown(1 / Pace().store_attempts)  # costs as much patience as silence
FATES: tuple[Fate, ...] = ("ok", "answer lost", "call lost", "late")


class Driver:
    """The processes of one worker, on a clock of their own.

    `apply` carries out a store call. `results` are what the processes returned, or the exceptions that
    ended them; `broken`: the notes of broken invariants.
    """

    def __init__(self, apply: Apply) -> None:
        self.clock = Clock()
        self.results: list[Any] = []
        self.broken: list[str] = []
        self.calls: list[StoreCall] = []  # under way, oldest first
        self.late: list[StoreOp] = []  # calls that were given up, and may still arrive
        self._apply = apply
        self._processes = Scheduler(StoreTimeouts(Pace()))

    @property
    def running(self) -> bool:
        """Whether a process waits for something that can come: an answer or a time."""
        return self._processes.deadline is not None

    def start(self, process: Process[Any]) -> None:
        """Run a process until it waits."""
        self._processes.start(self._watched(process))
        self._collect()

    def call(self, process: Process[T]) -> T:
        """Run a process to its end undisturbed; returns or raises as it does."""
        self.start(process)
        self.finish()
        result: Any = self.results.pop()
        if isinstance(result, Exception):
            raise result
        returned: T = result
        return returned

    def carry_out(self, fate: Fate = "ok", which: int = 0) -> None:
        """Let one of the calls under way, counted from the oldest, meet its fate."""
        call = self.calls.pop(which % len(self.calls))
        outcome = self._apply(call.op) if fate in ("ok", "answer lost") else None
        if fate == "late":
            self.late.append(call.op)
        answer = outcome if outcome is not None and fate == "ok" else LOST
        self._processes.answer(StoreAnswer(call.call, answer))
        self._collect()
        if isinstance(answer, Unknown) and self.running:
            self.pass_time()  # to the end of the pause after an error

    def arrive(self) -> None:
        """Let the oldest late call arrive; nothing waits for its answer."""
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
        while self.running:
            self.step()

    def _watched(self, process: Process[Any]) -> Process[None]:
        try:
            self.results.append((yield from process))
        except Exception as error:
            self.results.append(error)

    def _collect(self) -> None:
        effects = self._processes.take()
        self.calls += [call for call in effects if isinstance(call, StoreCall)]
        self.broken += [note.text for note in effects if isinstance(note, Note) and note.broken]
