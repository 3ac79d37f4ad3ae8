"""An event loop of asyncio on a virtual clock: nothing sleeps, and the same calls come in the same order.

The clock stands still while callbacks run, and jumps to the next timer when none is left. There are no files,
sockets, threads or signals. Each callback belongs to the *process* whose code scheduled it (a context
variable). A process can be stopped, as by SIGSTOP: its callbacks wait, its timers become due and wait too, and
when it goes on they run in the order in which they became ready.

It overrides `BaseEventLoop._run_once`, which asyncio itself overrides nowhere; `tests/simulation` would show a
change of it.
"""

import asyncio
import heapq
from asyncio import base_events, events
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextvars import ContextVar
from itertools import count
from typing import Any, TypeVar

T = TypeVar("T")
TURNS_MAX = 1000  # while the clock stands still: whoever waits in a loop would wait for ever
SIMULATOR = ""  # the process of everything that is not of a process

PROCESS: ContextVar[str] = ContextVar("PROCESS", default=SIMULATOR)


class Deadlock(RuntimeError):
    """The run waits, but no timer and no callback is left."""


class VirtualEventLoop(base_events.BaseEventLoop):
    """See the module. `now_s`: the virtual time in seconds."""

    _ready: deque[events.Handle]  # these three are of `BaseEventLoop`
    _scheduled: list[events.TimerHandle]
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self._turns = 0  # since the last jump
        self._stopped: dict[str, deque[events.Handle]] = {}
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
        self._ready.extend(self._stopped.pop(process, ()))

    def _run_once(self) -> None:
        self._turns += 1
        if (not self._ready and not self._stopping) or self._turns > TURNS_MAX:
            self._jump()
        while self._scheduled and self._scheduled[0].when() <= self.now_s:
            self._ready.append(heapq.heappop(self._scheduled))
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if handle._cancelled:
                continue
            context = handle._context  # type: ignore[attr-defined]  # public from Python 3.12 on
            held = self._stopped.get(context.get(PROCESS, SIMULATOR))
            if held is None:
                handle._run()
            else:
                held.append(handle)

    def _jump(self) -> None:
        self._turns = 0
        while self._scheduled and self._scheduled[0]._cancelled:
            heapq.heappop(self._scheduled)
        if not self._scheduled:
            if self._ready:
                return
            raise Deadlock("no timer and no callback is left")
        self.now_s = max(self.now_s, self._scheduled[0].when())

    def _process_events(self, _event_list: object) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """There is no other thread."""

    # What asyncio's own loop counts, to clean its heap of cancelled timers; here they go when they are due.
    def _timer_handle_cancelled(self, _handle: events.TimerHandle) -> None: ...


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
