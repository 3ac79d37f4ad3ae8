"""asyncio on a virtual clock, for one process: nothing sleeps, and the same calls come in the same order.

The clock stands still while callbacks run. Who runs a process as a session tells it the time (`run`), and when
it wants to be told again (`deadline`). Alone it jumps to the next timer when nothing is left to run
(`run_virtual`). There are no files, sockets or signals; threads take turns with it (`simulation.threads`).
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextvars import Context, copy_context
from itertools import count
from math import ulp
from types import SimpleNamespace
from typing import Any, TypeVar

from bench.loop import Deadlock
from leaderless.store.calls import THREADS
from simulation.threads import in_turn

T = TypeVar("T")
TURNS_MAX = 1000  # while the clock stands still: whoever waits in a loop would wait for ever


class VirtualEventLoop(asyncio.BaseEventLoop):
    """See the module. `now_s`: the virtual time in seconds.

    It is asyncio's own loop. Where that would wait for files it lets time pass, or stops.
    """

    _scheduled: list[asyncio.TimerHandle]

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self._is_told = False  # what time it is
        self._turns = 0  # since the clock moved
        self._selector = SimpleNamespace(select=self._wait)
        self._numbers = count()
        self.set_task_factory(self._new_task)  # type: ignore[arg-type]  # it takes a context, too

    def _new_task(
        self,
        _loop: asyncio.AbstractEventLoop,
        coro: Coroutine[Any, Any, Any],
        context: Context | None = None,
        **named: Any,
    ) -> asyncio.Task[Any]:
        context = context or copy_context()
        context.run(THREADS.set, in_turn)
        return _Task(self._numbers, coro, loop=self, context=context, **named)

    def time(self) -> float:
        """See `asyncio.AbstractEventLoop`."""
        return self.now_s

    def run(self, now_s: float) -> None:
        """Let time pass, and run what is due until all tasks wait. Raises `Deadlock` when that does not end."""
        self.now_s = max(self.now_s, now_s)
        self._turns, self._is_told = 0, True
        self.run_forever()

    @property
    def deadline(self) -> float | None:
        """When the next timer is due that somebody waits for, or None."""
        return self._scheduled[0].when() if self._scheduled else None

    def end(self) -> None:
        """Cancel all tasks, let them end, and close the loop, also one that a signal ended while it ran.

        Another loop may run meanwhile: the collector ends a process that nobody knows any more at any moment.
        """
        other = None if self.is_running() else asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        self._thread_id, self._is_told = None, False
        tasks = sorted(asyncio.all_tasks(self), key=hash)
        for task in tasks:
            task.cancel()
        if tasks:
            self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.close()
        asyncio._set_running_loop(other)

    def __del__(self) -> None:
        """It has no files or sockets: whoever forgets it owes nothing."""

    def _wait(self, timeout_s: float | None) -> list[Any]:
        """Let no time pass while something is ready or due (`timeout_s` is 0 then), or else jump, or stop."""
        self._turns += 1
        self._clock_resolution = ulp(self.now_s)
        is_due = timeout_s == 0
        if is_due and self._turns <= TURNS_MAX:
            return []
        self._turns = 0
        if self._is_told and not is_due:
            self.stop()
        elif self.deadline is not None and not self._is_told:
            self.now_s = max(self.now_s, self.deadline)
        else:
            why = "a process runs for ever without waiting" if is_due else "all wait for ever"
            raise Deadlock(why)
        return []

    def _process_events(self, _events: list[Any]) -> None:
        """See `BaseEventLoop`: there are none."""

    def _write_to_self(self) -> None:
        """There is no other thread that it would wake this one for."""


class _Task(asyncio.Task[Any]):
    """A task whose hash is its number: anyio iterates over sets of tasks."""

    def __init__(
        self, numbers: Iterator[int], coro: Coroutine[Any, Any, Any], **named: Any
    ) -> None:
        self._number = next(numbers)
        super().__init__(coro, **named)

    def __hash__(self) -> int:
        return self._number


def run_virtual(main: Callable[[VirtualEventLoop], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end on a loop of its own. Raises `Deadlock`."""
    loop = VirtualEventLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main(loop))
