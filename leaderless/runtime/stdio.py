"""The node's loop on stdin and stdout, on asyncio or trio.

Wait until there is something to read, take all that is there, handle every whole line of it, write all answers
at once. A task and a thread hop a line, as `anyio.wrap_file` would give, cost more than
the protocol itself (`performance.node_throughput` measures the loop).

A short wait is one system call that passes the event loop by, which nobody else needs in a node. To be put to
sleep and woken by the loop costs more CPU than all else that a message costs, and a node of many is woken for
no more than a message or two. Where other tasks make the calls of a store, the event loop never stands still.
"""

import logging
import os
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import anyio.lowlevel

from leaderless.core.limits import Limits
from leaderless.runtime.session import Session

log: logging.Logger = logging.getLogger("leaderless")

CHUNK_BYTES = 1 << 16  # what a pipe holds; larger buffers leave holes in the memory
TURNS_PER_CHECKPOINT = (
    16  # how long Ctrl-C and other tasks wait when there is always something to read
)
BEAT_S = 0.5  # an idle node wakes up so often, to notice that it was stopped
STANDSTILL_S = 0.5  # a wake-up that is late by more: the process was stopped
SHORT_WAIT_S = 0.01  # how long the event loop stands still at most
Clock = Callable[[], float]  # of an event loop, in seconds
LINE_BYTES_MAX = Limits().line_bytes  # a longer line is no message; it must not fill the memory


class LineSplitter:
    """Cuts chunks into lines; keeps the unfinished rest. Linear, also for lines of many chunks."""

    def __init__(self, line_bytes_max: int = LINE_BYTES_MAX) -> None:
        self._line_bytes_max = line_bytes_max
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without their newlines; one that is too long is left out."""
        may_be_long = self._size + len(chunk) > self._line_bytes_max
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._parts, lines[0]])
            if self._skipping:
                del lines[0]
            self._parts, self._size, self._skipping = [], 0, False
        self._keep(rest)
        return [line for line in lines if self._fits(len(line))] if may_be_long else lines

    def _fits(self, size: int) -> bool:
        """Whether a line of so many bytes is taken; the log tells of one that is not."""
        if size > self._line_bytes_max:
            log.warning("line dropped: longer than %d bytes", self._line_bytes_max)
        return size <= self._line_bytes_max

    def _keep(self, rest: bytes) -> None:
        if rest and not self._skipping:
            self._parts.append(rest)
            self._size += len(rest)
            if not self._fits(self._size):
                self._parts, self._size, self._skipping = [], 0, True


async def serve(
    session: Session,
    stdin: int = 0,
    stdout: int = 1,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    alive_s: float = 0.0,
    clock: Clock = anyio.current_time,
    said: Callable[[], None] | None = None,
) -> None:
    """Serve until stdin ends or nobody reads stdout any more; both are file descriptors.

    `clock` is that of the event loop. `chunk_bytes` is the most that one read takes. `alive_s`: how long lines
    may have come already, in seconds. What lies in the pipe at the first look counts as so old: its client may
    have gone while a program that was started again was imported. `said`: of a node with other tasks. One of
    them writes, and this tells it when the session may have said something; one keeps the session's time.
    """
    splitter = LineSplitter()
    waits = _Waits(stdin, clock, 0.0 if said else SHORT_WAIT_S)
    turns = 1 if said else TURNS_PER_CHECKPOINT
    with non_blocking(stdin), non_blocking(stdout):
        until = before = clock() - alive_s
        may_be_old = True
        for turn in count(1):
            if turn % turns == 0:
                await anyio.lowlevel.checkpoint()
            await waits.until(until, before)
            chunk = read_now(stdin, chunk_bytes)
            if chunk == b"":
                return
            now = clock()
            may_be_old = may_be_old or now - before > BEAT_S + STANDSTILL_S  # it was stopped
            lines = splitter.feed(chunk) if chunk else []
            session.receive_all(lines, now, before if may_be_old else None)
            if said:
                said()
            elif not await write_all(stdout, session.take()):
                return
            before, may_be_old = clock(), False
            # A wait that takes much longer shows that the process stood still: then what is read may be as old
            # as the wait.
            until, deadline = before + BEAT_S, None if said else session.deadline
            if deadline is not None:
                until = min(deadline, until)


def read_now(fd: int, chunk_bytes: int) -> bytes | None:
    """What is there to read, b"" at its end, None when there is nothing yet."""
    try:
        return os.read(fd, chunk_bytes)
    except BlockingIOError:
        return None


class _Waits:
    """Waits until there is something to read from `fd`; the event loop stands still for `short_s` at most."""

    def __init__(self, fd: int, clock: Clock, short_s: float) -> None:
        self._fd = fd
        self._clock = clock
        self._short_s = short_s
        self._poll = select.poll()  # costs a fraction of `select`, but counts milliseconds
        self._poll.register(fd, select.POLLIN)

    async def until(self, deadline: float, now: float) -> None:
        """Return when there is something to read, or at `deadline`."""
        left_s = deadline - now
        if left_s < self._short_s:
            is_readable = any(select.select([self._fd], [], [], max(0.0, left_s)))
        else:
            is_readable = bool(self._poll.poll(self._short_s * 1000))
        if not is_readable and self._clock() < deadline:
            with anyio.CancelScope(deadline=deadline):
                await anyio.wait_readable(self._fd)


async def write_all(fd: int, data: bytes) -> bool:
    """Write to a descriptor that does not block; returns whether anybody reads it."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(fd, left) :]
        except BlockingIOError:
            await anyio.wait_writable(fd)
        except BrokenPipeError:
            log.info("nobody reads this node's stdout any more")
            return False
    return True


@contextmanager
def non_blocking(fd: int) -> Iterator[None]:
    """A full pipe must not stop the loop inside a system call: timers could not be cancelled then."""
    before = os.get_blocking(fd)
    os.set_blocking(fd, False)
    try:
        yield
    finally:
        os.set_blocking(fd, before)


def process_age_s() -> float:
    """How long this process has lived, in seconds; 0 where the system does not say."""
    try:
        with open("/proc/self/stat") as file:  # noqa: PTH123 - pathlib takes part of a start
            fields = file.read().rpartition(")")[2].split()
        started_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # [proc_pid_stat(5)]
    except (OSError, ValueError, IndexError):
        return 0.0
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started_s)
