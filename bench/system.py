"""What the bench asks of the operating system: open files, child processes, a stdout that may fail, memory.

Memory of nodes is limited, so that one that eats all of it does not take the machine with it. It is the
resident size of a node's process group, the processes that it started included. Given a limit, no node may use
more. Without one, all nodes together may use three quarters of what was free when they started; a share for
each would be too little for some nodes, while others need almost none. Linux only: elsewhere nothing is known
of a node's memory, and nothing is limited.

A limit of the kernel would be sharper, but `RLIMIT_AS` counts addresses, of which a Java or Go node reserves
many more than it uses, and a cgroup needs rights that a bench rarely has. A look costs 25 µs a node, ten times
a second, and once a second a walk over all processes.
"""

import ctypes
import errno
import fcntl
import os
import re
import resource
import signal
import subprocess
import sys
import termios
from array import array
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

from bench.failure import RunFailure
from runs.files import end_of

_PER_NODE = 2
_SPARE = 64  # history, journal, logs, plots, and what starting a process takes for a moment
_OPEN_FILES = Path("/dev/fd")
_PR_SET_PDEATHSIG = 1
_ROUNDS = 100  # a process that the kernel cannot end yet may take more
_BINARIES = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")  # Linux, Windows, macOS
_SCRIPT_BYTES = 4096
_SCRIPTS = {  # what a script of the shell may do to a pipe of the node -> why that is wrong
    "stdin": {
        r"^[^#]*[^&#]&\s*(#.*)?$": "starts a program in the background (&) without stdin: leave & out.",
        r"^[^#]*<<": "feeds a program with its own text (<<) in place of messages: put that into a file.",
    },
    "stdout": {
        r"^[^#]*\b(npm|yarn|pnpm)\b": "starts npm, which prints lines of its own: start the program"
        " itself, or give npm --silent.",
        r"^[^#]*(2>&1|&>)": "sends stderr to stdout (2>&1), where messages alone belong: leave it out.",
    },
}
_SHEBANG = "#!/usr/bin/env python3"


def allow_open_files(nodes: int) -> None:
    """Raise the process's own limit as far as so many nodes need.

    Raises `RunFailure` when the system does not let it.
    """
    already = sum(1 for _ in _OPEN_FILES.iterdir()) if _OPEN_FILES.exists() else 0
    needed = already + _PER_NODE * nodes + _SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise RunFailure(
            f"{nodes} nodes need {needed} open files, and only {hard} are allowed."
            f" Raise the limit (ulimit -n {needed}), or ask for fewer nodes."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def die_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """A function for a child to run between fork and exec: the kernel then signals it when its parent ends.

    It holds for the child only, not for the child's children, and for a program that execs another.
    None on other systems, where a child notices only the end of its stdin.
    """
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)  # loaded in the parent: after a fork only simple calls are safe
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, number)


def end(process: "subprocess.Popen[bytes]", *numbers: int, grace_s: float) -> int:
    """Signal the process group that a child leads until the child has ended; return its exit status.

    Each signal has so many seconds to work.
    """
    for number in numbers:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
            break
    return process.wait()


def kill_marked(entry: str) -> None:
    """SIGKILL every process that has this entry in its environment, until there is none. Linux only."""
    rounds, found = _ROUNDS, True
    while (
        found and rounds
    ):  # a process may start another before it is killed; a killed one has no environment
        rounds, found = rounds - 1, False
        for pid in _processes():
            with suppress(OSError):  # it has ended, or belongs to somebody else
                if entry.encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                    os.kill(pid, signal.SIGKILL)
                    found = True


def waiting_bytes(pipe: int) -> int | None:
    """How many bytes wait in a pipe, given either end; None on other systems than Linux."""
    count = array("i", [0])
    try:
        fcntl.ioctl(pipe, termios.FIONREAD, count)
    except OSError:
        return None
    return count[0] if sys.platform.startswith("linux") else None


def cannot_start(node: str, program: str, error: OSError) -> RunFailure:
    """The report for an error of starting `program`."""
    wrong = unfit_first_line(program) if error.errno in (errno.ENOEXEC, errno.ENOENT) else ""
    hint = wrong or _hint(program, error)
    return RunFailure(f"Node {node} cannot be started: {program}: {error.strerror}. {hint}")


def _hint(program: str, error: OSError) -> str:
    interpreter = _interpreter(program)
    missing = interpreter and not os.access(interpreter, os.X_OK)
    match error.errno:
        case errno.ENOEXEC:
            return f"A script needs a first line such as {_SHEBANG}."
        case errno.ENOENT if missing and Path(program).exists():
            return f"Its first line asks for {interpreter}, which is not there: try {_SHEBANG}."
        case errno.EACCES if not os.access(program, os.X_OK):
            return f"Make it executable: chmod +x {program}"
        case errno.EACCES if missing:
            return f"Its first line asks for {interpreter}, which is no program: try {_SHEBANG}."
        case errno.EACCES:
            return "Is it on a file system that is mounted noexec? Then copy it elsewhere."
        case errno.EMFILE | errno.ENFILE:
            return "Raise the limit of open files (ulimit -n 65536), or ask for fewer nodes."
        case errno.EAGAIN | errno.ENOMEM:
            return "The system has no room for another process: see ulimit -u, and free memory."
    return "Check the path given with --bin."


def unfit_first_line(program: str) -> str:
    """What is wrong with the first line of a program, and what to do; empty where nothing is known to be."""
    line = _first_line(program)
    if line.startswith(_BINARIES):
        return "It is a program for another kind of machine: build it for this one."
    if line.startswith(BOM_UTF8):
        return "It begins with a byte order mark: save it as UTF-8 without one."
    if line.startswith(b"#!") and line.endswith(b"\r\n"):
        return f"Its lines end as on Windows (\\r\\n). Let them end with \\n: sed -i 's/\\r$//' {program}"
    return ""


def unfit_script(program: str, pipe: str) -> str:
    """What a script of the shell does to this pipe of its node, and what to do; empty if nothing wrong."""
    if not re.match(rb"#!.*sh\b", _first_line(program)):
        return ""
    text = "\n".join(end_of(Path(program), _SCRIPT_BYTES).splitlines())
    for form, why in _SCRIPTS[pipe].items():
        if re.search(form, text, re.MULTILINE):
            return f"{program} {why}"
    return ""


def _interpreter(program: str) -> str | None:
    """What the first line of a script asks for."""
    line = _first_line(program).decode(errors="replace")
    words = line.removeprefix("#!").split() if line.startswith("#!") else []
    return words[0] if words else None


def _first_line(program: str) -> bytes:
    try:
        with Path(program).open("rb") as file:
            return file.readline(256)
    except OSError:
        return b""


@contextmanager
def lenient_stdout() -> Iterator[None]:
    """For as long as this lasts, nothing breaks because stdout does."""
    lenient = _Lenient(sys.stdout)
    try:
        with redirect_stdout(cast(TextIO, lenient)):
            yield
    finally:
        lenient.flush()


@contextmanager
def handled(number: signal.Signals, handler: Any) -> Iterator[None]:
    """Let `handler`, as `signal.signal` takes it, handle a signal inside."""
    old = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, old)


def sigterm_as_interrupt() -> AbstractContextManager[None]:
    """SIGTERM raises `KeyboardInterrupt` inside, as Ctrl-C does."""
    return handled(signal.SIGTERM, signal.default_int_handler)


class _Lenient:
    """Passes everything on to a file. When it cannot be written (`| head`, a full disk), it leads to
    nowhere from then on.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write text, or lose it."""
        try:
            return self._file.write(text)
        except OSError:
            self._lead_nowhere()
            return len(text)

    def flush(self) -> None:
        """Write what is buffered, or lose it."""
        try:
            self._file.flush()
        except OSError:
            self._lead_nowhere()

    def _lead_nowhere(self) -> None:
        # Redirect the descriptor itself, so that buffered text is lost too, even when Python ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._file.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


# ---------------------------------------------------------------- memory


MIB = 2**20
LOOK_NS = 100_000_000
WHOLE_GROUPS_EVERY = 10  # looks; those between see only the process that the bench started
_SHARE = 0.75
_PROC = Path("/proc")
_CGROUP = Path("/sys/fs/cgroup")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_GROUP, _RESIDENT = 2, 21  # fields of /proc/PID/stat after the name [proc(5)]


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """Of one node (`each_bytes`), or of all of them together."""

    each_bytes: int | None = None
    together_bytes: int | None = None

    def broken_by(self, used_bytes: Mapping[str, int]) -> tuple[str, str] | None:
        """The node to end, and a sentence that says why; None while all is well."""
        if not used_bytes:
            return None
        node, most = max(used_bytes.items(), key=lambda each: each[1])
        together = sum(used_bytes.values())
        if self.each_bytes is not None and most > self.each_bytes:
            limit = f"A node may use {self.each_bytes // MIB} MiB (--node-memory-max)."
        elif self.together_bytes is not None and together > self.together_bytes:
            limit = (
                f"All nodes together used {together // MIB} MiB, and they may use"
                f" {self.together_bytes // MIB} MiB, three quarters of what was free. To give each"
                " node a limit of its own, use --node-memory-max."
            )
        else:
            return None
        return node, f"Node {node} used {most // MIB} MiB of memory and was killed. {limit}"


UNLIMITED = MemoryLimit()


def limit_of(each_mib: int | None) -> MemoryLimit:
    """The limit that was asked for, or that of this machine."""
    if each_mib is not None:
        return MemoryLimit(each_bytes=each_mib * MIB)
    free = free_bytes()
    return MemoryLimit(together_bytes=None if free is None else int(free * _SHARE))


def free_bytes() -> int | None:
    """Memory that can be used without swapping, by this machine or by this container; None if unknown."""
    known = [_available(), _left_in_cgroup()]
    return min((each for each in known if each is not None), default=None)


def _available() -> int | None:
    try:
        lines = (_PROC / "meminfo").read_text().splitlines()
    except OSError:
        return None
    sizes = dict(line.split(":", 1) for line in lines)
    return int(sizes["MemAvailable"].split()[0]) * 1024 if "MemAvailable" in sizes else None


def _left_in_cgroup() -> int | None:
    try:
        allowed, used = ((_CGROUP / f"memory.{name}").read_text() for name in ("max", "current"))
    except OSError:
        return None
    return None if allowed.strip() == "max" else int(allowed) - int(used)


def resident_bytes(pids: Mapping[str, int], *, whole_groups: bool) -> dict[str, int]:
    """The memory of nodes, each given by the process that leads its group; empty on other systems."""
    if not sys.platform.startswith("linux"):
        return {}
    names = {group: name for name, group in pids.items()}
    used = dict.fromkeys(pids, 0)
    for group, size in _sizes(_processes() if whole_groups else pids.values()):
        if group in names:
            used[names[group]] += size
    return used


def _processes() -> Iterable[int]:
    there = _PROC.iterdir() if sys.platform.startswith("linux") else ()
    return (int(each.name) for each in there if each.name.isdigit())


def _sizes(pids: Iterable[int]) -> Iterable[tuple[int, int]]:
    """The process group and the resident size of each process that is still there."""
    for pid in pids:
        try:
            fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        yield int(fields[_GROUP]), int(fields[_RESIDENT]) * _PAGE_BYTES
