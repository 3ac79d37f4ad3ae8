"""An event loop that runs until everything waits, and whose clock moves only when it is told to."""

import heapq
from asyncio import events
from collections.abc import Callable, Coroutine
from contextvars import Context
from itertools import count
from typing import Any, TypeVarTuple, Unpack

from simulation.exploration.search import Failing
from simulation.objects.loop import PROCESS, SIMULATOR, TURNS_MAX, VirtualEventLoop

Ts = TypeVarTuple("Ts")


class ChosenLoop(VirtualEventLoop):
    """`settle` runs what is ready; `advance` lets time pass to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count()
        self._numbered: dict[int, int] = {}  # of each timer, by its identity
        self.set_exception_handler(lambda _loop, _context: None)  # tasks tell what they raised

    @property
    def has_timer(self) -> bool:
        """Whether time can pass."""
        self._drop_cancelled()
        return bool(self._scheduled)

    @property
    def next_in_s(self) -> float:
        """How long it is to the next timer, which must exist."""
        self._drop_cancelled()
        return self._scheduled[0].when() - self.now_s

    def settle(self) -> None:
        """Run callbacks until none is ready. Raises `Failing` when that does not end."""
        self._turns = 0
        self.run_forever()

    def advance(self) -> None:
        """Let time pass to the next timer, which must exist; all timers of that instant become ready.

        Those of one process become ready in the order in which it set them.
        """
        self._drop_cancelled()
        self.now_s = max(self.now_s, self._scheduled[0].when())
        due = []
        while self._scheduled and self._scheduled[0].when() <= self.now_s:
            timer = heapq.heappop(self._scheduled)
            due.append((timer.when(), _process_of(timer), self._numbered.pop(id(timer)), timer))
        self._ready.extend(timer for *_, timer in sorted(due, key=lambda each: each[:3]))

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> events.TimerHandle:
        """See `asyncio.AbstractEventLoop`."""
        timer = super().call_at(when, callback, *args, context=context)
        self._numbered[id(timer)] = next(self._numbers)
        return timer

    def finish(self, main: Coroutine[Any, Any, None], serve: Callable[[], bool]) -> None:
        """Run a coroutine to its end. `serve` does something for it, and says whether it did.

        Time passes when there is nothing to do. Raises what the coroutine raises, and `Failing` when it waits
        for ever.
        """
        task = self.create_task(main)
        self.settle()
        while not task.done():
            if not serve():
                if not self.has_timer:
                    raise Failing("Progress", "something waits for ever")
                self.advance()
            self.settle()
        task.result()

    def _run_once(self) -> None:
        self._turns += 1
        if self._turns > TURNS_MAX:
            raise Failing("Progress", "a process runs for ever without waiting")
        if not self._ready:
            self._stopping = True
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _drop_cancelled(self) -> None:
        while self._scheduled and self._scheduled[0]._cancelled:
            self._numbered.pop(id(heapq.heappop(self._scheduled)))


def _process_of(timer: events.TimerHandle) -> str:
    context = timer._context  # type: ignore[attr-defined]  # public from Python 3.12 on
    return str(context.get(PROCESS, SIMULATOR))
