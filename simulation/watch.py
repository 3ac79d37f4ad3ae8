"""Watches a simulated run: every message, and every change of the store, as it happens.

Raises `Breach` in the very step in which something that no node may do is done. What is asked of every
strategy is here; what the leaderless log promises beyond that is the oracle's (`simulation.oracle`).
"""

from collections.abc import Callable
from typing import Any

from bench.services.requests import canonical_key, respond_kv
from simulation.oracle import Asked, Breach, Oracle, require

CRASH = 13
MESSAGES_MAX = 3_000_000
NS = 1_000_000_000

Body = dict[str, Any]


class Store:
    """`lin-kv` as a `bench.services.consistency.Consistency`, whose changes are told."""

    def __init__(self, changed: Callable[[str, Any, Any], None]) -> None:
        self.cells: dict[Any, tuple[Any]] = {}
        self._changed = changed

    def handle(self, client: str, request: Body) -> Body:  # noqa: ARG002 - all clients see the same
        """The reply to a request, on the newest state."""
        reply, changes = respond_kv(self.cells.get, request)
        if changes:
            old = self.cells.get(canonical_key(request.get("key")))
            self.cells.update(changes)
            for key, (value,) in changes.items():
                self._changed(str(key), old and old[0], value)
        return reply

    def copy(self) -> "Store":
        """A store of its own with the same content, of which nothing is told."""
        copy = Store(lambda _key, _old, _new: None)
        copy.cells = dict(self.cells)
        return copy


class Watch:
    """`message` is a network's trace. `alive(node)` says whether a node runs; `now_ns` is the loop's."""

    def __init__(
        self,
        nodes: tuple[str, ...],
        now_ns: Callable[[], int],
        alive: Callable[[str], bool],
        oracle: Oracle | None,
    ) -> None:
        self.message_id = -1  # of the message in whose step everything happens now
        self.unanswered: dict[tuple[str, int], Asked] = {}
        self.oracle = oracle
        self._nodes = frozenset(nodes)
        self._now_ns = now_ns
        self._alive = alive
        self._count = 0

    def killed(self, node: str) -> None:
        """A node lost its memory: what it was asked it may forget."""
        self.unanswered = {
            call: asked for call, asked in self.unanswered.items() if asked.node != node
        }
        if self.oracle:
            self.oracle.killed(node)

    def message(self, event: str, src: str, dest: str, body: Body, wire: bytes) -> None:
        """A message was sent or received."""
        if event == "recv":
            self.message_id = _id_of(wire)
            if dest in self._nodes and src[0] == "c" and self._alive(dest):
                self._asked(src, dest, body)
            return
        self._count += 1
        if self._count > MESSAGES_MAX:
            require(False, "Progress", f"{MESSAGES_MAX} messages, and no end")
        if src in self._nodes:
            if dest[0] == "c" and dest not in self._nodes:
                self._answered(dest, body)
            elif body["type"] == "hand_over_ok" and self.oracle:
                self.oracle.handed_over(body)

    def _asked(self, client: str, node: str, body: Body) -> None:
        if self.oracle:
            self.oracle.asked(body)
        asked = Asked(node, body, self._now_ns() / NS)
        self.unanswered[client, body["msg_id"]] = asked

    def _answered(self, client: str, body: Body) -> None:
        asked = self.unanswered.pop((client, body.get("in_reply_to", -1)), None)
        if asked is None:
            raise Breach(f"AnsweredOnce: {client} is told {body}")
        if body["type"] == "error":
            require(body["code"] != CRASH, "NeverCrashes", str(body.get("text")))
        if self.oracle:
            self.oracle.answered(asked, body)


def _id_of(wire: bytes) -> int:
    """The number of a message, which the network writes first."""
    return int(wire[6 : wire.index(b",", 6)])
