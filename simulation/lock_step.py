"""A stranger's node in any language, in lock step: a process gets a line, and is waited for until it is quiet.

A line is a message with `now_ns`, the virtual time, beside its `body`; a line with `now_ns` alone says that a
timer is due. A node on a kit (`workloads/examples/maelstrom_node.*`) prints `{"type":"quiet","timer_ns":...}`
when it has started, and after all that it has to say to a line; `timer_ns` is when it wants to be woken, if it
does. Its random numbers come from `NODE_SEED`, and it starts at `NODE_NOW_NS`. So the same seed gives the same
run.

Of any other node `SILENCE_NS` without a word count as quiet, by the real clock, if its processes do nothing
meanwhile, as far as Linux tells. Its own timers and random numbers are real, and what it says between two lines
comes with the second.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import zip_longest
from modulefinder import ModuleFinder
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from bench.cluster import OnLine
from bench.failure import clip
from bench.loop import RealLoop
from bench.options import TestOptions
from bench.processes import FILES, MARK, ProcessHost
from bench.system import activity, kill_marked
from bench.verdict.silence import Pipes
from runs.writing import Lines
from simulation.hosts import NS, NodeSession, SimulatedHost
from simulation.run import THINK_NS
from simulation.strangers import KIT, ScriptedRun, StrangersRun

SEED, START = "NODE_SEED", "NODE_NOW_NS"
SILENCE_NS = 50_000_000
PATIENCE_S = 10  # real seconds that a kit may take for a line, and any node for its first word
SEED_BITS = 31


class LockStepNode(NodeSession):
    """One life of a node; `make` makes its process, and `has_failed` says that the run is over."""

    deadline: float | None = None

    def __init__(
        self, make: Callable[[OnLine], ProcessHost], has_failed: Callable[[], bool]
    ) -> None:
        self.process, self._has_failed = make(self._hear), has_failed
        self.has_kit: bool | None = None  # None before its first word
        self._said: list[bytes] = []
        self._owed, self._now_ns = 1, 0  # how often the kit has still to say that it is quiet
        self.process.start("ab")

    def receive(self, line: bytes, now: float, arrived_at: float | None = None) -> None:
        del arrived_at
        self._turn(line[:-1] + b",", now)

    def pass_time(self, now: float) -> None:
        self._turn(b"{", now)

    def take(self) -> bytes:
        said, self._said = self._said, []
        return b"".join(each + b"\n" for each in said)

    def _turn(self, begin: bytes, now: float) -> None:
        """Give the node a line, and wait until it has said all that it has to say."""
        self._now_ns, self.deadline = round(now * NS), None
        self._owed += 1
        line = b'%b"now_ns":%d}' % (begin, self._now_ns)
        self.process.deliver(line)
        loop = self.process.loop
        end_ns = loop.now_ns() + PATIENCE_S * NS
        seen: Any = None
        while not self._is_over:
            until_ns = loop.now_ns() + SILENCE_NS // 2
            loop.call_at(until_ns, int)  # something to wait for
            loop.run_until(lambda until_ns=until_ns: self._is_over or loop.now_ns() >= until_ns)  # type: ignore[misc]
            is_late, before = loop.now_ns() >= end_ns, seen
            seen = None if self.has_kit else self._seen()
            if self.has_kit is False and (is_late or (seen and seen == before)):
                return
            if is_late and self.has_kit:
                self.process.end(
                    f"Node {self.process.name} did not say within {PATIENCE_S} s that it is quiet, after the"
                    f" line\n  {clip(line.decode())}"
                )
            elif is_late:
                self.has_kit = False

    def _seen(self) -> Any:
        """What stays the same while a node is silent; None if it is sure to go on."""
        stats, is_running = activity(self.process.process.pid)
        goes_on = is_running or self.process.pipes().unread_bytes
        return None if goes_on else (len(self._said), stats)

    @property
    def _is_over(self) -> bool:
        return bool(self.has_kit and not self._owed) or self._has_failed()

    def _hear(self, name: str, line: bytes) -> None:
        said = _quiet(line) if b'"quiet"' in line else None
        if said is None:
            self.has_kit = bool(self.has_kit)
            self._said.append(line)
            return
        self.has_kit = True
        self._owed -= 1
        if self._owed:  # it has only started
            return
        due = said.get("timer_ns")
        if due is not None and not (type(due) is int and due > self._now_ns):
            self.process.end(
                f"Node {name} waits for a timer_ns of {clip(repr(due))}. It must be a whole number above"
                f" now_ns, {self._now_ns}, or absent."
            )
        elif due is not None:
            self.deadline = due / NS


def _quiet(line: bytes) -> dict[str, Any] | None:
    try:
        said = orjson.loads(line)
    except ValueError:
        return None
    return said if isinstance(said, dict) and said.get("type") == "quiet" else None


class LockStepHost(SimulatedHost):
    """One node; its sessions are processes."""

    _session: LockStepNode | None

    def kill(self) -> None:
        if self._session:
            self._session.process.kill()
            self._session.process.close()  # of one that had ended by itself
        super().kill()

    def postmortem(self) -> str:
        return self._session.process.postmortem() if self._session else super().postmortem()

    def pipes(self) -> Pipes:
        return self._session.process.pipes() if self._session else super().pipes()


class LockStepRun(StrangersRun):
    """A run whose nodes are processes. `logs`: the folder of what they write to stderr, if that is kept."""

    def __init__(self, *args: Any, logs: Path | None = None, **named: Any) -> None:
        self._logs = logs
        self._lives: list[LockStepNode] = []
        super().__init__(*args, **named)

    @contextmanager
    def _around(self) -> Iterator[None]:
        with TemporaryDirectory() as folder:
            self._folder, self._real = Path(folder), RealLoop()
            self._mark = f"{os.getpid()}-{folder}"
            try:
                yield
            finally:
                kill_marked(f"{MARK}={self._mark}")  # what a node has started and left
                self._real.close()

    @property
    def without_kit(self) -> str:
        """The name of a node that does not say when it is quiet, or does not start; empty if there is none."""
        names = (each.process.name for each in self._lives if not each.has_kit)
        return next(names, "" if self._lives else self.options.nodes[0])

    def _new_host(self, name: str, on_line: OnLine) -> SimulatedHost:
        return LockStepHost(name, self.loop, on_line, self._make, lambda: THINK_NS)

    def _start(self, name: str, start: int) -> NodeSession:
        seed = self._random_of(name, start).getrandbits(SEED_BITS)

        def make(on_line: OnLine) -> ProcessHost:
            return ProcessHost(
                name=name,
                loop=self._real,
                command=[self.options.bin, *self.options.args],
                log=(self._logs or self._folder) / f"{name}.log",
                keeps_log=self._logs is not None,
                on_line=on_line,
                on_failure=self._on_failure,
                environment={
                    FILES: str(self._folder / "node-files"),
                    SEED: str(seed),
                    START: str(self.loop.now_ns()),
                },
                mark=self._mark,
            )

        self._lives.append(LockStepNode(make, lambda: self.failure is not None))
        return self._lives[-1]


@cache
def is_on_the_python_kit(script: Path) -> bool:
    """Whether this is a Python script that imports the kit, itself or by a module beside it."""
    finder = ModuleFinder(path=[str(script.parent)])
    try:
        finder.run_script(str(script))
    except (SyntaxError, ValueError):
        return False
    return KIT in finder.modules


def run_of(
    options: TestOptions,
    history: Lines | None = None,
    journal: Lines | None = None,
    *,
    keep: bool = False,
    logs: Path | None = None,
) -> StrangersRun:
    """A run of a stranger's node: in this process if it can be, else in lock step."""
    if is_on_the_python_kit(Path(options.bin)):
        return ScriptedRun(options, history, journal, keep=keep)
    return LockStepRun(options, history, journal, keep=keep, logs=logs)


def difference(seed: str, journals: Sequence[bytes]) -> str:
    """The first message in which two runs of a seed differ, by their journals; empty if none does."""
    for each in zip_longest(*(journal.splitlines() for journal in journals)):
        if each[0] != each[1]:
            number = max(orjson.loads(line)["message"]["id"] for line in each if line)
            told = "\n".join(f"  {_told(line)}" for line in each)
            return (
                f"Two runs of seed {seed} differ at message {number}, so this node cannot be repeated from a"
                f" seed:\n{told}"
            )
    return ""


def _told(line: bytes | None) -> str:
    if line is None:
        return "no message"
    event = orjson.loads(line)
    return clip(f"at {event['time'] / NS:.6f} s {orjson.dumps(event['message']).decode()}")
