"""A cluster whose schedule is chosen step by step: by a test, by hypothesis, or by a search of all schedules.

It is made of what a simulated run is made of: the same hosts, network, store, watch and oracle. Only the
network differs in one thing: a message between nodes and the store stays in flight, under a number, until
a step delivers, loses or copies it. Messages of clients arrive at once. Time stands still until a step lets it
pass, but for a microsecond a line.

    cluster = SteppedCluster(["n0", "n1"], "cas")
    cluster.request("c1", "n0", {"type": "send", "key": "k", "msg": 1})
    while events := cluster.enabled():
        cluster.step(events[0])
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Literal, NamedTuple

import orjson

from bench.loop import VirtualLoop
from bench.nemesis.requests import STORE
from bench.net import Network
from bench.services import connect
from leaderless.core.strategy import Options
from runs.writing import Journal
from simulation.convergence import PROBE, Epilogue
from simulation.hosts import NS, NodeSession, SimulatedHost
from simulation.nodes import LINEARIZABLE, StrategyMaker, new_session
from simulation.oracle import Body, Oracle, Violation, require
from simulation.run import DigestFile
from simulation.watch import Watch
from tests.ported import Store

CLIENTS = [f"c{number}" for number in range(10)]
EPILOGUE_CLIENT = "c-epilogue"
TICK_S = 1e-6  # between any two lines: a node may tell before from after by its clock
STEPS_MAX = 10_000
ROUNDS_MAX = 200


class Flying(NamedTuple):
    """A message that was sent; `number` names it, 0 if it never was in flight."""

    number: int
    src: str
    dest: str
    body: Body


class Step(NamedTuple):
    """One thing that may happen, named as the method of `SteppedCluster` that lets it happen.

    `what`: the number of a message in flight, the name of a node, or seconds (None: until the next timer).
    """

    kind: Literal["deliver", "drop", "copy", "pass_time", "start"]
    what: int | str | float | None


class SteppedLoop(VirtualLoop):
    """The loop of a network and of hosts: nothing happens by itself, and time is set by hand.

    What a network would let arrive later is in flight until it is taken. `sent` collects it; `flies` is told.
    """

    def __init__(self, flies: Callable[[Flying], object] = lambda _: None) -> None:
        super().__init__()
        self._flies = flies
        self.now_s = 0.0
        self.flying: dict[int, Flying] = {}
        self.sent: list[Flying] = []
        self._arrivals: dict[int, Callable[[], object]] = {}
        self._numbers = count(1)

    def now_ns(self) -> int:
        return round(self.now_s * NS)

    def call_at(self, _time_ns: int, function: Callable[..., object], *args: Any) -> None:
        """A network lets `function(message)` be called later."""
        (message,) = args
        flying = Flying(next(self._numbers), message.src, message.dest, message.body)
        self._add(flying, partial(function, message))

    def copy(self, number: int) -> None:
        self._add(self.flying[number]._replace(number=next(self._numbers)), self._arrivals[number])

    def take(self, number: int) -> Callable[[], object]:
        """Take a message out of flight; what is returned lets it arrive."""
        del self.flying[number]
        return self._arrivals.pop(number)

    def _add(self, message: Flying, arrive: Callable[[], object]) -> None:
        self.flying[message.number] = message
        self._arrivals[message.number] = arrive
        self.sent.append(message)
        self._flies(message)


@dataclass(eq=False)
class SteppedHost(SimulatedHost):
    """A host that reads each line at once, and whose timers fire only in `pass_time`."""

    loop: SteppedLoop

    @property
    def deadline(self) -> float | None:
        """When `pass_time` is next needed, in seconds, or None."""
        return self._session.deadline if self._session else None

    def deliver(self, message: bytes) -> None:
        if self._session:
            self._session.receive(message, self.loop.now_s)
            self._write(self._session)

    def pass_time(self) -> None:
        """Fire the timers that are due."""
        if self._session:
            self._session.pass_time(self.loop.now_s)
            self._write(self._session)

    def _set_alarm(self, session: NodeSession) -> None:
        """No timer fires by itself."""


class SteppedCluster:
    """Started nodes. Every method returns the messages that it made leave a node or the store.

    `oracle` judges every change of the store and every answer to a client. `store`: one that was filled
    before; its changes are not judged. `absent`: nodes that belong to the cluster and never start. `keep`:
    whether `journal_file` holds the journal of all messages. Raises `Violation` in the step in which an
    invariant breaks.
    """

    def __init__(
        self,
        nodes: Iterable[str],
        strategy: str | StrategyMaker = "cas",
        options: Options = LINEARIZABLE,
        oracle: Oracle | None = None,
        store: Store | None = None,
        *,
        absent: Iterable[str] = (),
        keep: bool = False,
    ) -> None:
        self.names = list(nodes)
        self._absent = list(absent)
        self.to_clients: list[Flying] = []
        self.answers: dict[int, Body] = {}  # by the `msg_id` of the request
        self._strategy, self._options = strategy, options
        self._starts = count(1)
        self._msg_ids = 0
        self._loop = self._new_loop()
        self.watch = Watch(self.names, self._loop.now_ns, self._is_alive, oracle)
        self.store = store or Store(self.watch.changed)
        self.journal_file = DigestFile(keep=keep)
        self._journal = Journal(self.journal_file)
        self.network = Network(self._loop, self._journal, lambda: 1, self.watch.message)
        connect(self.network, {STORE: self.store})
        for client in CLIENTS:
            self.network.add(client, partial(self._client_receives, client))
        for name in self._absent:  # what is sent to it is lost
            self.network.add(name, lambda _src, _body, _line: None)
        self._hosts = {name: self._add_host(name) for name in self.names}
        for name in self.names:
            self.start(name)

    # ------------------------------------------------------------ steps

    def enabled(self) -> list[Step]:
        """What may happen next when nothing goes wrong: each message may arrive, the next timer may fire."""
        due = [] if self._deadline is None else [Step("pass_time", None)]
        return [*(Step("deliver", number) for number in self.flying), *due]

    def step(self, step: Step) -> None:
        getattr(self, step.kind)(step.what)

    @property
    def flying(self) -> dict[int, Flying]:
        return self._loop.flying

    @property
    def now(self) -> float:
        """The time of all nodes, in seconds."""
        return self._loop.now_s

    @property
    def last_msg_id(self) -> int:
        """The `msg_id` of the newest request."""
        return self._msg_ids

    def start(self, node: str) -> list[Flying]:
        """Start a node, or kill it and start it again; what is in flight to it stays so."""
        self._hosts[node].kill()
        self._hosts[node].start()
        names = [*self.names, *self._absent]
        return self.request("c0", node, {"type": "init", "node_id": node, "node_ids": names})

    def ask(self, node: str, body: Body, every_s: float = 0.2) -> Body:
        """The answer to a client's request, everything delivered."""
        self.request("c1", node, body)
        msg_id = self._msg_ids
        self.finish(every_s)
        return self.answers[msg_id]

    def request(self, client: str, node: str, body: Body) -> list[Flying]:
        """A request, which arrives at once; it gets the next `msg_id`, see `last_msg_id`."""
        self._msg_ids += 1
        return self.forge(client, node, {**body, "msg_id": self._msg_ids})

    def forge(self, src: str, node: str, body: Body) -> list[Flying]:
        """A message in anybody's name, which arrives at once; a stranger's answers are lost."""
        if src in CLIENTS:
            return self._after(partial(self.network.send, src, node, body))
        if src not in self.names:
            self.network.add(src, lambda _src, _body, _line: None)
        return self.raw(node, orjson.dumps({"src": src, "dest": node, "body": body}))

    def raw(self, node: str, line: bytes) -> list[Flying]:
        """A line to a node, as it is."""
        return self._after(partial(self._give, self._hosts[node], line))

    def deliver(self, number: int) -> list[Flying]:
        return self._after(self._loop.take(number))

    def copy(self, number: int) -> Flying:
        [copy] = self._after(partial(self._loop.copy, number))
        return copy

    def drop(self, number: int) -> None:
        self._loop.take(number)

    def pass_time(self, seconds: float | None = None) -> list[Flying]:
        """Let time pass for every node, deadline by deadline; None: until the next timer fires."""
        loop = self._loop
        end = self._deadline if seconds is None else loop.now_s + seconds
        assert end is not None, "no timer is set"
        while (deadline := self._deadline) is not None and deadline <= end:
            loop.now_s = max(loop.now_s, deadline)
            for host in self._hosts.values():
                host.pass_time()
            left = self._deadline
            assert left is None or left > loop.now_s, f"passing {loop.now_s} s changed nothing"
        loop.now_s = end
        return self._take_sent()

    # ------------------------------------------------------------ many steps

    def settle(self) -> list[Flying]:
        """Deliver everything, oldest first, until nothing is in flight."""
        sent: list[Flying] = []
        for _ in range(STEPS_MAX):
            if not self.flying:
                return sent
            sent += self.deliver(next(iter(self.flying)))
        raise Violation(f"Progress: messages still in flight after {STEPS_MAX} deliveries")

    def run(self, seconds: float, every_s: float) -> None:
        """Deliver everything, and again after each `every_s`, for so many seconds."""
        for _ in range(round(seconds / every_s)):
            self.settle()
            self.pass_time(every_s)
        self.settle()

    def finish(self, every_s: float = 0.2) -> None:
        """Deliver everything and let time pass until every request is answered whose node still runs."""
        for _ in range(ROUNDS_MAX):
            self.settle()
            if not self.watch.unanswered:
                return
            self.pass_time(every_s)
        require(False, "Progress", f"unanswered: {[*self.watch.unanswered.values()]}")

    def converge(self, keys: Iterable[str], every_s: float = 0.2) -> None:
        """Nothing is lost any more: every node serves, and all of them show the same log.

        Raises `Violation` named `Progress` or `Convergence` otherwise.
        """
        self.finish(every_s)
        epilogue = Epilogue(
            self.network,
            EPILOGUE_CLIENT,
            tuple(self.names),
            self.watch.oracle,
            wait=lambda _what, _waiting: self.finish(every_s),
            rest=lambda seconds: self.run(seconds, every_s),
        )
        epilogue.run([PROBE, *keys])

    # ------------------------------------------------------------ inside

    @property
    def _deadline(self) -> float | None:
        """When the next timer fires, or None."""
        deadlines = (host.deadline for host in self._hosts.values())
        return min((each for each in deadlines if each is not None), default=None)

    def _new_loop(self) -> SteppedLoop:
        return SteppedLoop()

    def _new_host(self, name: str) -> SteppedHost:
        send_line, killed = self.network.send_line, self.watch.killed
        return SteppedHost(name, self._loop, send_line, self._new_node, lambda: 0, on_kill=killed)

    def _add_host(self, name: str) -> SteppedHost:
        host = self._new_host(name)
        self.network.add(name, lambda _src, _body, line: self._give(host, _unnumbered(line)))
        return host

    def _give(self, host: SteppedHost, line: bytes) -> None:
        """A line reaches a node, a moment later than the one before."""
        self._loop.now_s += TICK_S
        host.deliver(line)

    def _is_alive(self, node: str) -> bool:
        return self._hosts[node].alive

    def _new_node(self, _name: str, _start: int) -> NodeSession:
        return new_session(self._strategy, next(self._starts), self._options)

    def _client_receives(self, client: str, node: str, body: Body, _wire: bytes) -> None:
        self.answers[body["in_reply_to"]] = body
        self.to_clients.append(Flying(0, node, client, body))
        self._loop.sent.append(self.to_clients[-1])

    def _after(self, happens: Callable[[], object]) -> list[Flying]:
        happens()
        return self._take_sent()

    def _take_sent(self) -> list[Flying]:
        sent, self._loop.sent = self._loop.sent, []
        return sent


def _unnumbered(line: bytes) -> bytes:
    """A message without the network's number: what a node does must not depend on what others sent."""
    return b"{" + line[line.index(b",") + 1 :]
