"""Watchers of a run: `Progress` shows how it goes, `CpuMeter` measures the CPU of its nodes.

Progress is a live line on a terminal, a plain line every few seconds elsewhere.

It reads what the run already counts, twice a second, so that operations cost nothing more for being shown.
"""

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TextIO

from rich.console import Console
from rich.live import Live

from bench.loop import Loop
from bench.net import Mute
from bench.run import BenchRun, Watcher
from runs.facts import spaced

_LIVE_NS = 500_000_000
_PLAIN_NS = 5_000_000_000
_ASKING = ("main phase", "final phase")  # in the others clients ask nothing, so there is no rate
_CPUCLOCK_SCHED = 2  # as clock_getcpuclockid(3) of glibc makes it


@dataclass
class CpuMeter:
    """Reads the nodes' CPU clocks where phases change.

    `pids` gives each node's process once it is started. Processes that a node starts do not count.
    """

    pids: Callable[[], Mapping[str, int]] = dict
    _at_start: Mapping[tuple[str, int], float] = field(default_factory=dict)
    used_s: Mapping[str, float] = field(default_factory=dict)

    def phase(self, name: str) -> None:
        """Another phase begins."""
        if name == "main phase":
            self._at_start = self._read()
        elif name == "stopping the nodes":
            now, start = self._read(), self._at_start
            same = start.keys() & now.keys()  # not those that were killed and started again
            self.used_s = {node: now[node, pid] - start[node, pid] for node, pid in sorted(same)}

    def _read(self) -> dict[tuple[str, int], float]:
        """The clocks that can be read: none on other systems than Linux, and none of a node that has ended."""
        if not sys.platform.startswith("linux"):
            return {}
        clocks = {}
        for node, pid in self.pids().items():
            with suppress(OSError):
                clocks[node, pid] = process_cpu_s(pid)
        return clocks


def process_cpu_s(pid: int) -> float:
    """CPU that a process has used so far, in seconds, to the nanosecond. Linux only; raises `OSError`
    when the process is gone.
    """
    return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)


class Progress(Watcher):
    """A watcher that shows the run; `attach` gives it the loop and the run, once there is one."""

    def __init__(self, console: Console, messages: TextIO = sys.stderr) -> None:
        self._console = console
        self._messages = messages
        self.cpu = CpuMeter()
        self._phase = "starting"
        self._counted = (0, 0)  # operations and time at the last look
        self._live: Live | None = None
        self._run: BenchRun | None = None

    def attach(self, loop: Loop, run: BenchRun) -> None:
        """Begin to show the run, on the loop's own time."""
        self._run = run
        if self._console.is_terminal:
            # No refreshing thread: nodes are forked from this process, and time is the loop's.
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._look(loop, _LIVE_NS if self._console.is_terminal else _PLAIN_NS)

    def close(self) -> None:
        if self._live:
            self._live.stop()

    def phase(self, name: str) -> None:
        self.cpu.phase(name)
        self._phase = name
        self._show(name)

    def trace(self, event: str, message: bytes) -> None:
        self._messages.write(f"{event} {message.decode(errors='replace')}\n")

    def muted(self, mute: Mute) -> None:
        self._console.print(f"{mute.node} is mute: nobody hears it any more.", highlight=False)

    def _look(self, loop: Loop, every_ns: int) -> None:
        operations, now_ns = self._run.recorder.operation_count if self._run else 0, loop.now_ns()
        before, before_ns = self._counted
        self._counted = operations, now_ns
        if now_ns > before_ns and self._run:
            line = self._phase
            if asking := self._phase in _ASKING:
                rate = (operations - before) * 1e9 / (now_ns - before_ns)
                line += f": {spaced(operations)} operations, {spaced(rate, '.0f')}/s"
            if self._live or (asking and operations):
                self._show(", ".join(filter(None, (line, self._run.fault()))))
        loop.call_at(now_ns + every_ns, self._look, loop, every_ns)

    def _show(self, line: str) -> None:
        if self._live:
            self._live.update(line, refresh=True)
        else:
            self._console.print(line, highlight=False)
