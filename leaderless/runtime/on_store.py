"""The node's loop when the log is in a real store: stdin and stdout as ever, and store calls beside them.

The core and the session are the same as on `lin-kv`. A host (`leaderless.hosting.host`) drives the machine: a
store call is a task of its own instead of a message, so a slow call delays no line. What lines and answers
cause in one turn of the event loop leaves in one write.

At the start the node looks at the store first, and then makes its session. Lines that come meanwhile wait, and
so do those that lay in the pipe while the program was imported. They keep the time at which they came: a client
that has given up must get no answer any more.
"""

import logging
from collections.abc import Awaitable, Callable

import anyio
import anyio.abc
import anyio.lowlevel

from leaderless.core.machine import Machine
from leaderless.core.messages import Effect
from leaderless.hosting.host import Host
from leaderless.hosting.maintenance import Maintenance
from leaderless.hosting.place import bounds_of, registers_of
from leaderless.runtime.kept_log import Look, Wanted, look_at
from leaderless.runtime.session import Session
from leaderless.runtime.stdio import (
    BEAT_S,
    CHUNK_BYTES,
    STANDSTILL_S,
    LineSplitter,
    non_blocking,
    read_now,
    write_all,
)
from leaderless.store.port import Store
from leaderless.store.registers import Registers

log: logging.Logger = logging.getLogger("leaderless")

REQUEST_S = 5.0  # how long one request of a merge may take
PATIENCE_S = 30.0
# What a look at the store found, and what makes a host for the machine of the session -> the session.
MakeSession = Callable[[Look, Callable[[Machine], Host]], Session]


async def serve_on_store(
    make: MakeSession,
    store: Store,
    stdin: int = 0,
    stdout: int = 1,
    *,
    alive_s: float = 0.0,
    wanted: Wanted | None = None,
) -> None:
    """Serve until stdin ends or nobody reads stdout any more, and let go of the store.

    When the store cannot hold a log, or holds none that is `wanted`, `init` is refused. `alive_s`: how long
    lines may have come already, in seconds.
    """
    since = anyio.current_time() - alive_s
    try:
        with non_blocking(stdin), non_blocking(stdout):
            async with anyio.create_task_group() as tasks:
                node = _Node(store, tasks, since)
                tasks.start_soon(node.prepare, make, wanted or Wanted())
                tasks.start_soon(_until_over, node.write, stdout, tasks)
                await _until_over(node.read, stdin, tasks)
    finally:
        await store.aclose()


async def _until_over(
    run: Callable[[int], Awaitable[None]], fd: int, tasks: anyio.abc.TaskGroup
) -> None:
    await run(fd)
    tasks.cancel_scope.cancel()


class _Node:
    """The tasks of a node. Whatever makes the session say something wakes the one that writes."""

    def __init__(self, store: Store, tasks: anyio.abc.TaskGroup, since: float) -> None:
        self._store = store
        self._tasks = tasks
        self._since = since
        self._session: Session | None = None  # until the store was looked at
        self._early: list[tuple[bytes, float]] = []  # lines that came before
        self._said = anyio.Event()

    async def prepare(self, make: MakeSession, wanted: Wanted) -> None:
        """Look at the store, and then give those lines to the session that came meanwhile."""
        look = await look_at(self._store, wanted)
        self._session = session = make(look, lambda machine: self._hosted(session, look, machine))
        now = anyio.current_time()
        for line, came_at in self._early:
            session.receive(line, now, came_at)
        self._said.set()

    def _hosted(self, session: Session, look: Look, machine: Machine) -> Host:
        """What drives the machine of the session. Runs that are files are merged beside the node's work."""

        def left(effects: list[Effect]) -> None:
            session.carry_out(effects)
            self._said.set()

        if look.shape is None or not look.shape.sliced:
            host = Host(machine, Registers(self._store), left, goes_on=True)
        else:
            bounds = bounds_of(self._store, PATIENCE_S, REQUEST_S, look.shape)
            host = Host(machine, registers_of(self._store, bounds), left, goes_on=True)
            self._tasks.start_soon(Maintenance(self._store, host, bounds).merge_now_and_then)
        self._tasks.start_soon(host.run)
        return host

    async def read(self, stdin: int) -> None:
        """Give lines to the session until stdin ends."""
        splitter = LineSplitter()
        before, may_be_old = self._since, True  # what lies in the pipe at the first look
        while True:
            await anyio.lowlevel.checkpoint()
            chunk = read_now(stdin, CHUNK_BYTES)
            if chunk is None:
                with anyio.move_on_after(BEAT_S):
                    await anyio.wait_readable(stdin)
                chunk = read_now(stdin, CHUNK_BYTES)
            if chunk == b"":
                return
            now = anyio.current_time()
            may_be_old = may_be_old or now - before > BEAT_S + STANDSTILL_S  # it was stopped
            self._take(splitter.feed(chunk or b""), now, before if may_be_old else now)
            before, may_be_old = now, False
            self._said.set()

    def _take(self, lines: list[bytes], now: float, came_at: float) -> None:
        if self._session is None:
            self._early += [(line, came_at) for line in lines]
        else:
            self._session.receive_all(lines, now, came_at)

    async def write(self, stdout: int) -> None:
        """Write what the session says until nobody reads it any more."""
        try:
            while True:
                await self._said.wait()
                self._said = anyio.Event()
                if self._session:
                    await write_all(stdout, self._session.take())
        except BrokenPipeError:
            log.info("nobody reads this node's stdout any more")
