"""What the bench asks of the operating system: open files, signals, child processes, a stdout that may fail."""

import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import termios
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO, cast

from bench.failure import RunFailure

_PER_NODE = 2
_SPARE = 64  # history, journal, logs, plots, and what starting a process takes for a moment
_OPEN_FILES = Path("/dev/fd")
_PR_SET_PDEATHSIG = 1
PROC = Path("/proc")
STATE, GROUP, RESIDENT = 0, 2, 21  # of what `stats_of` gives
_ROUNDS = 100  # a process that the kernel cannot end yet may take more


def allow_open_files(nodes: int) -> None:
    """Raise the process's own limit as far as so many nodes need.

    Raises `RunFailure` when the system does not let it.
    """
    import resource  # CPython in WebAssembly has none

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
    # A process may start another before it is killed; a killed one has no environment.
    while found and rounds:
        rounds, found = rounds - 1, False
        for pid in processes():
            with suppress(OSError):  # it has ended, or belongs to somebody else
                if entry.encode() in (PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                    os.kill(pid, signal.SIGKILL)
                    found = True


def processes() -> Iterable[int]:
    """All that the kernel has now, on Linux."""
    there = PROC.iterdir() if sys.platform.startswith("linux") else ()
    return (int(each.name) for each in there if each.name.isdigit())


def stats_of(pids: Iterable[int]) -> Iterator[list[bytes]]:
    """What the kernel tells of each process that is still there, from its state on [proc(5), stat]."""
    for pid in pids:
        with suppress(OSError):
            yield (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()


def activity(group: int) -> tuple[list[list[bytes]], bool]:
    """What `stats_of` gives of a process group, and whether one of it runs; nothing but on Linux.

    It is the same twice if nobody has run meanwhile.
    """
    found = [each for each in stats_of(processes()) if int(each[GROUP]) == group]
    return found, any(each[STATE] in (b"R", b"D") for each in found)


def waiting_bytes(pipe: int) -> int | None:
    """How many bytes wait in a pipe, given either end; None on other systems than Linux."""
    count = array("i", [0])
    try:
        fcntl.ioctl(pipe, termios.FIONREAD, count)
    except OSError:
        return None
    return count[0] if sys.platform.startswith("linux") else None


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
