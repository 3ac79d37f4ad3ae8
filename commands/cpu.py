"""How much CPU each node uses between the first operation and the last: starting up does not count."""

import sys
import time
from collections.abc import Callable, Mapping

from bench.run import Watcher

_CPUCLOCK_SCHED = 2  # as clock_getcpuclockid(3) of glibc makes it


def process_cpu_s(pid: int) -> float:
    """CPU that a process has used so far, in seconds, to the nanosecond. Linux only; raises `OSError`
    when the process is gone.
    """
    return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)


class CpuMeter:
    """A `Watcher` that reads the nodes' CPU clocks where phases change, and passes every call on.

    `pids` gives each node's process once it is started. Processes that a node starts do not count.
    """

    def __init__(self, watcher: Watcher, pids: Callable[[], Mapping[str, int]]) -> None:
        self._watcher = watcher
        self._pids = pids
        self._at_start: dict[tuple[str, int], float] = {}
        self.used_s: dict[str, float] = {}

    def phase(self, name: str) -> None:
        if name == "main phase":
            self._at_start = self._read()
        elif name == "stopping the nodes":
            now = self._read()
            start = self._at_start
            same = start.keys() & now.keys()  # not those that were killed and started again
            self.used_s = {node: now[node, pid] - start[node, pid] for node, pid in sorted(same)}
        self._watcher.phase(name)

    def trace(self, event: str, message: bytes) -> None:
        self._watcher.trace(event, message)

    def _read(self) -> dict[tuple[str, int], float]:
        """What can be read: nothing where there are no such clocks, and nothing of a node that has gone."""
        if not sys.platform.startswith("linux"):
            return {}
        clocks = {}
        for node, pid in self._pids().items():
            try:
                clocks[node, pid] = process_cpu_s(pid)
            except OSError:
                continue
        return clocks
