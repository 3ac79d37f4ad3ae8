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

from leaderless.core.messages import StoreAnswer, StoreCall
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
from leaderless.store.names import FORMAT
from leaderless.store.port import OutcomeUnknown, Refused, Store
from leaderless.store.probe import PROBES, probe
from leaderless.store.registers import Registers

log = logging.getLogger("leaderless")

REACH_S = (
    6.0  # how long a store may be silent at the start; a bench waits 10 s for an answer to `init`
)
REACH_PAUSE_S = 0.2  # between two tries
_FIRST_KEYS = 100


class Desk:
    """Takes the store calls of a session while it serves; the tasks of `serve_on_store` carry them out."""

    def __init__(self) -> None:
        self._calls: list[StoreCall] = []

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
) -> None:
    """Serve until stdin ends or nobody reads stdout any more, and let go of the store.

    `session` puts its calls on `desk`. When the store cannot hold a log, `init` is refused. `alive_s`: how long
    lines may have come already, in seconds.
    """
    since = anyio.current_time() - alive_s
    try:
        with non_blocking(stdin), non_blocking(stdout):
            async with anyio.create_task_group() as tasks:
                node = _Node(session, desk, Registers(store), tasks, since)
                tasks.start_soon(node.prepare, store)
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

    async def prepare(self, store: Store) -> None:
        """Look at the store, and then give those lines to the session that came meanwhile."""
        self._session.unusable = await _trouble(store)
        early, self._early = self._early or [], None
        now = anyio.current_time()
        for line, came_at in early:
            self._session.receive(line, now, came_at)
        self._stepping()

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
        outcome = await self._registers.carry_out(call.op)
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


async def _trouble(store: Store) -> str:
    """Why `store` cannot hold the log of a node; "" when it can. One line in the log says the same."""
    until = anyio.current_time() + REACH_S
    while True:
        try:
            await _examine(store)
        except Refused as refused:
            return _told(f"the store cannot be used: {refused}")
        except OutcomeUnknown as unknown:
            if anyio.current_time() >= until:
                return _told(f"the store did not answer within {REACH_S:g} s: {unknown}")
            await anyio.sleep(REACH_PAUSE_S)
        else:
            return ""


def _told(text: str) -> str:
    log.error("%s", text)
    return text


async def _examine(store: Store) -> None:
    """Look whether there is a log, and if not, whether there can be one."""
    if await store.read(FORMAT) is not None:
        raise Refused(
            f"{store.url} holds a log of the library (`leaderless init`), whose values are written "
            "in another way; give the node a prefix of its own"
        )
    listed = await store.list_objects(limit=_FIRST_KEYS)
    if any(not each.key.startswith(f"{PROBES}/") for each in listed):
        log.warning(
            "the log at %s is not empty, and goes on. Right for a node that was started again; "
            "a new test needs a prefix of its own",
            store.url,
        )
    else:
        await probe(store)
