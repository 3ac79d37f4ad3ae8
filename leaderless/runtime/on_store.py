"""The node's loop when the log is in a real store: stdin and stdout as ever, and store calls beside them.

The core and the session are the same as on `lin-kv`. A `StoreCall` is a task of its own instead of a message,
so a slow call delays no line. What lines and answers cause in one turn of the event loop leaves in one write.

At the start the node looks at the store first. Lines that come meanwhile wait, and so do those that lay in the
pipe while the program was imported. They keep the time at which they came: a client that has given up must get
no answer any more.
"""

import logging
from collections.abc import Awaitable, Callable
from math import inf

import anyio
import anyio.abc
import anyio.lowlevel

from leaderless.core.messages import StoreAnswer, StoreCall, Unknown
from leaderless.core.shape import Shape
from leaderless.errors import Broken
from leaderless.library.maintenance import Maintenance
from leaderless.library.place import bounds_of, registers_of
from leaderless.runtime.kept_log import LIBRARY_FORM, Wanted, look_at
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

log = logging.getLogger("leaderless")

REQUEST_S = 5.0  # how long one request of a merge may take
PATIENCE_S = 30.0


class Desk:
    """Takes the store calls of a session while it serves; the tasks of `serve_on_store` carry them out.

    `shape`: that of the log, from the moment on when the store was looked at; None for a log without `format`
    (`kept_log`).
    """

    def __init__(self) -> None:
        self._calls: list[StoreCall] = []
        self.shape: Shape | None = None

    def put(self, call: StoreCall) -> None:
        """Take a call."""
        self._calls.append(call)

    def take(self) -> list[StoreCall]:
        """What is to be called now."""
        calls, self._calls = self._calls, []
        return calls


async def serve_on_store(
    session: Session,
    desk: Desk,
    store: Store,
    stdin: int = 0,
    stdout: int = 1,
    *,
    alive_s: float = 0.0,
    wanted: Wanted | None = None,
) -> None:
    """Serve until stdin ends or nobody reads stdout any more, and let go of the store.

    `session` puts its calls on `desk`. When the store cannot hold a log, or holds none that is `wanted`, `init`
    is refused. `alive_s`: how long lines may have come already, in seconds.
    """
    since = anyio.current_time() - alive_s
    try:
        with non_blocking(stdin), non_blocking(stdout):
            async with anyio.create_task_group() as tasks:
                node = _Node(session, desk, Registers(store), tasks, since)
                tasks.start_soon(node.prepare, store, wanted or Wanted())
                tasks.start_soon(node.keep_time)
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
    """The tasks of a node. Each step of the session wakes the one that writes, and the one that keeps time
    if it would sleep too long."""

    def __init__(
        self,
        session: Session,
        desk: Desk,
        registers: Registers,
        tasks: anyio.abc.TaskGroup,
        since: float,
    ) -> None:
        self._session = session
        self._desk = desk
        self._registers = registers
        self._tasks = tasks
        self._since = since
        self._early: list[tuple[bytes, float]] | None = []  # lines, until the store was looked at
        self._stepped, self._hurried = anyio.Event(), anyio.Event()
        self._wakes_at = -inf

    async def prepare(self, store: Store, wanted: Wanted) -> None:
        """Look at the store, and then give those lines to the session that came meanwhile."""
        self._session.unusable, shape = await look_at(store, wanted)
        self._desk.shape = shape
        self._session.form = LIBRARY_FORM if shape else None
        if shape and shape.sliced:
            self._keep_files(store, shape)
        early, self._early = self._early or [], None
        now = anyio.current_time()
        for line, came_at in early:
            self._session.receive(line, now, came_at)
        self._stepping()

    def _keep_files(self, store: Store, shape: Shape) -> None:
        """From now on runs are files, which are merged beside the node's work."""
        bounds = bounds_of(store, PATIENCE_S, REQUEST_S, shape)
        self._registers = registers_of(store, bounds)
        maintenance = Maintenance(store, self._registers, bounds)
        self._tasks.start_soon(maintenance.host.run)
        self._tasks.start_soon(maintenance.merge_now_and_then)

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
            for line in splitter.feed(chunk or b""):
                self._take(line, now, before if may_be_old else now)
            before, may_be_old = now, False
            self._stepping()

    def _take(self, line: bytes, now: float, came_at: float) -> None:
        if self._early is not None:
            self._early.append((line, came_at))
        else:
            self._session.receive(line, now, came_at)

    async def keep_time(self) -> None:
        """Tell the session when its deadlines come."""
        while True:
            self._hurried, self._wakes_at = anyio.Event(), self._deadline
            with anyio.CancelScope(deadline=self._wakes_at):
                await self._hurried.wait()
            if self._deadline <= (now := anyio.current_time()):
                self._session.pass_time(now)
                self._stepping()

    async def write(self, stdout: int) -> None:
        """Write what the session says until nobody reads it any more."""
        try:
            while True:
                stepped = self._stepped
                if data := self._session.take():
                    await write_all(stdout, data)
                else:
                    await stepped.wait()
        except BrokenPipeError:
            log.info("nobody reads this node's stdout any more")

    async def _call(self, call: StoreCall) -> None:
        try:
            outcome = await self._registers.carry_out(call.op)
        except Broken as broken:
            log.error("%s: %s", call.op.key, broken)
            outcome = Unknown(spent=1.0)
        self._session.store_answered(StoreAnswer(call.call, outcome), anyio.current_time())
        self._stepping()

    def _stepping(self) -> None:
        """After each step: make the calls that it asks for, and wake the other tasks."""
        for call in self._desk.take():
            self._tasks.start_soon(self._call, call)
        stepped, self._stepped = self._stepped, anyio.Event()
        stepped.set()
        if self._deadline < self._wakes_at:
            self._wakes_at = self._deadline
            self._hurried.set()

    @property
    def _deadline(self) -> float:
        deadline = self._session.deadline
        return inf if deadline is None else deadline
