"""The scheduler: runs processes (`leaderless.core.process`) and collects the effects they ask for.

Laws: a call is answered once, by its answer or, after a time, by `Unknown()`, whichever comes first; what
comes later is dropped. `leaderless.core.timeouts` says how long a store call may take. An error of the
store that does not say what the register holds, whatever its code, resumes the call with `Unknown()` after
a pause that grows with each: so no process asks a store in trouble as fast as it answers. An `Unknown()` says
how much patience it has cost. Processes resume
in the order in which their answers arrive. An exception of a child ends its parent's wait with the same
exception, once.
"""

import heapq
from typing import Any, assert_never

from leaderless.core.coordination import failure_of
from leaderless.core.messages import (
    Cas,
    Effect,
    Get,
    Note,
    PeerAnswer,
    PeerCall,
    Put,
    Reply,
    Request,
    StoreAnswer,
    StoreCall,
    StoreOp,
    Tell,
    Unknown,
)
from leaderless.core.process import Ask, Gather, Notify, Process, Signal, Sleep, Spawn, Trap, Wait
from leaderless.core.timeouts import StoreTimeouts


class _Gathering:
    """Collects what the children of one `Gather` return, in their order."""

    __slots__ = ("missing", "parent", "results")

    def __init__(self, parent: "_Running", size: int) -> None:
        self.parent: _Running | None = parent  # None once it was resumed
        self.missing = size
        self.results: list[Any] = [None] * size

    def take_parent(self) -> "_Running":
        """The process to resume; it is resumed only once."""
        parent, self.parent = self.parent, None
        assert parent is not None
        return parent


CALLS_REMEMBERED = 256  # of the store, without an answer

# A trap is looked at for every message, and `isinstance` costs a third of a `match` of classes.
_EMITTED = (Reply, Tell, Note)
_STORE_OPS = (Cas, Get, Put)


# Plain tuples, for these are made for every message.
#
# A process, to whom its result or its exception goes, and at which place there. An exception in the process
# of a request answers the request; in a process without a parent it is a bug, and goes into the log.
_Running = tuple[Process[Any], _Gathering | Request | None, int]
# A process, the kind of event that may resume it (None: only time), and what it is resumed with when its
# time has come.
_Waiting = tuple[_Running, type | None, Any]


class Scheduler:
    """Runs processes; `take` hands over the effects they asked for.

    `timeouts`: how long a store call may take; `calls_from`: calls get the numbers above it,
    far from the numbers of any other start of this node, or an answer meant for a dead start would answer a
    call of this one.
    """

    def __init__(self, timeouts: StoreTimeouts, calls_from: int = 0) -> None:
        self._timeouts = timeouts
        self._silence = Unknown(timeouts.spent_by_silence)
        self._asked: dict[
            int, tuple[type[StoreOp], float]
        ] = {}  # calls of the store without an answer, and when: a late one still shows how long it took
        self.now = 0.0
        self._effects: list[Effect] = []
        self._waiting: dict[int, _Waiting] = {}
        self._ready: list[_Running] = []  # to be run when the current process waits
        self._alarms: list[
            tuple[float, int]
        ] = []  # a heap; alarms of answered calls are dropped late
        self._calls = calls_from

    def take(self) -> list[Effect]:
        """The effects since the last time; the list is the caller's."""
        effects, self._effects = self._effects, []
        return effects

    @property
    def deadline(self) -> float | None:
        """When `expire` is next needed, or None."""
        alarms, waiting = self._alarms, self._waiting
        while alarms and alarms[0][1] not in waiting:
            heapq.heappop(alarms)
        return alarms[0][0] if alarms else None

    def start(self, process: Process[Any], request: Request | None = None) -> None:
        """Run a new process until it waits; if it ever fails, that is the answer to `request`."""
        running = process, request, 0
        try:
            for trap in process:  # not `_run`: no result is needed, and its end costs no exception
                if not self._handle(running, trap):
                    break
        except Exception as error:
            self._failed(running, error)
        if self._ready:
            self._run_ready()

    def answer(self, answer: StoreAnswer | PeerAnswer) -> None:
        """Resume the process that waits for this answer. If there is none, the answer came too late."""
        call, value = answer
        if isinstance(answer, StoreAnswer) and call in self._asked and not self._heard(answer):
            return
        waiting = self._waiting.get(call)
        if waiting is not None and waiting[1] is type(answer):
            self._resume(call, value)

    def _heard(self, answer: StoreAnswer) -> bool:
        """Learn from an answer of the store; False if its call has to wait yet."""
        call, outcome = answer
        op, asked_at = self._asked.pop(call)
        if not isinstance(outcome, Unknown):
            self._timeouts.answered(op, self.now - asked_at)
            return True
        if call in self._waiting:
            pause_s = self._timeouts.pause_s(op)
            spent = max(outcome.spent, self._timeouts.spent_by_error(pause_s))
            running, kind, _ = self._waiting[call]
            self._waiting[call] = running, kind, Unknown(spent)
            heapq.heappush(self._alarms, (self.now + pause_s, call))
        return False

    def expire(self) -> None:
        """Resume every process whose time has come: sleepers, and callers left without an answer."""
        while (deadline := self.deadline) is not None and deadline <= self.now:
            call = heapq.heappop(self._alarms)[1]
            if call in self._asked:
                self._timeouts.timed_out(self._asked[call][1], self.now)
            self._resume(call, self._waiting[call][2])

    def _resume(self, call: int, value: Any) -> None:
        self._run(self._waiting.pop(call)[0], value)
        if self._ready:
            self._run_ready()

    def _run_ready(self) -> None:
        while self._ready:
            ready, self._ready = self._ready, []
            for running in ready:
                self._run(running, None)

    def _run(self, running: _Running, value: Any) -> None:
        """Resume with a value, or raise an exception in the process, until it waits or ends."""
        process = running[0]
        handle = self._handle
        try:
            trap = process.throw(value) if isinstance(value, Exception) else process.send(value)
            while handle(running, trap):
                trap = process.send(None)
        except StopIteration as stop:
            self._ended(running, stop.value)
        except Exception as error:
            self._failed(running, error)

    def _handle(self, running: _Running, trap: Trap) -> bool:
        """Do what a trap asks for; says whether its process goes on at once."""
        if isinstance(trap, _EMITTED):
            self._effects.append(trap)
            return True
        if isinstance(trap, _STORE_OPS):
            self._call(running, trap)
        elif isinstance(trap, Spawn):
            self._ready.append((trap[0], None, 0))
            return True
        elif isinstance(trap, Wait):
            signal = trap[0]
            if signal.fired:
                return True
            signal.waiting.append(running)
        elif isinstance(trap, Notify):
            self._fire(trap[0])
            return True
        elif isinstance(trap, Sleep):
            self._wait(running, trap[0])
        elif isinstance(trap, Ask):
            dest, question, patience_s = trap
            call = self._wait(running, self.now + patience_s, PeerAnswer)
            self._effects.append(PeerCall(call, dest, question))
        elif isinstance(trap, Gather):
            self._fork(running, list(trap[0]))
        else:
            assert_never(trap)
        return False

    def _call(self, running: _Running, op: StoreOp) -> None:
        until = self.now + self._timeouts.timeout_s
        call = self._wait(running, until, StoreAnswer, self._silence)
        asked = self._asked
        asked[call] = type(op), self.now
        if len(asked) > CALLS_REMEMBERED:
            del asked[next(iter(asked))]
        self._effects.append(StoreCall(call, op))

    def _fire(self, signal: Signal) -> None:
        signal.fired = True
        self._ready.extend(signal.waiting)
        signal.waiting.clear()

    def _wait(
        self, running: _Running, until: float, answer: type | None = None, late: Any = None
    ) -> int:
        """Park a process until its answer comes; at `until` it is resumed with `late`."""
        self._calls += 1
        self._waiting[self._calls] = running, answer, late
        heapq.heappush(self._alarms, (until, self._calls))
        return self._calls

    def _fork(self, parent: _Running, children: list[Process[Any]]) -> None:
        gathering = _Gathering(parent, len(children))
        for place, child in enumerate(children):
            self._run((child, gathering, place), None)
        if not children:
            self._run(parent, [])

    def _ended(self, running: _Running, result: Any) -> None:
        _, gathering, place = running
        if isinstance(gathering, _Gathering) and gathering.parent is not None:
            gathering.results[place] = result
            gathering.missing -= 1
            if not gathering.missing:
                self._run(gathering.take_parent(), gathering.results)

    def _failed(self, running: _Running, error: Exception) -> None:
        match running[1]:
            case Request() as request:
                self._effects.append(Reply(request, failure_of(error)))
            case _Gathering() as gathering:
                if gathering.parent is not None:
                    self._run(gathering.take_parent(), error)
            case None:
                self._effects.append(Note(_told(error), broken=True))


def _told(error: Exception) -> str:
    """A failure for the node's log; a broken invariant has its name first."""
    from traceback import format_exception  # seldom needed, and slow to import

    named = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
    return f"{named} (in a process that nobody waits for)\n{''.join(format_exception(error))}"
