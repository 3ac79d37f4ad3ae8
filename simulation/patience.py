"""Ends a run that loops without time passing: no virtual clock can."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CPU_S_MAX = 60.0


class Stuck(BaseException):
    """A step has no end. Not an `Exception`, which whoever loops might catch."""


@contextmanager
def cpu_limited(seconds: float | None = None) -> Iterator[None]:
    """Raise `Stuck` inside the block after so many seconds of CPU; main threads only, others wait."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    limit_s = CPU_S_MAX if seconds is None else seconds

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise Stuck(f"no end after {limit_s:g} s of CPU")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
