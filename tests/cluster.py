"""Nodes, clients and the store around a network that does only what a test tells it.

Every message between nodes and the store is numbered and stays in flight until it is delivered, dropped or
left behind, in any order. Time hardly moves unless it is told to pass. Messages to clients arrive at once.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from leaderless.core.strategy import Options
from leaderless.runtime.session import Session
from tests.fakes import LINEARIZABLE, Body, LinKv, StrategyMaker, new_session

STORE = "lin-kv"
TICK_S = 1e-6  # between any two lines: a node may tell before from after by its clock


class Flying(NamedTuple):
    """A message that was sent; `number` names it, 0 if it never was in flight."""

    number: int
    src: str
    dest: str
    body: Body


class Cluster:
    """Started nodes; every method returns the messages that it made leave a node or the store."""

    def __init__(
        self,
        nodes: Iterable[str],
        strategy: str | StrategyMaker = "cas",
        options: Options = LINEARIZABLE,
    ) -> None:
        self.now = 0.0
        self.store = LinKv()
        self.flying: dict[int, Flying] = {}
        self.to_clients: list[Flying] = []
        self._strategy, self._options = strategy, options
        self.names = list(nodes)
        self._sessions: dict[str, Session] = {}
        self._incarnations = 0
        self._numbers = 0
        self._msg_ids = 0
        for node in self.names:
            self.start(node)

    def start(self, node: str) -> list[Flying]:
        """Start a node, or kill it and start it again; what is in flight to it stays so."""
        self._incarnations += 1
        self._sessions[node] = new_session(self._strategy, self._incarnations, self._options)
        return self.request("c0", node, {"type": "init", "node_id": node, "node_ids": self.names})

    def request(self, client: str, node: str, body: Body) -> list[Flying]:
        """A client's request; it gets the next `msg_id`, see `last_msg_id`."""
        self._msg_ids += 1
        return self._hand_over(client, node, {**body, "msg_id": self._msg_ids})

    @property
    def last_msg_id(self) -> int:
        """The `msg_id` of the newest request."""
        return self._msg_ids

    def raw(self, node: str, line: bytes) -> list[Flying]:
        """A line to a node, as it is."""
        self.now += TICK_S
        self._sessions[node].receive(line, self.now)
        return self._collect(node)

    def arrives_at_once(self, dest: str) -> bool:
        """Whether a message to `dest` is a client's, which is never in flight."""
        return dest != STORE and dest not in self._sessions

    def deliver(self, number: int) -> list[Flying]:
        """Let a message arrive."""
        _, src, dest, body = self.flying.pop(number)
        if dest == STORE:
            return [self._send(STORE, src, self.store.handle(body))]
        return self._hand_over(src, dest, body)

    def copy(self, number: int) -> Flying:
        """Let the network make a second one of a message."""
        _, src, dest, body = self.flying[number]
        return self._send(src, dest, body)

    def drop(self, number: int) -> None:
        """Lose a message."""
        del self.flying[number]

    def pass_time(self, seconds: float) -> list[Flying]:
        """Let time pass for every node, deadline by deadline."""
        end, sent = self.now + seconds, []
        while (deadline := self._deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            for node, session in self._sessions.items():
                session.pass_time(self.now)
                sent += self._collect(node)
            left = self._deadline()
            assert left is None or left > self.now, f"passing {self.now} s changed nothing"
        self.now = end
        return sent

    def settle(self, steps_max: int = 5_000) -> list[Flying]:
        """Deliver everything, oldest first, until nothing is in flight."""
        sent: list[Flying] = []
        for _ in range(steps_max):
            if not self.flying:
                return sent
            sent += self.deliver(next(iter(self.flying)))
        raise AssertionError(f"messages still in flight after {steps_max} deliveries")

    def _deadline(self) -> float | None:
        deadlines = (session.deadline for session in self._sessions.values())
        return min((at for at in deadlines if at is not None), default=None)

    def _hand_over(self, src: str, node: str, body: Body) -> list[Flying]:
        return self.raw(node, orjson.dumps({"src": src, "dest": node, "body": body}))

    def _collect(self, node: str) -> list[Flying]:
        messages = map(orjson.loads, self._sessions[node].take().splitlines())
        return [self._sent(node, message) for message in messages]

    def _sent(self, node: str, message: dict[str, Any]) -> Flying:
        assert message["src"] == node
        return self._send(node, message["dest"], message["body"])

    def _send(self, src: str, dest: str, body: Body) -> Flying:
        if self.arrives_at_once(dest):
            self.to_clients.append(Flying(0, src, dest, body))
            return self.to_clients[-1]
        self._numbers += 1
        self.flying[self._numbers] = Flying(self._numbers, src, dest, body)
        return self.flying[self._numbers]
