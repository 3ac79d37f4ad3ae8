"""Peers of programs on the network of a run, in place of sockets: `leaderless.peers.lines` is the real one.

The address in a program's name is its host and the crowd within which programs reach each other. A line is a
message to the host. It says from whom and to whom it is: to another life it comes from a connection that has
ended, and is lost. What becomes of a line beside that, `fate` draws.
"""

from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any, Literal

from bench.services import Body
from leaderless.core.messages import NotSent, PeerAnswer
from leaderless.peers.lines import Peers
from leaderless.wire.codec import BadLine, decode, encode

Fate = Literal["", "unsent", "torn", "doubled"]
FATES: tuple[Fate, ...] = ("unsent", "torn", "doubled", "doubled")
TROUBLED = 0.1  # of the lines
BESIDE = ("from", "to")  # fields of a message that are not of its line


def drawn_by(random: Random) -> Callable[[], Fate]:
    """Draws fates: a question is not sent, as to one that has just ended; a line breaks off, or comes twice."""
    return lambda: random.choice(FATES) if random.random() < TROUBLED else ""


class SimulatedPeers(Peers):
    """The peers of the program `writer` on the host `host`.

    `fate`: of the next line; `say` sends a message to a host; `start` lets something run as a task.
    """

    def __init__(
        self,
        writer: str,
        *,
        host: str,
        crowd: int,
        fate: Callable[[], Fate],
        say: Callable[[str, Body], object],
        start: Callable[..., object],
    ) -> None:
        super().__init__(f"{writer}@{host}/{crowd}")
        self._crowd = f"/{crowd}"
        self._fate = fate
        self._tell, self._start = say, start
        self._calls: defaultdict[str, set[int]] = defaultdict(
            set
        )  # of each whom this program asked

    def __contains__(self, name: object) -> bool:
        return "@" in str(name) and str(name).endswith(self._crowd)

    async def run(self) -> None:
        """Lines come by `heard`."""

    def ask(self, dest: str, call: int, line: bytes) -> None:
        self._calls[dest].add(call)
        if (fate := self._fate()) == "unsent":
            self._start(self._end, dest, call, NotSent())
        else:
            self._bring(dest, line, fate)

    def answer(self, dest: str, line: bytes) -> None:
        self._bring(dest, line, self._fate())

    def _bring(self, dest: str, line: bytes, fate: Fate) -> None:
        _, _, body = decode(line)
        if fate == "torn":
            body = {"type": "torn", "line": line[: len(line) // 2].decode(errors="replace")}
        for _ in range(1 + (fate == "doubled")):
            self._say(dest, body)

    def _say(self, dest: str, body: Body) -> None:
        self._tell(
            dest.partition("@")[2].partition("/")[0], {**body, "from": self.node, "to": dest}
        )

    async def _end(self, dest: str, call: int, answer: NotSent | None) -> None:
        if call in self._calls[dest]:
            self._calls[dest].remove(call)
            self.take(PeerAnswer(call, answer))

    def heard(self, body: dict[str, Any]) -> None:
        """A message came to the host."""
        peer, kind = body["from"], body["type"]
        if body["to"] != self.node:
            return
        if kind in ("torn", "closed"):
            if kind == "torn":
                self._hear_half(peer, body["line"].encode())
            self._closed(peer)
            return
        said = {name: body[name] for name in body if name not in BESIDE}
        line = encode(peer, self.node, said)
        self.hear(peer, line, self._calls[peer] if "in_reply_to" in body else None)

    def _hear_half(self, peer: str, line: bytes) -> None:
        """Half a line, behind which the connection ends at both ends."""
        for calls in (None, self._calls[peer]):
            try:
                self.hear(peer, line, calls)
            except BadLine:
                continue
            raise AssertionError(f"half a line passed for one: {line!r}")
        self._say(peer, {"type": "closed"})

    def _closed(self, peer: str) -> None:
        for call in sorted(self._calls[peer]):
            self._start(self._end, peer, call, None)
