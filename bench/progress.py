"""Shows how a run goes: a live line on a terminal, a plain line every few seconds elsewhere.

It reads what the run already counts, twice a second, so that operations cost nothing more for
being shown.
"""

import sys
from typing import Protocol, TextIO

from rich.console import Console
from rich.live import Live

from bench.loop import Loop

_LIVE_NS = 500_000_000
_PLAIN_NS = 5_000_000_000


class Source(Protocol):
    """What `Progress` reads of a run."""

    def operations(self) -> int:
        """How many operations have been completed."""
        ...

    def fault(self) -> str:
        """The faults that are active, in words, or an empty string."""
        ...


class Progress:
    """A `bench.run.Watcher`. `attach` gives it the loop and what to read, once there is a run."""

    def __init__(self, console: Console, messages: TextIO = sys.stderr) -> None:
        self._console = console
        self._messages = messages
        self._phase = "starting"
        self._counted = (0, 0)  # operations and time at the last look
        self._live: Live | None = None
        self._source: Source | None = None

    def attach(self, loop: Loop, source: Source) -> None:
        """Begin to show the run, on the loop's own time."""
        self._source = source
        if self._console.is_terminal:
            # No refreshing thread: nodes are forked from this process, and time is the loop's.
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._look(loop, _LIVE_NS if self._console.is_terminal else _PLAIN_NS)

    def close(self) -> None:
        if self._live:
            self._live.stop()

    def phase(self, name: str) -> None:
        self._phase = name
        self._show(name)

    def trace(self, event: str, message: bytes) -> None:
        self._messages.write(f"{event} {message.decode(errors='replace')}\n")

    def _look(self, loop: Loop, every_ns: int) -> None:
        operations, now_ns = self._source.operations() if self._source else 0, loop.now_ns()
        before, before_ns = self._counted
        self._counted = operations, now_ns
        if now_ns > before_ns and self._source:
            rate = (operations - before) * 1e9 / (now_ns - before_ns)
            fault = self._source.fault()
            counts = f"{operations} operations, {rate:.0f}/s"
            if operations or self._live:
                self._show(", ".join(filter(None, (f"{self._phase}: {counts}", fault))))
        loop.call_at(now_ns + every_ns, self._look, loop, every_ns)

    def _show(self, line: str) -> None:
        if self._live:
            self._live.update(line, refresh=True)
        else:
            self._console.print(line, highlight=False)
