"""Peers of programs on the network of a run, in place of sockets: `leaderless.peers.lines` is the real one.

The address in a program's name is its host and the crowd within which programs reach each other. A line is a
message to the host. It says from whom and to whom it is: to another life it comes from a connection that has
ended, and is lost. Some questions are never sent, as to a process that has just ended.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from bench.services import Body
from leaderless.core.messages import NotSent, PeerAnswer
from leaderless.peers.lines import Peers
from leaderless.wire.codec import decode, encode

UNSENT = 0.05  # of the questions


class SimulatedPeers(Peers):
    """The peers of the program `writer` on the host `host`.

    `say` sends a message to a host; `start` lets something run as a task.
    """

    def __init__(
        self,
        writer: str,
        *,
        host: str,
        crowd: int,
        random: Random,
        say: Callable[[str, Body], object],
        start: Callable[..., object],
    ) -> None:
        super().__init__(f"{writer}@{host}/{crowd}")
        self._crowd = f"/{crowd}"
        self._random = random
        self._say, self._start = say, start
        self._calls: set[int] = set()

    def __contains__(self, name: object) -> bool:
        return "@" in str(name) and str(name).endswith(self._crowd)

    async def run(self) -> None:
        """Lines come by `heard`."""

    def ask(self, dest: str, call: int, line: bytes) -> None:
        if self._random.random() < UNSENT:
            self._start(self._refuse, call)
            return
        self._calls.add(call)
        self.answer(dest, line)

    def answer(self, dest: str, line: bytes) -> None:
        _, _, body = decode(line)
        self._say(dest.partition("@")[2].partition("/")[0], {**body, "from": self.node, "to": dest})

    async def _refuse(self, call: int) -> None:
        self._take(PeerAnswer(call, NotSent()))

    def heard(self, body: dict[str, Any]) -> None:
        """A message came to the host."""
        if body["to"] == self.node:
            said = {name: body[name] for name in body if name not in ("from", "to")}
            line = encode(body["from"], body["to"], said)
            self.hear(body["from"], line, self._waited if "in_reply_to" in body else None)

    def _waited(self, call: int) -> bool:
        waited = call in self._calls
        self._calls.discard(call)
        return waited
