"""asyncio on a virtual clock, for one process: nothing sleeps, and the same calls come in the same order.

The clock stands still while callbacks run. Who runs a process as a session tells it the time (`run`), and when
it wants to be told again (`deadline`). Alone it jumps to the next timer when nothing is left to run
(`run_virtual`). There are no files, sockets, threads or signals.
"""

import asyncio
import sys
from asyncio import base_events, events
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar, TypeVarTuple, Unpack

from bench.loop import Deadlock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
TURNS_MAX = 1000  # while the clock stands still: whoever waits in a loop would wait for ever


class VirtualEventLoop(base_events.BaseEventLoop):
    """See the module. `now_s`: the virtual time in seconds."""

    def __init__(self) -> None:
        self._running = self._ending = False
        super().__init__()
        self.now_s = 0.0
        self._timers: list[events.TimerHandle] = []
        self._ready_now = deque[events.Handle]()
        self._turns = 0  # since the clock moved
        numbers = count()
        self.set_task_factory(lambda loop, coro, **named: _Task(numbers, coro, loop=loop, **named))

    def time(self) -> float:
        """See `asyncio.AbstractEventLoop`."""
        return self.now_s

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> events.Handle:
        """See `asyncio.AbstractEventLoop`."""
        handle = events.Handle(callback, args, self, context)
        self._ready_now.append(handle)
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
        timer = events.TimerHandle(when, callback, args, self, context)
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
                self._turn()

    def run(self, now_s: float) -> None:
        """Let time pass, and run what is due until all tasks wait. Raises `Deadlock` when that does not end."""
        self.now_s = max(self.now_s, now_s)
        self._turns = 0
        self._ring()
        with self._current():
            while self._ready_now:
                if self._turns >= TURNS_MAX:
                    raise Deadlock("a process runs for ever without waiting")
                self._turn()

    @property
    def deadline(self) -> float | None:
        """When the next timer is due that somebody waits for, or None."""
        while self._timers and self._timers[0].cancelled():
            heappop(self._timers)
        return self._timers[0].when() if self._timers else None

    def end(self) -> None:
        """Cancel all tasks, let them end, and close the loop, also one that a signal ended while it ran.

        Another loop may run meanwhile: the collector ends a process that nobody knows any more at any moment.
        """
        other = None if self._running else asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        self._running = False
        tasks = sorted(asyncio.all_tasks(self), key=hash)
        for task in tasks:
            task.cancel()
        if tasks:
            self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.close()
        asyncio._set_running_loop(other)

    def __del__(self) -> None:
        """It has no files or sockets: whoever forgets it owes nothing."""

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Inside the block this is the running loop."""
        hooks = sys.get_asyncgen_hooks()
        try:  # a signal may end it at any place
            self._running, self._ending = True, False
            asyncio._set_running_loop(self)
            sys.set_asyncgen_hooks(finalizer=self._close_generator)
            yield
        finally:
            sys.set_asyncgen_hooks(*hooks)
            asyncio._set_running_loop(None)
            self._running = self._ending = False

    def _jump(self) -> None:
        """Let time pass to the next timer, unless something is ready and nothing else waits."""
        self._turns = 0
        deadline = self.deadline
        if deadline is not None:
            self.now_s = max(self.now_s, deadline)
            self._ring()
        elif not self._ready_now:
            raise Deadlock("no timer and no callback is left")

    def _ring(self) -> None:
        """The timers whose time has come become ready."""
        while self._timers and self._timers[0].when() <= self.now_s:
            self._ready_now.append(heappop(self._timers))

    def _turn(self) -> None:
        """Run what is ready now."""
        self._turns += 1
        for _ in range(len(self._ready_now)):
            handle = self._ready_now.popleft()
            if not handle.cancelled():
                handle._run()

    def _close_generator(self, left: AsyncGenerator[Any, Any]) -> None:
        """Nobody iterates over a generator any more."""
        self.call_soon(self.create_task, left.aclose())


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
