"""Runs the core on a store, without a network and without Maelstrom: effects become store calls of this loop.

The core is the same as in a node (`leaderless.core`). A host is a cluster of one node to it: every process
commits for itself, and the store's compare-and-set decides between processes.

Cancelling a caller of `ask` takes nothing back: the machine goes on with the request, and only the answer is
dropped.
"""

import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from math import inf
from typing import Any, Protocol, TypeVar, cast

import anyio
import anyio.abc

from leaderless.core.messages import (
    Answer,
    Effect,
    Event,
    Note,
    Reply,
    Request,
    RequestEvent,
    StoreAnswer,
    StoreCall,
    TimePassed,
)
from leaderless.core.pace import Pace
from leaderless.core.process import Process
from leaderless.core.scheduler import Scheduler
from leaderless.core.strategy import Clock
from leaderless.core.timeouts import StoreTimeouts
from leaderless.errors import Broken, Closed, Indefinite, LogError
from leaderless.store.registers import Registers

log = logging.getLogger("leaderless")

T = TypeVar("T")
MakeEvent = Callable[[Request], RequestEvent]


class Engine(Protocol):
    """What a host runs: `leaderless.core.machine.Machine`, or `Processes`."""

    @property
    def deadline(self) -> float | None: ...

    def step(self, event: Event, now: float, *, more: bool = False) -> list[Effect]: ...


class Processes:
    """An engine that runs protocol processes alone, such as a lease; `clock` is the one that they read."""

    def __init__(self, pace: Pace) -> None:
        self.clock = Clock()
        self._scheduler = Scheduler(StoreTimeouts(pace))

    @property
    def deadline(self) -> float | None:
        """When `TimePassed` is next needed."""
        return self._scheduler.deadline

    def step(self, event: Event, now: float, *, more: bool = False) -> list[Effect]:  # noqa: ARG002
        """Take the answer of the store, or that time passed."""
        self._set(now)
        if isinstance(event, StoreAnswer):
            self._scheduler.answer(event)
        else:
            self._scheduler.expire()
        return self._scheduler.take()

    def start(self, process: Process[None], now: float) -> list[Effect]:
        """Run a process until it waits."""
        self._set(now)
        self._scheduler.start(process)
        return self._scheduler.take()

    def _set(self, now: float) -> None:
        self.clock.now = self._scheduler.now = now


class Host:
    """Runs `engine` on `registers`, while its `run` does.

    `patience_s`: how long a request may wait, in seconds. The engine answers a little before, or never: to it
    a client is gone then. So the host itself answers what is left.
    """

    def __init__(self, engine: Engine, registers: Registers, patience_s: float = inf) -> None:
        self._engine = engine
        self._registers = registers
        self._patience_s = patience_s
        self._waiting: dict[Request, _Waiter] = {}  # the oldest first
        self._asked = 0
        self._woken = anyio.Event()
        self._wakes_at = -inf  # not running yet
        self._tasks: anyio.abc.TaskGroup | None = None
        self._early: list[StoreCall] = []  # before `run`
        self._over: LogError | None = None

    async def run(self) -> None:
        """Run until it is cancelled; store calls that were asked for before are made first."""
        async with anyio.create_task_group() as self._tasks:
            for call in self._early:
                self._tasks.start_soon(self._call_store, call)
            try:
                await self._loop()
            finally:
                if not self._over:
                    self.close()  # no store call can be made any more

    async def _loop(self) -> None:
        while True:
            self._woken, self._wakes_at = anyio.Event(), self._deadline
            with anyio.CancelScope(deadline=self._wakes_at):
                await self._woken.wait()
            if self._deadline <= anyio.current_time():
                self._step(TimePassed())

    def close(self) -> None:
        """Answer all that wait: nothing more will happen here."""
        self._end(Closed("the log was closed before the answer came; it may have happened"))

    async def ask(self, make: MakeEvent) -> Answer:
        """Put a request to the machine, and wait for the answer. Raises `Closed` and `Broken`."""
        waiter = _Waiter()
        self._step(make(self._register(waiter)))
        return await waiter.answer()

    async def call(self, process: Process[T]) -> T:
        """Run a process of the core, where the engine is a `Processes`; returns or raises as it does."""
        waiter: _Waiter = _Waiter()
        request = self._register(waiter)
        engine = cast(Processes, self._engine)
        self._carry_out(engine.start(_watched(process, waiter), anyio.current_time()))
        await waiter.done.wait()
        self._waiting.pop(request, None)
        if waiter.error:
            raise waiter.error
        return cast(T, waiter.result)

    def _step(self, event: Event) -> None:
        now = anyio.current_time()
        self._carry_out(self._engine.step(event, now, more=True))  # of all tasks that are ready
        # The sum of `_deadline`: another one, rounded, may say that its time has not come.
        while (oldest := self._oldest) and oldest.since + self._patience_s <= now:
            del self._waiting[next(iter(self._waiting))]
            oldest.fail(self._no_outcome())

    def _no_outcome(self) -> Indefinite:
        text = f"no outcome within {self._patience_s:g} s; it may have happened"
        trouble = self._registers.trouble
        return Indefinite(f"{text} ({trouble})" if trouble else text)

    @property
    def _oldest(self) -> "_Waiter | None":
        return next(iter(self._waiting.values()), None)

    @property
    def _deadline(self) -> float:
        """When `run` has to do something next."""
        deadline = self._engine.deadline
        oldest = self._oldest
        patience = oldest.since + self._patience_s if oldest else inf
        return patience if deadline is None else min(deadline, patience)

    def _register(self, waiter: "_Waiter") -> Request:
        if self._over:
            raise type(self._over)(*self._over.args)
        self._asked += 1
        request = Request("c", self._asked)
        self._waiting[request] = waiter
        return request

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply(request, answer):
                    if waiter := self._waiting.pop(request, None):
                        waiter.set(answer)
                case StoreCall():
                    if self._over:
                        continue
                    if self._tasks is None:
                        self._early.append(effect)
                    else:
                        self._tasks.start_soon(self._call_store, effect)
                case Note(text, broken):
                    log.log(logging.ERROR if broken else logging.WARNING, "%s", text)
                case _:
                    pass  # steps for a trace; there are no peers
        self._wake()

    def _wake(self) -> None:
        if (deadline := self._deadline) < self._wakes_at:
            self._wakes_at = deadline
            self._woken.set()

    async def _call_store(self, call: StoreCall) -> None:
        try:
            outcome = await self._registers.carry_out(call.op)
        except Exception as broken:  # an invariant, or a bug: nothing may go on from here
            log.exception("store call failed")
            self._end(Broken(f"{type(broken).__name__}: {broken}"))
        else:
            self._step(StoreAnswer(call.call, outcome))

    def _end(self, error: LogError) -> None:
        self._over = error
        waiting, self._waiting = self._waiting, {}
        for waiter in waiting.values():
            waiter.fail(error)


class _Waiter:
    """One caller, and what came for it."""

    __slots__ = ("done", "error", "result", "since")

    def __init__(self) -> None:
        self.since = anyio.current_time()
        self.done = anyio.Event()
        self.result: object = None
        self.error: Exception | None = None

    def set(self, result: object) -> None:
        self.result = result
        self.done.set()

    def fail(self, error: Exception) -> None:
        self.error = error
        self.done.set()

    async def answer(self) -> Answer:
        await self.done.wait()
        if self.error:
            raise self.error
        return cast(Answer, self.result)


def _watched(process: Process[T], waiter: _Waiter) -> Process[None]:
    try:
        waiter.set((yield from process))
    except Exception as error:
        waiter.fail(error)


@asynccontextmanager
async def running(*hosts: Host) -> AsyncIterator[None]:
    """Run hosts beside a block, and close them at its end."""
    async with beside(*(host.run for host in hosts)):
        try:
            yield
        finally:
            for host in hosts:
                host.close()


@asynccontextmanager
async def beside(*tasks: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
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
