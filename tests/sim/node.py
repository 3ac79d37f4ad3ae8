"""One simulated node: a session on the virtual clock, which can be killed and started again."""

from collections.abc import Callable
from math import ceil
from typing import Any

import orjson

from bench.loop import Loop
from leaderless.core.strategy import Options
from leaderless.runtime.session import Session
from tests.fakes import StrategyMaker, new_session
from tests.sim.weather import NS

Message = dict[str, Any]


class Node:
    """`sent(node, message)` is called with each message that the node sends."""

    def __init__(
        self,
        name: str,
        names: list[str],
        loop: Loop,
        *,
        options: Options,
        make: StrategyMaker,
        sent: Callable[["Node", Message], None],
    ) -> None:
        self.name = name
        self._names, self._loop, self._options = names, loop, options
        self._make, self._sent = make, sent
        self._starts = 0
        self._session: Session | None = None
        self._alarm_ns: int | None = None

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._session is not None

    def start(self) -> None:
        """Begin with an empty memory, and a writer's name that was never used."""
        self._starts += 1
        self._alarm_ns = None
        self._session = new_session(self._make, self._starts, self._options)
        names = {"node_id": self.name, "node_ids": self._names}
        self.receive("init", {"type": "init", "msg_id": 0, **names})

    def kill(self) -> None:
        """Lose everything."""
        self._session = None

    def receive(self, src: str, body: Message) -> None:
        """Take a message, unless dead."""
        if self._session:
            line = orjson.dumps({"src": src, "dest": self.name, "body": body})
            self._session.receive(line, self._loop.now_ns() / NS)
            self._after_step(self._session)

    def _after_step(self, session: Session) -> None:
        for line in session.take().splitlines():
            self._sent(self, orjson.loads(line))
        if session.deadline is None:
            return
        at_ns = max(ceil(session.deadline * NS), self._loop.now_ns() + 1)
        if self._alarm_ns is None or at_ns < self._alarm_ns:
            self._alarm_ns = at_ns
            self._loop.call_at(at_ns, self._ring, session, at_ns)

    def _ring(self, session: Session, at_ns: int) -> None:
        if session is self._session and at_ns == self._alarm_ns:
            self._alarm_ns = None
            session.pass_time(self._loop.now_ns() / NS)
            self._after_step(session)
