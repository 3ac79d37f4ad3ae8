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
from collections.abc import Callable
from typing import Any

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
from leaderless.core.process import Ask, Gather, Notify, Process, Sleep, Spawn, Trap, Wait
from leaderless.core.timeouts import StoreTimeouts


class _Gathering:
    """Collects what the children of one `Gather` return, in their order."""

    __slots__ = ("missing", "parent", "results")

    def __init__(self, parent: "_Running", size: int) -> None:
        self.parent: _Running | None = parent  # None once a child has failed
        self.missing = size
        self.results: list[Any] = [None] * size


LATE_CALLS_REMEMBERED = 256  # of the store

# Plain tuples, for these are made for every message.
#
# A process, to whom its result or its exception goes, and at which place there. An exception in the process
# of a request answers the request; in a process without a parent it is a bug, and goes into the log.
_Running = tuple[Process[Any], _Gathering | Request | None, int]
# A call of the store: its operation, and when it was made.
_Asked = tuple[type[StoreOp], float]
# A process, the kind of event that may resume it (None: only time), what it is resumed with when its time
# has come, and the call of the store that it waits for (None: it waits for something else, or in the pause
# after an error).
_Waiting = tuple[_Running, type | None, Any, _Asked | None]


class Scheduler:
    """Runs processes; `take` hands over the effects they asked for.

    `timeouts`: how long a store call may take; `calls_from`: calls get the numbers above it,
    far from the numbers of any other start of this node, or an answer meant for a dead start would answer a
    call of this one.
    """

    def __init__(self, timeouts: StoreTimeouts, calls_from: int = 0) -> None:
        self._timeouts = timeouts
        self._silence = Unknown(timeouts.spent_by_silence)
        self._late: dict[int, _Asked] = {}  # calls that timed out: a late answer still teaches
        self.now: float = 0.0
        self._effects: list[Effect] = []
        self._waiting: dict[int, _Waiting] = {}
        # To be run when the current process waits, each with its result. Not run from inside another one: a
        # process that goes on without ever waiting would be as deep in the stack as it is long.
        self._ready: list[tuple[_Running, Any]] = []
        self._last: list[_Running] = []  # to be run at the end of the turn
        self._alarms: list[
            tuple[float, int]
        ] = []  # a heap; alarms of answered calls are dropped late
        self._calls = calls_from
        # What each trap asks for is done by one of these; it says whether the process goes on at once. A table,
        # because a trap is looked at for every message, and a row of `isinstance` costs more than the rest.
        self._handlers: dict[type[Trap], Callable[[_Running, Any], bool]] = {
            Reply: self._emit,
            Tell: self._emit,
            Note: self._emit,
            Cas: self._call,
            Get: self._call,
            Put: self._call,
            Ask: self._ask,
            Spawn: self._spawn,
            Sleep: self._sleep,
            Wait: self._await,
            Notify: self._notify,
            Gather: self._fork,
        }

    def take(self) -> list[Effect]:
        """The effects since the last time; the list is the caller's."""
        effects, self._effects = self._effects, []
        return effects

    @property
    def deadline(self) -> float | None:
        """When `expire` is next needed, or None."""
        if self._last:
            return self.now
        alarms, waiting = self._alarms, self._waiting
        while alarms and alarms[0][1] not in waiting:
            heapq.heappop(alarms)
        return alarms[0][0] if alarms else None

    def start(self, process: Process[Any], request: Request | None = None) -> None:
        """Run a new process until it waits; if it ever fails, that is the answer to `request`."""
        running, handlers = (process, request, 0), self._handlers
        try:
            for trap in process:  # not `_run`: no result is needed, and its end costs no exception
                if not handlers[type(trap)](running, trap):
                    break
        except Exception as error:
            self._failed(running, error)
        if self._ready:
            self._run_ready()

    def answer(self, answer: StoreAnswer | PeerAnswer) -> None:
        """Resume the process that waits for this answer. If there is none, the answer came too late."""
        call = answer.call
        waiting = self._waiting.get(call)
        if waiting is None:
            if isinstance(answer, StoreAnswer):
                self._came_late(answer)
            return
        running, kind, _, asked = waiting
        if kind is not type(answer):
            return
        value = answer.outcome if isinstance(answer, StoreAnswer) else answer.answer
        if asked:
            if isinstance(value, Unknown):
                self._pause(call, asked[0], value)
                return
            self._timeouts.answered(asked[0], self.now - asked[1])
        del self._waiting[call]
        self._resume(running, value)

    def _came_late(self, answer: StoreAnswer) -> None:
        """Learn from an answer for which nobody waits any more how long it took."""
        asked = self._late.pop(answer.call, None)
        if asked and not isinstance(answer.outcome, Unknown):
            self._timeouts.answered(asked[0], self.now - asked[1])

    def _pause(self, call: int, op: type[StoreOp], outcome: Unknown) -> None:
        """After an error of the store its call has to wait yet."""
        pause_s = self._timeouts.pause_s(op)
        spent = max(outcome.spent, self._timeouts.spent_by_error(pause_s))
        running, kind, _, _ = self._waiting[call]
        self._waiting[call] = running, kind, outcome._replace(spent=spent), None
        heapq.heappush(self._alarms, (self.now + pause_s, call))

    def end_turn(self) -> None:
        """Resume every sleeper whose time had come when it went to sleep."""
        while self._last:
            last, self._last = self._last, []
            for running in last:
                self._resume(running, None)

    def expire(self) -> None:
        """End the turn, and resume every process whose time has come: sleepers, and callers left without an
        answer."""
        while (deadline := self.deadline) is not None and deadline <= self.now:
            if self._last:
                self.end_turn()
                continue
            call = heapq.heappop(self._alarms)[1]
            running, _, late, asked = self._waiting.pop(call)
            if asked:
                self._timed_out(call, asked)
            self._resume(running, late)

    def _timed_out(self, call: int, asked: _Asked) -> None:
        self._timeouts.timed_out(asked[1], self.now)
        self._late[call] = asked
        if len(self._late) > LATE_CALLS_REMEMBERED:
            del self._late[next(iter(self._late))]

    def _resume(self, running: _Running, value: Any) -> None:
        self._run(running, value)
        if self._ready:
            self._run_ready()

    def _run_ready(self) -> None:
        while self._ready:
            ready, self._ready = self._ready, []
            for running, value in ready:
                self._run(running, value)

    def _run(self, running: _Running, value: Any) -> None:
        """Resume with a value, or raise an exception in the process, until it waits or ends."""
        process, gathering, place = running
        handlers = self._handlers
        try:
            trap = process.throw(value) if isinstance(value, Exception) else process.send(value)
            while handlers[type(trap)](running, trap):
                trap = process.send(None)
        except StopIteration as stop:
            if isinstance(gathering, _Gathering):
                self._ended(gathering, place, stop.value)
        except Exception as error:
            self._failed(running, error)

    def _emit(self, _: _Running, effect: Reply | Tell | Note) -> bool:
        self._effects.append(effect)
        return True

    def _call(self, running: _Running, op: StoreOp) -> bool:
        asked = type(op), self.now
        until = self.now + self._timeouts.timeout_s
        call = self._wait(until, (running, StoreAnswer, self._silence, asked))
        self._effects.append(StoreCall(call, op))
        return False

    def _ask(self, running: _Running, trap: Ask) -> bool:
        dest, question, patience_s = trap
        call = self._wait(self.now + patience_s, (running, PeerAnswer, None, None))
        self._effects.append(PeerCall(call, dest, question))
        return False

    def _spawn(self, _: _Running, trap: Spawn) -> bool:
        self._ready.append(((trap.process, None, 0), None))
        return True

    def _sleep(self, running: _Running, trap: Sleep) -> bool:
        if trap.until <= self.now:
            self._last.append(running)
        else:
            self._wait(trap.until, (running, None, None, None))
        return False

    def _await(self, running: _Running, trap: Wait) -> bool:
        signal, until = trap
        if signal.fired:
            return True
        if until is None:
            signal.waiting.append(running)
        else:
            signal.waiting.append(self._wait(until, (running, None, None, None)))
        return False

    def _notify(self, _: _Running, trap: Notify) -> bool:
        signal = trap.signal
        signal.fired = True
        for waiting in signal.waiting:
            if type(waiting) is not int:
                self._ready.append((waiting, None))
            elif timed := self._waiting.pop(waiting, None):  # or its time has come already
                self._ready.append((timed[0], None))
        signal.waiting.clear()
        return True

    def _wait(self, until: float, waiting: _Waiting) -> int:
        """Park a process until its answer comes, or at the latest `until`; returns the number of its call."""
        self._calls += 1
        self._waiting[self._calls] = waiting
        heapq.heappush(self._alarms, (until, self._calls))
        return self._calls

    def _fork(self, parent: _Running, trap: Gather) -> bool:
        children = list(trap.children)
        gathering = _Gathering(parent, len(children))
        for place, child in enumerate(children):
            self._run((child, gathering, place), None)
        if not children:
            self._ready.append((parent, []))
        return False

    def _ended(self, gathering: _Gathering, place: int, result: Any) -> None:
        gathering.results[place] = result
        gathering.missing -= 1
        if gathering.parent and not gathering.missing:
            self._ready.append((gathering.parent, gathering.results))

    def _failed(self, running: _Running, error: Exception) -> None:
        match running[1]:
            case Request() as request:
                self._effects.append(Reply(request, failure_of(error)))
            case _Gathering() as gathering:
                parent, gathering.parent = gathering.parent, None
                if parent:  # it is resumed only once
                    self._ready.append((parent, error))
            case None:
                self._effects.append(Note(_told(error), broken=True))


def _told(error: Exception) -> str:
    """A failure for the node's log; a broken invariant has its name first."""
    from traceback import format_exception  # seldom needed, and slow to import

    named = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
    return f"{named} (in a process that nobody waits for)\n{''.join(format_exception(error))}"
