"""asyncio on a virtual clock: nothing sleeps, and the same calls come in the same order.

The clock stands still while callbacks run, and jumps to the next timer when none is left. For who chooses what
comes next, it jumps when it is told to (`settle`, `advance`). There are no files, sockets, threads or signals.

Each callback belongs to the *process* whose code scheduled it (a context variable). A process can be stopped,
as by SIGSTOP. Then its callbacks wait; its timers become due and wait, too. When it goes on, they run in the
order in which they became ready.
"""

import asyncio
import sys
from asyncio import base_events, events
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar, TypeVarTuple, Unpack

from bench.loop import Deadlock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
TURNS_MAX = 1000  # while the clock stands still: whoever waits in a loop would wait for ever
SIMULATOR = ""  # the process of everything that is not of a process

PROCESS: ContextVar[str] = ContextVar("PROCESS", default=SIMULATOR)


# A callback that is ready, or waits for its time: what cancels it, its context, itself, its arguments.
Due = tuple[events.Handle, Context, Callable[..., object], tuple[Any, ...]]


class VirtualEventLoop(base_events.BaseEventLoop):
    """See the module. `now_s`: the virtual time in seconds."""

    def __init__(self) -> None:
        self._running = self._ending = False
        super().__init__()
        self.now_s = 0.0
        self._timers: list[_Timer] = []
        self._ready_now = deque[Due]()
        self._turns = 0  # since the clock moved
        self._stopped: dict[str, deque[Due]] = {}
        numbers = count()
        self.set_task_factory(lambda loop, coro, **named: _Task(numbers, coro, loop=loop, **named))

    def time(self) -> float:
        """See `asyncio.AbstractEventLoop`."""
        return self.now_s

    def stop_process(self, process: str) -> None:
        """Run no callback of a process any more, until `resume_process`."""
        self._stopped.setdefault(process, deque())

    def resume_process(self, process: str) -> None:
        """Let a process go on."""
        self._ready_now.extend(self._stopped.pop(process, ()))

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> events.Handle:
        """See `asyncio.AbstractEventLoop`."""
        context = copy_context() if context is None else context
        handle = events.Handle(callback, args, self, context)
        self._ready_now.append((handle, context, callback, args))
        return handle

    call_soon_threadsafe = call_soon  # there is no other thread

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> events.TimerHandle:
        """See `asyncio.AbstractEventLoop`."""
        context = copy_context() if context is None else context
        timer = _Timer(when, callback, args, self, context)
        heappush(self._timers, timer)
        return timer

    def is_running(self) -> bool:
        """See `asyncio.AbstractEventLoop`."""
        return self._running

    def stop(self) -> None:
        """See `asyncio.AbstractEventLoop`."""
        self._ending = True

    def run_forever(self) -> None:
        """Run until `stop`, jumping from one timer to the next. Raises `Deadlock` when nothing is left."""
        with self._current():
            while not self._ending:
                if not self._ready_now or self._turns >= TURNS_MAX:
                    self._jump()
                self._ring()
                self._turn()

    def settle(self) -> None:
        """Run callbacks until none is ready; no time passes. Raises `Deadlock` when that does not end."""
        self._turns = 0
        with self._current():
            while self._ready_now:
                if self._turns >= TURNS_MAX:
                    raise Deadlock("a process runs for ever without waiting")
                self._turn()

    def advance(self) -> None:
        """Let time pass to the next timer; all timers of that instant become ready. Raises `Deadlock`.

        Those of one process become ready in the order in which it set them.
        """
        self._jump()
        self._ring()
        ready = sorted(self._ready_now, key=_process_of)
        self._ready_now.clear()
        self._ready_now.extend(ready)

    def finish(self, main: Coroutine[Any, Any, None], serve: Callable[[], bool]) -> None:
        """Run a coroutine to its end. `serve` does something for it, and says whether it did.

        Time passes when there is nothing to do. Raises what the coroutine raises, and `Deadlock`.
        """
        task = self.create_task(main)
        self.settle()
        while not task.done():
            if not serve():
                self.advance()
            self.settle()
        task.result()

    @property
    def next_in_s(self) -> float | None:
        """How long it is to the next timer that somebody waits for, or None."""
        while self._timers and self._timers[0].cancelled():
            heappop(self._timers)
        return self._timers[0].when() - self.now_s if self._timers else None

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Inside the block this is the running loop."""
        self._running, self._ending = True, False
        asyncio._set_running_loop(self)
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(finalizer=self._close_generator)
        try:
            yield
        finally:
            sys.set_asyncgen_hooks(*hooks)
            asyncio._set_running_loop(None)
            self._running = self._ending = False

    def _jump(self) -> None:
        """Let time pass to the next timer, unless something is ready and nothing else waits."""
        self._turns = 0
        if self.next_in_s is not None:
            self.now_s = max(self.now_s, self._timers[0].when())
        elif not self._ready_now:
            raise Deadlock("no timer and no callback is left")

    def _ring(self) -> None:
        """The timers whose time has come become ready."""
        while self._timers and self._timers[0].when() <= self.now_s:
            self._ready_now.append(heappop(self._timers).due)

    def _turn(self) -> None:
        """Run what is ready now, but for what belongs to a process that is stopped."""
        self._turns += 1
        for _ in range(len(self._ready_now)):
            due = self._ready_now.popleft()
            handle, context, callback, args = due
            if handle.cancelled():
                continue
            if self._stopped and (held := self._stopped.get(_process_of(due))) is not None:
                held.append(due)
                continue
            try:
                context.run(callback, *args)
            except Exception as error:
                said = f"Exception in callback {callback!r}"
                self.call_exception_handler({"message": said, "exception": error, "handle": handle})

    def _close_generator(self, left: AsyncGenerator[Any, Any]) -> None:
        """Nobody iterates over a generator any more."""
        self.call_soon(self.create_task, left.aclose())


def _process_of(due: Due) -> str:
    """Whose code scheduled it."""
    return due[1].get(PROCESS, SIMULATOR)


class _Timer(events.TimerHandle):
    """A callback at a time: asyncio compares timers by their times alone."""

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: events.AbstractEventLoop,
        context: Context,
    ) -> None:
        super().__init__(when, callback, args, loop, context)
        self.due: Due = (self, context, callback, args)


class _Task(asyncio.Task[Any]):
    """A task whose hash is its number: anyio iterates over sets of tasks."""

    def __init__(
        self, numbers: Iterator[int], coro: Coroutine[Any, Any, Any], **named: Any
    ) -> None:
        self._number = next(numbers)
        super().__init__(coro, **named)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


def run_virtual(main: Callable[[VirtualEventLoop], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end on a loop of its own. Raises `Deadlock`."""
    loop = VirtualEventLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main(loop))
