"""Watches a simulated cluster: every message, and every change of the store, as it happens.

Raises `Violation` in the very step in which a node does what no node may do. What is asked of every node is
here; what a strategy promises is judged by its oracle (`simulation.oracle`).
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import inf
from typing import Any

from leaderless.wire.bodies import ErrorCode
from simulation.oracle import Asked, Body, Oracle, Violation, require

MARGIN_S = 0.5
CLIENT_PATIENCE_S = 5.0  # the real tool cuts off a node that answers a client which is gone
NEARLY_GONE_S = CLIENT_PATIENCE_S - MARGIN_S
MESSAGES_MAX = 3_000_000
NS = 1_000_000_000


@dataclass(eq=False)
class Watch:
    """`message` is the trace of a network, `changed` the listener of a store.

    `line_bytes`: what a node can read, of the store and of a peer.
    `in_time`: whether a late answer is an error, and not only whatever the network makes of it.
    `gone_s`: a node that stood still need not answer who asked so many seconds ago.
    `at_home`: what a node is asked or answers, as the oracle knows it.
    `alive(node)` says whether a node runs; `now_ns` is the loop's clock.
    """

    nodes: Collection[str]
    now_ns: Callable[[], int]
    alive: Callable[[str], bool]
    oracle: Oracle | None
    line_bytes: float = inf
    in_time: bool = True
    gone_s: float = NEARLY_GONE_S
    at_home: Callable[[str, Body], Body] | None = None

    def __post_init__(self) -> None:
        self.message_id = -1  # of the message in whose step everything happens now
        self.unanswered: dict[tuple[str, int], Asked] = {}
        self._excused: dict[tuple[str, int], Asked] = {}
        self.went_on: dict[str, float] = {}  # when a node did, after it had stood still
        self._count = 0

    def killed(self, node: str) -> None:
        """A node lost its memory: what it was asked it may forget."""
        self.unanswered = {
            call: asked for call, asked in self.unanswered.items() if asked.node != node
        }
        if self.oracle:
            self.oracle.killed(node)

    def changed(self, register: str, old: Any, new: Any) -> None:
        """A register that held `old` (None: it was missing) holds `new`."""
        if self.oracle:
            self.oracle.changed(register, old, new, self.now_ns() / NS)

    def reads_old_lines(self, node: str, stopped_ns: int) -> None:
        """A node reads what came since it stopped at `stopped_ns`.

        It cannot tell how old these lines are. It takes them for as old as its stop, now and whenever it stands
        still again before it has answered them.
        """
        stopped_s = stopped_ns / NS
        for call, asked in self.unanswered.items():
            if asked.node == node and asked.at_s >= stopped_s:
                self.unanswered[call] = asked._replace(seems_from_s=stopped_s)
        self.resumed(node)

    def resumed(self, node: str) -> None:
        """A node goes on after it stood still: it need not answer clients that are gone, or nearly so."""
        self.went_on[node] = self.now_ns() / NS
        gone_s = self.went_on[node] - self.gone_s
        for call, asked in [*self.unanswered.items()]:
            if asked.node == node and min(asked.at_s, asked.seems_from_s) <= gone_s:
                self._excused[call] = self.unanswered.pop(call)

    def skipped(self) -> None:
        """Time passed for all nodes, and not for their clients: a node may take these for gone."""
        self._excused |= self.unanswered
        self.unanswered = {}

    def message(self, event: str, src: str, dest: str, body: Body, wire: bytes) -> None:
        if event == "recv":
            self.message_id = int(wire[6 : wire.index(b",", 6)])  # which the network writes first
            if len(wire) > self.line_bytes and dest in self.nodes and src[0] != "c":
                text = f"{len(wire)} bytes, not {self.line_bytes}: {body['type']} from {src}"
                raise Violation(f"LinesReadable: {dest} cannot read a line of {text}")
            if dest in self.nodes and src[0] == "c" and "msg_id" in body and self.alive(dest):
                self._asked(src, dest, body)
            return
        self._count += 1
        if self._count > MESSAGES_MAX:
            raise Violation(f"Progress: {MESSAGES_MAX} messages, and no end")
        if src in self.nodes:
            if body["type"] == "error":
                require(body["code"] != ErrorCode.CRASH, "NeverCrashes", str(body.get("text")))
            if dest[0] == "c" and dest not in self.nodes:
                self._answered(dest, body)
            elif body["type"] == "hand_over_ok" and self.oracle:
                self.oracle.handed_over(body)

    def unheard(self, node: str, client: str) -> None:
        """An answer mutes its node, because its client is gone.

        The request may have waited behind other messages on its way, which the node cannot know. What counts
        here is how long the node had it.
        """
        now_s = self.now_ns() / NS
        calls = [call for call in (*self.unanswered, *self._excused) if call[0] == client]
        require(bool(calls), "NeverMute", f"{node} answers {client}, which asked nothing")
        for call in calls:
            asked = self.unanswered.pop(call, None) or self._excused.pop(call)
            text = f"{node} answers {client}, which is gone, after {now_s - asked.at_s:.3f} s"
            require(now_s - asked.at_s < CLIENT_PATIENCE_S - MARGIN_S / 2, "NeverMute", text)

    def _asked(self, client: str, node: str, body: Body) -> None:
        if self.oracle:
            body = self.at_home(node, body) if self.at_home else body
            self.oracle.asked(body)
        self.unanswered[client, body["msg_id"]] = Asked(node, body, self.now_ns() / NS)

    def _answered(self, client: str, body: Body) -> None:
        call = client, body.get("in_reply_to", -1)
        asked = self.unanswered.pop(call, None) or self._excused.pop(call, None)
        if asked is None:
            raise Violation(f"AnsweredOnce: {client} is told {body}")
        waited_s = self.now_ns() / NS - asked.at_s
        text = f"{asked.node} answers {client} after {waited_s:.3f} s: {body}"
        require(waited_s < CLIENT_PATIENCE_S or not self.in_time, "AnsweredInTime", text)
        if self.oracle:
            body = self.at_home(asked.node, body) if self.at_home else body
            self.oracle.answered(asked, body, self.now_ns() / NS)
