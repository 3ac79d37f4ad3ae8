"""Nodes to which nothing bad happens: those that wrote an old log, or one that reads it.

A message takes no time, and a line that a node reads takes a microsecond. More time passes only while a request
has no answer.
"""

from collections.abc import Iterable, Sequence

from bench.loop import VirtualLoop
from bench.nemesis.requests import STORE
from bench.net import Network
from bench.services import connect
from leaderless.core.strategy import Options
from runs.writing import Journal
from simulation.hosts import NS, NodeSession, SimulatedHost
from simulation.nodes import StrategyMaker, new_session
from simulation.oracle import Body
from simulation.registers import Store
from simulation.run import DigestFile

CLIENT = "c1"
TICK_S = 1e-6  # that a line takes: a node may tell before from after by its clock
MOMENT_NS = 1_000_000  # in which all is delivered that needs no timer
EVERY_NS = 200_000_000  # time passes in steps


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
        self._loop = VirtualLoop()
        self._network = Network(self._loop, Journal(DigestFile()), lambda: 0)
        self._answers: dict[int, Body] = {}
        self._asked = 0
        connect(self._network, {STORE: store})
        self._network.add(
            CLIENT, lambda _node, body, _wire: self._answers.update({body["in_reply_to"]: body})
        )
        for name in absent:  # what is sent to it is lost
            self._network.add(name, lambda _src, _body, _line: None)
        for start, name in enumerate(names, 1):
            self._start(name, new_session(strategy, start, options))
        for name in names:
            self.ask(name, {"type": "init", "node_id": name, "node_ids": [*names, *absent]})

    def _start(self, name: str, node: NodeSession) -> None:
        said = self._network.send_line
        host = SimulatedHost(name, self._loop, said, lambda *_: node, lambda: round(TICK_S * NS))
        self._network.add(name, lambda _src, _body, line: host.deliver(line))
        host.start()

    def ask(self, node: str, body: Body, rounds: int = 200) -> Body:
        """The answer of a node; empty if there is none after so many rounds, which take time."""
        self._asked += 1
        self._network.send(CLIENT, node, {**body, "msg_id": self._asked})
        self._pass(MOMENT_NS)
        for _ in range(rounds):
            if self._asked in self._answers:
                break
            self._pass(EVERY_NS)
        return self._answers.get(self._asked, {})

    def _pass(self, length_ns: int) -> None:
        """Let time pass, and deliver everything."""
        end_ns = self._loop.now_ns() + length_ns
        self._loop.call_at(end_ns, int)  # something to wait for
        self._loop.run_until(lambda: self._loop.now_ns() >= end_ns)
