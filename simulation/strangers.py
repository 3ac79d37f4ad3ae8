"""A stranger's node on the virtual clock: a Python script on the kit, `workloads/examples/maelstrom_node.py`.

Each start of a node runs the script anew, with modules of its own, until it calls `Node.run`. From then on the
simulator gives it each line, and each time at which a timer of `Node.every` is due. What the script asks of
Python's clocks and random numbers comes from the seed (`Drawn`), and what it prints is what it sends. So the
same seed gives the same run, while Python's own hashes are the same (`PYTHONHASHSEED`).

Not simulated, and refused with the line that does it: threads, processes, sockets, sleeping, a loop over stdin
of its own. Files are those of the machine, and only those in `NODE_FILES` belong to one run: a node that keeps
something elsewhere may not give the same run twice.
"""

import datetime
import os
import random
import socket
import subprocess
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    redirect_stderr,
    redirect_stdout,
)
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, NoReturn
from unittest.mock import patch

import click
import orjson

from bench.cluster import OnFailure, OnLine
from bench.failure import RunFailure, indent
from bench.options import TestOptions
from bench.processes import FILES
from bench.run import RunResult
from runs.writing import Lines
from simulation.hosts import NS, NodeSession, SimulatedHosts
from simulation.run import SimulatedRun

KIT = "maelstrom_node"
EPOCH_S = 1_700_000_000.0  # what `time.time` says when a run begins
DRAWS = (
    "betavariate", "choice", "choices", "expovariate", "gammavariate", "gauss", "getrandbits",
    "lognormvariate", "normalvariate", "paretovariate", "randbytes", "randint", "random", "randrange",
    "sample", "seed", "shuffle", "triangular", "uniform", "vonmisesvariate", "weibullvariate",
)  # fmt: skip
TOLD_MAX = 2000  # characters of a traceback, and of a stderr


class NotSimulated(click.UsageError):
    """A script does what no seed can decide; the message names the line and what to do."""


class _Served(BaseException):
    """The script has called `Node.run`: from here on lines come from the simulator."""


class Drawn(threading.local):
    """What a script gets from Python's clocks and random numbers, while one of its nodes runs.

    It is in force in the whole process: `inside` says which node runs in this thread. Otherwise, and in other
    threads, Python's own answer.
    """

    def __init__(self, script: Path) -> None:
        self._script = str(script)
        self._node: ScriptedNode | None = None

    @contextmanager
    def inside(self, node: "ScriptedNode") -> Iterator[None]:
        """Let `node` run: clocks, random numbers and stdout are its own."""
        self._node = node
        try:
            with redirect_stdout(node.stdout), redirect_stderr(node.stderr):
                yield
        finally:
            self._node = None

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Put these in place of Python's own, for one run."""
        uuid._last_timestamp = None  # type: ignore[attr-defined]  # of the run before
        with ExitStack() as stack:
            files = stack.enter_context(TemporaryDirectory())
            stack.enter_context(patch.dict(os.environ, {FILES: files}))
            for owner, name, new in self._replaced():
                stack.enter_context(patch.object(owner, name, new))
            yield

    def _replaced(self) -> Iterator[tuple[Any, str, Any]]:
        for name in ("time", "monotonic", "perf_counter", "process_time"):
            since = EPOCH_S if name == "time" else 0.0
            yield time, name, self._or_real(getattr(time, name), _seconds(since))
            real_ns = getattr(time, f"{name}_ns")
            yield time, f"{name}_ns", self._or_real(real_ns, _nanoseconds(since))
        for name in DRAWS:
            yield random, name, self._or_real(getattr(random, name), _drawing(name))
        urandom = self._or_real(os.urandom, lambda node, size: node.random.randbytes(size))
        yield os, "urandom", urandom
        yield random, "_urandom", urandom
        yield random, "Random", self._random_class()
        yield uuid, "_generate_time_safe", None  # of the C library, which reads its own clock
        yield datetime, "datetime", self._datetime_class()
        for owner, name, instead in REFUSED:
            yield owner, name, self._or_real(getattr(owner, name), self._refusal(name, instead))

    def _or_real(self, real: Callable[..., Any], drawn: Callable[..., Any]) -> Callable[..., Any]:
        def either(*args: Any, **named: Any) -> Any:
            return real(*args, **named) if self._node is None else drawn(self._node, *args, **named)

        return either

    def _random_class(self) -> type[random.Random]:
        """One without a seed has a drawn one."""
        outer = self

        class Random(random.Random):
            def seed(self, a: Any = None, version: int = 2) -> None:
                node = outer._node
                super().seed(node.random.random() if a is None and node else a, version)

        return Random

    def _datetime_class(self) -> type[datetime.datetime]:
        outer, real = self, datetime.datetime

        class Datetime(real):  # type: ignore[valid-type,misc]
            @classmethod
            def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
                if outer._node is None:
                    return real.now(tz)
                return real.fromtimestamp(EPOCH_S + outer._node.now, tz or datetime.UTC).replace(
                    tzinfo=tz
                )

            today = utcnow = now

        return Datetime

    def _refusal(self, what: str, instead: str) -> Callable[..., NoReturn]:
        def refuse(_node: "ScriptedNode", *_: Any, **__: Any) -> NoReturn:
            raise NotSimulated(f"{self.line()}: {what}: {instead}")

        return refuse

    def told(self, error: BaseException) -> str:
        """The traceback of an error, from the first line of the script on."""
        trace = error.__traceback__
        while trace and not self._is_own(trace.tb_frame):
            trace = trace.tb_next
        lines = traceback.format_exception(error.with_traceback(trace or error.__traceback__))
        return "".join(lines)[-TOLD_MAX:].rstrip()

    def _is_own(self, frame: FrameType) -> bool:
        return frame.f_code.co_filename.startswith(str(Path(self._script).parent) + os.sep)

    def line(self) -> str:
        """The line of the script, or of a module beside it, that runs now."""
        frame: FrameType | None = sys._getframe()
        while frame and not self._is_own(frame):
            frame = frame.f_back
        return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else self._script


def _seconds(since: float) -> Callable[["ScriptedNode"], float]:
    return lambda node: since + node.now


def _nanoseconds(since: float) -> Callable[["ScriptedNode"], int]:
    return lambda node: int((since + node.now) * 1e9)


def _drawing(name: str) -> Callable[..., Any]:
    return lambda node, *args, **named: getattr(node.random, name)(*args, **named)


_TIMER = "call `every` of the kit in its place."
_ONE_THREAD = (
    "a simulated node has one thread and one process; `every` and `call` of the kit need no other."
)
REFUSED: tuple[tuple[Any, str, str], ...] = (
    (time, "sleep", f"it would hold up the node's other work; {_TIMER}"),
    (threading.Thread, "start", _ONE_THREAD),
    (threading.Timer, "start", _ONE_THREAD),
    (subprocess.Popen, "__init__", _ONE_THREAD),
    (os, "fork", _ONE_THREAD),
    (os, "system", _ONE_THREAD),
    (socket, "socket", "a simulated node has no network but its stdin and stdout."),
)


class _NoStdin(StringIO):
    """Whoever reads stdin has a loop of its own."""

    def __init__(self, refuse: Callable[[str], NoReturn]) -> None:
        super().__init__()
        self._refuse = refuse

    def read(self, *_: Any) -> str:
        self._refuse("stdin")

    fileno = readline = __next__ = __iter__ = read  # type: ignore[assignment]


@dataclass(eq=False)
class ScriptedNode(NodeSession):
    """One start of a node. It ends at an error of the script, which `failed` is told."""

    name: str
    random: random.Random
    drawn: Drawn
    failed: Callable[[str], object]
    stdout: StringIO = field(default_factory=StringIO)
    stderr: StringIO = field(default_factory=StringIO)
    now: float = 0.0
    deadline: float | None = None
    _node: Any = None

    def load(self, script: Path, arguments: Sequence[str]) -> None:
        """Run the script until it serves."""
        with self._running(), _own_modules(script.parent):
            self._node = _made_by(script, arguments, self.drawn.line)

    def receive(self, line: bytes, now: float, arrived_at: float | None = None) -> None:
        del arrived_at  # the kit does not ask since when a line lay in its pipe
        self.now = now
        with self._running():
            self._node.now = now
            self._node.receive(orjson.loads(line))
            self.deadline = self._node.tick(now)

    def pass_time(self, now: float) -> None:
        self.now = now
        with self._running():
            self.deadline = self._node.tick(now)

    def take(self) -> bytes:
        text = self.stdout.getvalue()
        end = text.rfind("\n") + 1  # what has no line end stays in the pipe
        self.stdout.seek(0)
        self.stdout.truncate()
        self.stdout.write(text[end:])
        return text[:end].encode()

    @contextmanager
    def _running(self) -> Iterator[None]:
        try:
            with self.drawn.inside(self):
                yield
        except NotSimulated:
            raise
        except (Exception, SystemExit) as error:
            self.deadline, said = None, self.stderr.getvalue()[-TOLD_MAX:].rstrip()
            self.failed(
                f"Node {self.name} ended at an error:\n{self.drawn.told(error)}"
                + f"\nIts last lines on stderr:\n{indent(said)}" * bool(said)
            )


@contextmanager
def _own_modules(folder: Path) -> Iterator[None]:
    """Let a script import what stands beside it anew: no two starts share a module."""
    beside = [
        name
        for name, module in sys.modules.items()
        if (getattr(module, "__file__", None) or "").startswith(f"{folder}{os.sep}")
    ]
    kept = {name: sys.modules.pop(name) for name in beside}
    try:
        with patch.object(sys, "path", [str(folder), *sys.path]):
            yield
    finally:
        sys.modules.update(kept)


def _made_by(script: Path, arguments: Sequence[str], line: Callable[[], str]) -> Any:
    """The node that a script makes and lets run."""
    made: list[Any] = []

    def serve(node: Any) -> NoReturn:
        made.append(node)
        raise _Served

    def refuse(what: str) -> NoReturn:
        raise NotSimulated(
            f"{line()}: it reads {what} itself. Only a node on the kit {KIT}.py, whose `Node.run` does"
            " that, can be simulated; `maelstrom test` takes any."
        )

    with (
        patch.object(sys, "argv", [str(script), *arguments]),
        patch.object(sys, "stdin", _NoStdin(refuse)),
    ):
        try:
            kit = __import__(KIT)
        except ModuleNotFoundError:
            kit = None  # the script says so itself, or reads its stdin
        with patch.object(kit.Node, "run", serve) if kit else ExitStack():
            try:
                run_path(str(script), run_name="__main__")
            except _Served:
                return made[0]
    raise NotSimulated(f"{script}: it ends before it calls `run` of a node of the kit {KIT}.py.")


class StrangersRun(SimulatedRun):
    """A run of the bench with the nodes of `options.bin`."""

    def __init__(
        self,
        options: TestOptions,
        history: Lines | None = None,
        journal: Lines | None = None,
        *,
        keep: bool = False,
    ) -> None:
        super().__init__(options, self._start, keep=keep, history=history, journal=journal)

    def _make_hosts(self, on_line: OnLine, on_failure: OnFailure) -> SimulatedHosts:
        self._on_failure = on_failure
        return super()._make_hosts(on_line, on_failure)

    def execute(self) -> RunResult:
        with self._around():
            return super().execute()

    def _around(self) -> AbstractContextManager[None]:
        """What nodes of this run need around them."""
        raise NotImplementedError

    def _start(self, name: str, start: int) -> NodeSession:
        raise NotImplementedError

    def _random_of(self, name: str, start: int) -> random.Random:
        return random.Random(f"{self.options.seed}/{name}/{start}")


class ScriptedRun(StrangersRun):
    """One whose nodes are a script on the kit, in this process."""

    def _around(self) -> AbstractContextManager[None]:
        self._drawn = Drawn(Path(self.options.bin))
        return self._drawn.in_force()

    def _start(self, name: str, start: int) -> NodeSession:
        node = ScriptedNode(
            name,
            self._random_of(name, start),
            self._drawn,
            lambda why: self._on_failure(RunFailure(why)),
            now=self.loop.now_ns() / NS,
        )
        node.load(Path(self.options.bin), self.options.args)
        return node
