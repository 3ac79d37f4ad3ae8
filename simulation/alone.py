"""Nodes to which nothing bad happens: those that wrote an old log, or one that reads it.

A message between nodes and store arrives when all before it have arrived. A line takes a moment, and nothing
else takes time: it passes only while a request has no answer.
"""

from collections import deque
from collections.abc import Iterable, Sequence

import orjson

from bench.nemesis.faults import STORE
from leaderless.core.strategy import Options
from leaderless.wire.codec import encode
from simulation.nodes import StrategyMaker, new_session
from simulation.oracle import Body, Violation
from simulation.registers import Store

TICK_S = 1e-6  # between any two lines: a node may tell before from after by its clock
EVERY_S = 0.2  # time passes in steps
DELIVERIES_MAX = 10_000


class Alone:
    """Started nodes. `absent`: nodes that belong to the cluster and never start."""

    def __init__(
        self,
        names: Sequence[str],
        strategy: str | StrategyMaker,
        options: Options,
        store: Store,
        absent: Iterable[str] = (),
    ) -> None:
        self._store = store
        self._nodes = {
            name: new_session(strategy, start, options) for start, name in enumerate(names, 1)
        }
        self._flying: deque[bytes] = deque()
        self._answers: dict[int, Body] = {}
        self._now_s = 0.0
        self._asked = 0
        for name in names:
            self._request(name, {"type": "init", "node_id": name, "node_ids": [*names, *absent]})

    def ask(self, node: str, body: Body, rounds: int = 200) -> Body:
        """The answer of a node; empty if there is none after so many rounds, which take time."""
        self._request(node, body)
        self._settle()
        for _ in range(rounds):
            if self._asked in self._answers:
                break
            self._pass_time()
            self._settle()
        return self._answers.get(self._asked, {})

    def _request(self, node: str, body: Body) -> None:
        self._asked += 1
        self._deliver(node, encode("c1", node, {**body, "msg_id": self._asked}).rstrip())

    def _settle(self) -> None:
        for _ in range(DELIVERIES_MAX):
            if not self._flying:
                return
            self._arrive(self._flying.popleft())
        raise Violation(f"Progress: messages still in flight after {DELIVERIES_MAX} deliveries")

    def _arrive(self, line: bytes) -> None:
        message = orjson.loads(line)
        src, dest, body = message["src"], message["dest"], message["body"]
        if dest == STORE:
            reply = self._store.handle(src, body)
            reply["in_reply_to"] = body.get("msg_id")
            self._flying.append(encode(STORE, src, reply).rstrip())
        elif dest in self._nodes:
            self._deliver(dest, line)

    def _deliver(self, node: str, line: bytes) -> None:
        self._now_s += TICK_S
        self._nodes[node].receive(line, self._now_s)
        self._take(node)

    def _take(self, node: str) -> None:
        for line in self._nodes[node].take().splitlines():
            message = orjson.loads(line)
            if message["dest"][0] == "c":
                self._answers[message["body"]["in_reply_to"]] = message["body"]
            else:
                self._flying.append(line)

    def _pass_time(self) -> None:
        """Let time pass for every node, deadline by deadline."""
        end = self._now_s + EVERY_S
        while (deadline := self._deadline) is not None and deadline <= end:
            self._now_s = max(self._now_s, deadline)
            for name, node in self._nodes.items():
                node.pass_time(self._now_s)
                self._take(name)
        self._now_s = end

    @property
    def _deadline(self) -> float | None:
        deadlines = (node.deadline for node in self._nodes.values())
        return min((each for each in deadlines if each is not None), default=None)
