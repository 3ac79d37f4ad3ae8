"""One thread, one event loop, two clocks.

Everything in the bench runs as callbacks on a loop: `call_at` (a time), `call_soon` (the end of this turn).
`RealLoop` waits for file descriptors and the monotonic clock; `VirtualLoop` jumps from one timer to the next,
so a minute of test takes as long as its callbacks do. The pure parts see only `Loop`.

Times are integers, nanoseconds since the loop was made. Timers cannot be cancelled: a callback checks for
itself whether it is still wanted, which is cheaper than bookkeeping for the many that never fire.
"""

import select
import selectors
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Callback = Callable[[], object]

# epoll rounds its timeout up to whole milliseconds: shorter waits go through select(2) on epoll's own
# descriptor, which counts in microseconds. At 10,000 operations a second the difference is ten at once.
_FINE_WAIT_NS = 2_000_000
_SELECT_LIMIT = 1024  # select(2) knows no descriptor from here on
_MAX_WAIT_NS = 1_000_000_000


class Deadlock(RuntimeError):
    """A run waits, but no timer and no callback is left."""


class Loop(ABC):
    """The clock and the timers: a heap in order of time, then of creation, and the turn's last calls."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Callable[..., object], tuple[Any, ...]]] = []
        self._sequence = 0
        self._soon: deque[Callback] = deque()

    @abstractmethod
    def now_ns(self) -> int:
        """Nanoseconds since the loop was made."""

    @abstractmethod
    def run_until(self, done: Callable[[], bool]) -> None:
        """Run turns until `done()`, which is asked after every turn."""

    def call_at(self, time_ns: int, function: Callable[..., object], *args: Any) -> None:
        """Call `function(*args)` at that time, or in this turn when it is past already."""
        self._sequence += 1
        heappush(self._heap, (time_ns, self._sequence, function, args))

    def call_later(self, wait_ns: int, function: Callable[..., object], *args: Any) -> None:
        """Call `function(*args)` when that time has passed."""
        self.call_at(self.now_ns() + wait_ns, function, *args)

    def call_soon(self, function: Callback) -> None:
        """Call `function()` at the end of this turn, after everything that is ready now."""
        self._soon.append(function)

    def _run_soon(self) -> None:
        soon = self._soon
        while soon:
            soon.popleft()()


class VirtualLoop(Loop):
    """A loop whose clock stands still while callbacks run and jumps to the next timer after them."""

    def __init__(self) -> None:
        super().__init__()
        self._now_ns = 0

    def now_ns(self) -> int:
        return self._now_ns

    def run_until(self, done: Callable[[], bool]) -> None:
        """As `Loop.run_until`. Raises `Deadlock` when nothing is left to happen before `done()`."""
        self._run_soon()
        while not done():
            if not self._heap:
                raise Deadlock("deadlock: the run waits, but no timer and no callback is left")
            time_ns, _, function, args = heappop(self._heap)
            self._now_ns = max(self._now_ns, time_ns)
            function(*args)
            self._run_soon()


class RealLoop(Loop):
    """A loop on the monotonic clock and file descriptors."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = selectors.DefaultSelector()
        self._origin_ns = time.monotonic_ns()
        # The descriptor of epoll or kqueue; poll(2) has none, and waits whole milliseconds.
        fileno = getattr(self._selector, "fileno", lambda: _SELECT_LIMIT)()
        self._fileno = fileno if fileno < _SELECT_LIMIT else None

    def now_ns(self) -> int:
        return time.monotonic_ns() - self._origin_ns

    def watch(self, fd: int, on_readable: Callback | None, on_writable: Callback | None) -> None:
        """Call back whenever the descriptor is ready; both `None` ends it."""
        events = (selectors.EVENT_READ if on_readable else 0) | (
            selectors.EVENT_WRITE if on_writable else 0
        )
        known = fd in self._selector.get_map()
        if not events:
            if known:
                self._selector.unregister(fd)
        elif known:
            self._selector.modify(fd, events, (on_readable, on_writable))
        else:
            self._selector.register(fd, events, (on_readable, on_writable))

    def run_until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._turn()

    def close(self) -> None:
        self._selector.close()

    def _turn(self) -> None:
        for key, events in self._wait():
            on_readable, on_writable = key.data
            if events & selectors.EVENT_READ and on_readable:
                on_readable()
            if events & selectors.EVENT_WRITE and on_writable:
                on_writable()
        heap = self._heap
        if heap:
            now_ns = self.now_ns()
            while heap and heap[0][0] <= now_ns:
                _, _, function, args = heappop(heap)
                function(*args)
        self._run_soon()

    def _wait(self) -> list[tuple[selectors.SelectorKey, int]]:
        wait_ns = _MAX_WAIT_NS
        if self._soon:
            wait_ns = 0
        elif self._heap:
            wait_ns = min(wait_ns, self._heap[0][0] - self.now_ns())
        if wait_ns <= 0:
            return self._selector.select(0)
        if wait_ns < _FINE_WAIT_NS and self._fileno is not None:
            select.select([self._fileno], [], [], wait_ns / 1e9)
            return self._selector.select(0)
        return self._selector.select(wait_ns / 1e9)
