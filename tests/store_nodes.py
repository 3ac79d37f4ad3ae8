"""A node whose log is in a store, over real pipes, and the client that talks to it."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import orjson

from leaderless.core.machine import Machine
from leaderless.core.shape import Shape
from leaderless.hosting.host import Host
from leaderless.runtime.kept_log import Look, Wanted
from leaderless.runtime.main import session_on
from leaderless.runtime.on_store import MakeSession, serve_on_store
from leaderless.runtime.session import Session
from leaderless.runtime.settings import Settings
from leaderless.store.port import Store
from simulation.nodes import new_session

INIT = {"type": "init", "msg_id": 1, "node_id": "n0", "node_ids": ["n0"]}
Body = dict[str, Any]


def send(msg_id: int, msg: object) -> Body:
    return {"type": "send", "msg_id": msg_id, "key": "k", "msg": msg}


POLL: Body = {"type": "poll", "msg_id": 90, "offsets": {"k": 0}}


class Client:
    """The other ends of a node's pipes."""

    def __init__(self, to_node: int, from_node: int) -> None:
        self._to_node, self._from_node = to_node, from_node
        self._rest = b""

    def tell(self, *bodies: Body) -> None:
        messages = ({"src": "c1", "dest": "n0", "body": body} for body in bodies)
        os.write(self._to_node, b"".join(orjson.dumps(message) + b"\n" for message in messages))

    async def hears(self, count: int) -> list[Body]:
        """The next so many messages, in the order of the requests that they answer."""
        heard: list[Body] = []
        while len(heard) < count:
            await anyio.wait_readable(self._from_node)
            *lines, self._rest = (self._rest + os.read(self._from_node, 1 << 16)).split(b"\n")
            heard += [orjson.loads(line)["body"] for line in lines]
        return sorted(heard, key=lambda body: body["in_reply_to"])

    def close(self) -> None:
        os.close(self._to_node)


def session_of_tests(look: Look, hosted: Callable[[Machine], Host]) -> Session:
    """A session in which a broken invariant raises."""
    return new_session("leaderless", look=look, hosted=hosted)


@asynccontextmanager
async def node_on(
    store: Store, alive_s: float = 0.0, settings: Settings | None = None
) -> AsyncIterator[Client]:
    """A node, and the client that talks to it; the node ends because its stdin does.

    `settings`: of a node as the program makes it; without them a broken invariant raises.
    """
    stdin, to_node = os.pipe()
    from_node, stdout = os.pipe()
    make: MakeSession = session_of_tests
    wanted = Wanted()
    if settings:
        make = partial(session_on, settings)
        wanted = Wanted(settings.strategy, settings.runs, settings.options.shape or Shape())
    async with anyio.create_task_group() as tasks:
        serve = partial(serve_on_store, alive_s=alive_s, wanted=wanted)
        tasks.start_soon(serve, make, store, stdin, stdout)
        client = Client(to_node, from_node)
        yield client
        client.close()
    for fd in (stdin, from_node, stdout):
        os.close(fd)
