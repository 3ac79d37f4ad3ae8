"""A node whose log is in a real store: stdin and stdout as ever, and store calls beside them.

The core, the session and the loop are the same as on `lin-kv`. A host (`leaderless.hosting.host`) drives the
machine: a store call is a task of its own instead of a message, so a slow call delays no line. What lines and
answers cause in one turn of the event loop leaves in one write.

The node looks at the store first, and then makes its session. Lines wait in the pipe meanwhile, as they did
while the program was imported. The first look at the pipe counts them as old as the process: a client that has
given up must get no answer any more.
"""

from collections.abc import Callable

import anyio.abc

from leaderless.core.machine import Machine
from leaderless.core.messages import Effect
from leaderless.hosting.host import Host
from leaderless.hosting.place import bounds_of, registers_of
from leaderless.runtime.kept_log import Look, look_at
from leaderless.runtime.session import Session
from leaderless.runtime.settings import Settings
from leaderless.runtime.stdio import Clock, serve, write_all
from leaderless.store.port import Store
from leaderless.upkeep.maintenance import Maintenance

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
    clock: Clock = anyio.current_time,
    settings: Settings,
) -> None:
    """Serve until stdin ends or nobody reads stdout any more, and let go of the store.

    When the store cannot hold a log, or holds none that `settings` want, `init` is refused. `alive_s`: how long
    lines may have come already, in seconds. `clock` is that of the event loop.
    """
    since = clock() - alive_s
    try:
        look = await look_at(store, settings)
        async with anyio.create_task_group() as tasks:
            node = _Node(make, store, look, tasks)
            tasks.start_soon(node.write, stdout)
            alive_s = clock() - since
            await serve(node.session, stdin, stdout, alive_s=alive_s, clock=clock, said=node.said)
            tasks.cancel_scope.cancel()
    finally:
        await store.aclose()


class _Node:
    """The tasks of a node beside its loop; `said` wakes the one that writes."""

    def __init__(
        self, make: MakeSession, store: Store, look: Look, tasks: anyio.abc.TaskGroup
    ) -> None:
        self._store = store
        self._look = look
        self._tasks = tasks
        self._woken = anyio.Event()
        self.session: Session = make(look, self._hosted)

    def said(self) -> None:
        """The session may have said something."""
        self._woken.set()

    def _left(self, effects: list[Effect]) -> None:
        self.session.carry_out(effects)
        self.said()

    def _hosted(self, machine: Machine) -> Host:
        """What drives the machine of the session. Runs that are files are merged beside the node's work."""
        bounds = bounds_of(self._store, PATIENCE_S, REQUEST_S, self._look.shape)
        host = Host(machine, registers_of(self._store, bounds), self._left, goes_on=True)
        if bounds.shape.sliced:
            self._tasks.start_soon(Maintenance(self._store, host, bounds).merge_now_and_then)
        self._tasks.start_soon(host.run)
        return host

    async def write(self, stdout: int) -> None:
        """Write what the session says until nobody reads it any more."""
        while await write_all(stdout, self.session.take()):
            await self._woken.wait()
            self._woken = anyio.Event()
        self._tasks.cancel_scope.cancel()
