"""A node as a process: lines over pipes that never block, stderr straight into a file.

The process leads its own process group, which is killed as a whole. When the bench itself is killed, the kernel
kills the process too (Linux), and everywhere it meets the end of its stdin. So do processes that it started, if
they read that stdin. A process that a node started and that does not read stdin can outlive a bench that was
killed by SIGKILL; no other process can. At the end of a run those are killed, too, that have left the group, as
by `setsid`: on Linux a variable in their environment (`MARK`) tells them. Messages of one turn leave in one
write.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import NamedTuple

import orjson

from bench.cluster import OnFailure, OnLine
from bench.failure import RunFailure, clip, indent
from bench.loop import RealLoop
from bench.node_memory import LOOK_NS, UNLIMITED, WHOLE_GROUPS_EVERY, MemoryLimit, resident_bytes
from bench.system import die_with_parent, kill_marked, waiting_bytes
from bench.verdict.last_error import last_error
from bench.verdict.no_start import cannot_start, unfit_first_line, unfit_script
from bench.verdict.silence import Pipes
from runs.files import end_of

_READ_BYTES = 2**18
_PIPE_BYTES = 2**20
_LINE_LIMIT_BYTES = 256 * 2**20
_UNREAD_LIMIT_BYTES = 256 * 2**20
_KEPT_LINES, _KEPT_BYTES = 32, 16384
_SEARCHED_BYTES = 2**18  # at the end of stderr, for an error
_TORN_BYTES, _BEGIN_BYTES = 1000, 200
_NOT_FOUND = 127  # the exit status of env and sh when a program is not there
_EXIT_GRACE_NS = 500_000_000
_LOOKS_AFTER_END = 5  # by then the end of stdout would have been read
_POLL_NS = 10_000_000
_TERM_GRACE_S = 1.0
_EXIT_POLL_S = 0.005
_ECHO_BYTES = 2**20  # of what a node logs in that time
MARK = "MAELSTROM_BENCH_RUN"
FILES = "NODE_FILES"  # names the folder, not made yet, for what the nodes of a run keep over a kill


@dataclass(eq=False, kw_only=True)
class ProcessHost:
    """Runs one node. Calls `on_line` for every line it prints and `on_failure` once if it ends early."""

    name: str
    loop: RealLoop
    command: Sequence[str]
    log: Path
    on_line: OnLine
    on_failure: OnFailure
    environment: Mapping[str, str] = field(default_factory=dict)  # beside the bench's own
    mark: str = ""  # the value of `MARK`
    keeps_log: bool = True  # after the run

    def __post_init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._stdin = self._stdout = -1
        self._last_lines: deque[bytes] = deque(maxlen=_KEPT_LINES)
        self._forget()

    def _forget(self) -> None:
        self._unsent = bytearray()
        self._partial = bytearray()  # a line without its end
        self._unread_bytes = self._looks = 0
        self._awaits_room = self._ended = self._paused = False
        self._last_lines.clear()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process, "the node has not been started"
        return self._process

    @property
    def started(self) -> bool:
        return self._process is not None

    def start(self, mode: str = "wb") -> None:
        """Start the process in the system's temporary folder, as Maelstrom does; `mode`: that of its log."""
        with self.log.open(mode) as log:
            try:
                self._process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd=tempfile.gettempdir(),
                    env={**os.environ, **self.environment, MARK: self.mark},
                    start_new_session=True,
                    preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - the bench has one thread
                    bufsize=0,
                )
            except OSError as error:
                raise cannot_start(self.name, self.command[0], error) from None
        assert self.process.stdin
        assert self.process.stdout
        self._stdin, self._stdout = self.process.stdin.fileno(), self.process.stdout.fileno()
        for pipe in (self._stdin, self._stdout):
            os.set_blocking(pipe, False)
            with contextlib.suppress(OSError, AttributeError):  # larger pipes: fewer wake-ups
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self.loop.watch(self._stdout, self._read, None)

    def deliver(self, message: bytes) -> None:
        """Queue a message; it leaves at the end of this turn of the loop."""
        if self._ended:
            return
        if not self._unsent:
            self.loop.call_soon(self._flush)
        self._unsent += message + b"\n"
        self._unread_bytes += len(message) + 1
        if self._unread_bytes > _UNREAD_LIMIT_BYTES and not self._paused:
            self._fail(
                f"Node {self.name} does not read its stdin: {self._unread_bytes // 2**20} MiB of"
                f" messages wait for it.\n{self.postmortem()}"
            )

    def kill(self) -> None:
        """Send SIGKILL to the whole process group. Messages in the pipes are lost."""
        if self._process is None:
            return
        if self.process.poll() is not None:
            self._await_exit(0)  # it died before, by itself
            return
        self.close()
        self.signal(signal.SIGKILL)
        self.process.wait()
        self._process = None  # its number may be given to another process from now on

    def restart(self) -> None:
        """Start the program again, with the same log."""
        self._forget()
        self.start("ab")

    def pause(self) -> None:
        """SIGSTOP to the whole process group. Its pipe fills up; the rest waits here."""
        self._paused = self._process is not None
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT to the whole process group."""
        if self._paused:
            self._paused = False
            self._unread_bytes = 0  # messages that came while it could not read do not count
            self.signal(signal.SIGCONT)

    def end(self, why: str) -> None:
        """Kill the node, and end the run with this report."""
        report = f"{why}\n{self._last_output()}"
        self.signal(signal.SIGKILL)
        self._fail(report)

    def postmortem(self) -> str:
        """Exit status, the last lines on stdout and stderr, and where the rest is."""
        status = self._process.poll() if self._process else None
        return f"{_describe_status(status, self.command[0])}\n{self._last_output()}"

    def pipes(self) -> Pipes:
        """What lies in its pipes; messages that have not left the bench are unread, too."""
        if not self.started:
            return Pipes()
        waiting = waiting_bytes(self._stdin)
        return Pipes(
            unread_bytes=None if waiting is None else waiting + self._unread_bytes,
            torn=bytes(self._partial[:_TORN_BYTES]),
            torn_bytes=len(self._partial),
            astray=next(filter(self._is_message, reversed(self._stderr_tail().splitlines())), ""),
            error=last_error(self._stderr(_SEARCHED_BYTES)),
        )

    def _is_message(self, line: str) -> bool:
        """Whether this is a message of the node, and none that it has got and logged."""
        try:
            message = orjson.loads(line)
        except ValueError:
            return False
        return isinstance(message, dict) and message.get("src") == self.name

    def _last_output(self) -> str:
        printed = b"\n".join(self._last_lines).decode(errors="replace")
        return (
            f"Its last lines on stdout:\n{_quote(printed)}\n"
            f"Its last lines on stderr:\n{_quote(self._stderr_tail())}"
            + f"\nAll of its stderr is in {self.log}"
            * self.keeps_log
        )

    def close(self) -> None:
        """Stop listening, and give the node the end of its stdin."""
        self._ended = True
        if self._process is None:
            return
        self.loop.watch(self._stdout, None, None)
        self.loop.watch(self._stdin, None, None)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert pipe
                pipe.close()

    def signal(self, number: int) -> None:
        """Signal the node's whole process group, even after the node itself is gone."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def _read(self) -> None:
        try:
            chunk = os.read(self._stdout, _READ_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self.loop.watch(self._stdout, None, None)
            self._await_exit(self.loop.now_ns() + _EXIT_GRACE_NS)
            return
        self._partial += chunk
        if b"\n" not in chunk:
            if len(self._partial) > _LINE_LIMIT_BYTES:
                began = self._partial[:_BEGIN_BYTES].decode(errors="replace")
                self._fail(
                    f"Node {self.name} printed {_LINE_LIMIT_BYTES} bytes on stdout without a newline."
                    f" It began with:\n{_quote(began)}..."
                )
            return
        *lines, rest = bytes(self._partial).split(b"\n")
        self._partial = bytearray(rest)
        self._last_lines.extend(lines[-_KEPT_LINES:])
        for line in lines:
            self.on_line(self.name, line)

    def _flush(self) -> None:
        """Write the queued messages. What does not fit into the pipe waits for room."""
        if self._ended:
            return
        try:
            while self._unsent:
                written = os.write(self._stdin, self._unsent)
                del self._unsent[:written]
                self._unread_bytes -= written
        except BlockingIOError:
            pass
        except OSError:  # the node does not read any more; its exit is reported when stdout ends
            self._unsent.clear()
        if self._awaits_room != bool(self._unsent):
            self._awaits_room = not self._awaits_room
            self.loop.watch(self._stdin, None, self._flush if self._awaits_room else None)

    def _await_exit(self, until_ns: int) -> None:
        """Stdout has ended. Wait a moment for the process to exit, so that the report has its status."""
        if self._ended:
            return
        running = self.process.poll() is None
        if running and self.loop.now_ns() < until_ns:
            self.loop.call_later(_POLL_NS, self._await_exit, until_ns)
            return
        what = "closed its stdout" if running else "ended before the run did"
        self._fail(f"Node {self.name} {what}: {self.postmortem()}")

    def look(self) -> None:
        """End the run if the process ended some looks ago, and one that it left holds its stdout open."""
        has_ended = self._process and self._process.poll() is not None
        self._looks = self._looks + 1 if has_ended and not waiting_bytes(self._stdout) else 0
        if self._looks > _LOOKS_AFTER_END:
            self._fail(
                f"Node {self.name} ended before the run did, and left a process that holds its stdout (a script"
                f" starts a node by `exec`, without `&`): {self.postmortem()}"
            )

    def _fail(self, report: str) -> None:
        if not self._ended:
            self._ended = True
            self.loop.watch(self._stdout, None, None)
            self.on_failure(RunFailure(report))

    def _stderr_tail(self) -> str:
        return "\n".join(self._stderr(_KEPT_BYTES).splitlines()[-_KEPT_LINES:])

    def _stderr(self, size_bytes: int) -> str:
        try:
            return end_of(self.log, size_bytes)
        except OSError as error:
            return f"(cannot be read: {error})"


class Own(NamedTuple):
    """What one node is told beside what all are told: arguments, and environment."""

    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = {}


@dataclass(eq=False)
class ProcessHosts:
    """The nodes of a run. `echo_stderr` copies what nodes log to the bench's stderr (`--log-stderr`).

    A node that breaks the limit of memory is killed, and the run fails. `own` gives the arguments and the
    environment that a node has for itself.
    """

    loop: RealLoop
    nodes: Sequence[str]
    _: KW_ONLY
    command: Sequence[str]
    log_dir: Path
    on_line: OnLine
    on_failure: OnFailure
    echo_stderr: bool = False
    memory: MemoryLimit = UNLIMITED
    own: Callable[[str], Own] = lambda _node: Own()

    def __post_init__(self) -> None:
        self._looks = 0  # at the memory of nodes
        self._mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self._hosts = [self._host(node) for node in self.nodes]
        self._echoed: dict[str, int] = {}

    def _host(self, node: str) -> ProcessHost:
        own = self.own(node)
        return ProcessHost(
            name=node,
            loop=self.loop,
            command=[*self.command, *own.arguments],
            environment={
                FILES: str(self.log_dir.resolve().with_name("node-files")),
                **own.environment,
            },
            mark=self._mark,
            log=self.log_dir / f"{node}.log",
            on_line=self.on_line,
            on_failure=self.on_failure,
        )

    def prepare(self) -> list[ProcessHost]:
        """All of them, none of which is started. From now on they, their memory and logs are looked at."""
        self._look()
        return list(self._hosts)

    def add(self, name: str) -> ProcessHost:
        """One more node, which is not started."""
        host = self._host(name)
        self._hosts.append(host)
        return host

    def _look(self) -> None:
        for host in self._hosts:
            host.look()
        if self.echo_stderr:
            self._copy_logs()
        if self.memory != UNLIMITED:
            self._look_at_memory()
        self.loop.call_later(LOOK_NS, self._look)

    def _look_at_memory(self) -> None:
        """End the node that uses too much memory, if one does."""
        whole_groups = self._looks % WHOLE_GROUPS_EVERY == 0
        self._looks += 1
        if broken := self.memory.broken_by(resident_bytes(self.pids(), whole_groups=whole_groups)):
            node, why = broken
            next(host for host in self._hosts if host.name == node).end(why)

    def pids(self) -> dict[str, int]:
        """The process of each node that was started."""
        return {host.name: host.process.pid for host in self._hosts if host.started}

    def stop(self) -> None:
        """End of stdin and SIGTERM, a second of grace, SIGKILL; to each whole process group."""
        for host in self._hosts:
            host.close()
            host.signal(signal.SIGTERM)
            host.signal(signal.SIGCONT)  # a paused one could not end
        started = [host for host in self._hosts if host.started]
        deadline = time.monotonic() + _TERM_GRACE_S
        while time.monotonic() < deadline and any(h.process.poll() is None for h in started):
            time.sleep(_EXIT_POLL_S)
        for host in started:
            host.signal(signal.SIGKILL)  # also to processes that an exited node left in its group
            host.process.wait()
        kill_marked(f"{MARK}={self._mark}")
        if self.echo_stderr:
            self._copy_logs()

    def _copy_logs(self) -> None:
        for host in (each for each in self._hosts if each.log.exists()):
            with host.log.open("rb") as file:
                at, end = self._echoed.get(host.name, 0), file.seek(0, os.SEEK_END)
                begin = file.seek(max(at, end - _ECHO_BYTES))
                lines = file.read(end - begin).decode(errors="replace").splitlines()
            self._echoed[host.name] = end
            if begin > at:
                lines.insert(0, f"({begin - at} bytes are left out; see {host.log})")
            for line in lines:
                sys.stderr.write(f"{host.name}: {line}\n")


def _describe_status(status: int | None, program: str) -> str:
    if status is None:
        return "it is still running."
    if status < 0:
        return f"killed by {signal.Signals(-status).name}."
    hint = ""
    if status == 0:
        hint = (
            unfit_script(program, "stdin")
            or "A node must live until its stdin ends: read one message after another in a loop."
        )
    elif status == _NOT_FOUND:
        hint = unfit_first_line(program)
    return f"exit status {status}. {hint}".rstrip()


def _quote(text: str) -> str:
    return indent(clip(text, 8000)) if text.strip() else "  (nothing)"
