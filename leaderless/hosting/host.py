"""Drives a machine on a store: store calls become tasks of this loop, and deadlines a timer.

The machine (`leaderless.core.machine`) knows what waits, and until when; it has no I/O. A program has one
machine and one host: `ask` puts requests to it, and `call` runs another process there, such as a lease or a
step of upkeep. A node on a store has one, too: its session steps it (`leaderless.runtime.on_store`). To the
core a program is a cluster of one node: every process commits for itself, and the store's compare-and-set
decides between processes.

Cancelling a caller takes nothing back: the machine goes on, and only the result is dropped.
"""

import logging
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from math import inf
from typing import Any, TypeVar

import anyio
import anyio.abc

from leaderless.core.coordination import InvariantBroken, StoreSilent
from leaderless.core.machine import Machine
from leaderless.core.messages import (
    Answer,
    Effect,
    Event,
    Failure,
    Note,
    Reason,
    Reply,
    Request,
    RequestEvent,
    StoreAnswer,
    StoreCall,
    TimePassed,
    Unknown,
)
from leaderless.core.process import Process
from leaderless.core.strategy import Clock
from leaderless.errors import (
    Broken,
    Closed,
    Definite,
    Fenced,
    Indefinite,
    KeyClosed,
    LogError,
    OffsetConflict,
    OtherFormat,
    StaleToken,
    Unfit,
    Unreachable,
)
from leaderless.store.calls import broken_by, reached
from leaderless.store.registers import Registers

log: logging.Logger = logging.getLogger("leaderless")

T = TypeVar("T")
MakeEvent = Callable[[Request], RequestEvent]
Task = Callable[[], Coroutine[Any, Any, None]]


# What the condition of an append met.
_MET = {
    Reason.CONFLICT: OffsetConflict,
    Reason.STALE_TOKEN: StaleToken,
    Reason.CLOSED: KeyClosed,
}


def log_notes(effects: list[Effect]) -> None:
    """What a program does with effects that are for nobody in it: notes go into its log."""
    for effect in effects:
        if isinstance(effect, Note):
            log.log(logging.ERROR if effect.broken else logging.WARNING, "%s", effect.text)


def error_of(answer: Answer, registers: Registers) -> LogError:
    """What a failure means: only a definite one says that nothing happened."""
    if not isinstance(answer, Failure):
        return Broken(f"an answer of another kind: {answer}")
    text = f"{answer.text} ({registers.trouble})" if registers.trouble else answer.text
    if answer.reason is Reason.BROKEN:
        return broken_by(text)
    if not answer.reason.definite:
        return Indefinite(text)
    if registers.other_format:
        return OtherFormat(registers.trouble)
    if met := _MET.get(answer.reason):
        return met(f"{answer.text}; nothing was appended", answer.found)
    if answer.reason is Reason.FENCED:
        return Fenced(f"{text}; nothing was appended")
    return Unfit(text) if answer.reason is Reason.UNFIT else Definite(text)


class Room:
    """Bytes of appends under way, `total` at most: further ones wait here, not in the core."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._used = 0
        self._freed: anyio.Event | None = None  # while somebody waits

    @asynccontextmanager
    async def of(self, size: int) -> AsyncIterator[None]:
        """Room for `size` bytes while a block runs; one that is larger than all room gets it alone."""
        while self._used and self._used + size > self._total:
            self._freed = self._freed or anyio.Event()
            await self._freed.wait()
        self._used += size
        try:
            yield
        finally:
            self._used -= size
            if self._freed:
                self._freed.set()
                self._freed = None


class Host:
    """Drives `machine` on `registers`, while `run` does.

    `others`: takes the effects that are neither store calls nor answers to callers, such as questions to peers.
    `goes_on`: whether a store call that breaks an invariant is `Unknown`. If not, all callers get `Broken` from
    then on.
    """

    def __init__(
        self,
        machine: Machine,
        registers: Registers,
        others: Callable[[list[Effect]], object] = log_notes,
        *,
        goes_on: bool = False,
    ) -> None:
        self.registers = registers
        self._machine = machine
        self.others: Callable[[list[Effect]], object] = others
        self._goes_on = goes_on
        self._callers: dict[Request, _Caller] = {}
        self._asked = 0
        self._woken = anyio.Event()
        self._due = inf  # the deadline of the machine, which only a step changes
        self._wakes_at = -inf  # not running yet
        self._tasks: anyio.abc.TaskGroup | None = None
        self._early: list[StoreCall] = []  # before `run`
        self._over: LogError | None = None
        self._process = os.getpid()

    @property
    def clock(self) -> Clock:
        """The clock that processes read."""
        return self._machine.clock

    @property
    def deadline(self) -> float | None:
        """When the machine next needs `TimePassed`, in seconds, or None; `run` sees to it."""
        return self._machine.deadline

    async def run(self) -> None:
        """Run until it is cancelled; store calls that were asked for before are made first."""
        async with anyio.create_task_group() as self._tasks:
            for call in self._early:
                self._tasks.start_soon(self._call_store, call)
            try:
                await self._keep_time()
            finally:
                self.close()  # no store call can be made any more

    def require_open(self) -> None:
        """Raise `Definite` when the log is closed, so that nothing happens here any more.

        So it is in a process that was forked: threads and tasks of the log are in its parent.
        """
        if isinstance(self._over, Closed):
            raise Definite("the log is closed, and this call did nothing: open it again")
        if os.getpid() != self._process:
            raise Definite(
                f"process {self._process} opened this log, and this process was forked from it later: open the "
                "log in this process, and start processes by `spawn` or before the log is opened"
            )

    def close(self) -> None:
        """Answer all that wait: nothing more will happen here."""
        self._end(Closed("the log was closed before the answer came; it may have happened"))

    async def ask(self, make: MakeEvent) -> Answer:
        """Put a request to the machine, and wait for the answer. Raises `Definite`, `Closed` and `Broken`."""
        request, caller = self._new_caller()
        self.take(make(request))
        answer: Answer = await caller.result()
        return answer

    async def ask_again(self, make: MakeEvent, patience_s: float) -> Answer:
        """The same for a request that changes nothing: without a clear answer it is put again.

        Raises `Broken`, `Definite`, and of these `Unreachable` after `patience_s` seconds.
        """

        async def once() -> Answer:
            answer = await self.ask(make)
            if not isinstance(answer, Failure):
                return answer
            if self.registers.other_format:
                raise OtherFormat(self.registers.trouble)
            if answer.reason is Reason.TIMEOUT:
                raise Unreachable(self.registers.trouble or "no answer")
            error = error_of(answer, self.registers)
            raise error if isinstance(error, Definite | Broken) else Broken(str(error))

        return await reached(once, patience_s, reads=True)

    async def call(self, process: Process[T]) -> T:
        """Run a process of the core; returns or raises as it does. Raises as `ask`, too."""
        request, caller = self._new_caller()
        told = self._told(process, request)
        self.others(self._carry_out(self._machine.run(told, anyio.current_time())))
        result: T = await caller.result()
        return result

    def take(self, event: Event) -> None:
        """Take an event; what it leaves goes to `others`. The turn ends when all ready tasks have run."""
        self.others(self.step(event, anyio.current_time(), more=True))

    def step(
        self, event: Event, now: float, arrived_at: float | None = None, *, more: bool = False
    ) -> list[Effect]:
        """As of the machine. It returns what it leaves: neither store calls nor answers to callers."""
        return self._carry_out(self._machine.step(event, now, arrived_at, more=more))

    def _carry_out(self, effects: list[Effect]) -> list[Effect]:
        left: list[Effect] = []
        for effect in effects:
            if isinstance(effect, StoreCall):
                if self._tasks is None:
                    self._early.append(effect)
                elif self._over is None:
                    self._tasks.start_soon(self._call_store, effect)
            elif isinstance(effect, Reply) and effect.request in self._callers:
                self._callers.pop(effect.request).set(effect.answer)
            else:
                left.append(effect)
        deadline = self._machine.deadline
        self._due = inf if deadline is None else deadline
        if self._due < self._wakes_at:
            self._wakes_at = self._due
            self._woken.set()
        return left

    async def _keep_time(self) -> None:
        while True:
            self._woken, self._wakes_at = anyio.Event(), self._due
            with anyio.CancelScope(deadline=self._due):
                await self._woken.wait()
            if self._due <= anyio.current_time():
                self.take(TimePassed())

    async def _call_store(self, call: StoreCall) -> None:
        try:
            outcome = await self.registers.carry_out(call.op)
        except Exception as broken:  # an invariant, or a bug
            log.exception("store call of %s failed", call.op.key)
            if not self._goes_on:
                self._end(Broken(f"{type(broken).__name__}: {broken}"))
                return
            outcome = Unknown(spent=1.0)
        self.take(StoreAnswer(call.call, outcome))

    def _new_caller(self) -> tuple[Request, "_Caller"]:
        self.require_open()
        if self._over:
            raise type(self._over)(*self._over.args)
        self._asked += 1
        request = Request("c", self._asked)
        caller = self._callers[request] = _Caller()
        return request, caller

    def _told(self, process: Process[object], request: Request) -> Process[None]:
        """A process that tells its caller what `process` returns or raises."""
        caller = self._callers[request]
        try:
            caller.set((yield from process))
        except (InvariantBroken, StoreSilent) as error:
            caller.fail(broken_by(error) if error.reason is Reason.BROKEN else error)
        except Exception as error:
            caller.fail(error)
        finally:
            self._callers.pop(request, None)

    def _end(self, error: LogError) -> None:
        self._over = self._over or error
        callers, self._callers = self._callers, {}
        for caller in callers.values():
            caller.fail(error)


class _Caller:
    """One who waits, and what came for it."""

    __slots__ = ("_done", "_error", "_result")

    def __init__(self) -> None:
        self._done = anyio.Event()
        self._result: Any = None
        self._error: Exception | None = None

    def set(self, result: object) -> None:
        self._result = result
        self._done.set()

    def fail(self, error: Exception) -> None:
        self._error = error
        self._done.set()

    async def result(self) -> Any:
        await self._done.wait()
        if self._error:
            raise self._error
        return self._result


@asynccontextmanager
async def running(host: Host) -> AsyncIterator[None]:
    """Run a host beside a block, and close it at its end."""
    async with beside(host.run):
        try:
            yield
        finally:
            host.close()


@asynccontextmanager
async def beside(*tasks: Task) -> AsyncIterator[None]:
    """Run tasks beside a block, until it ends; an exception of the block leaves as it is, in no group."""
    raised: Exception | None = None
    async with anyio.create_task_group() as group:
        for task in tasks:
            group.start_soon(task)
        try:
            yield
        except Exception as error:
            raised = error
        finally:
            group.cancel_scope.cancel()
    if raised is not None:
        raise raised
