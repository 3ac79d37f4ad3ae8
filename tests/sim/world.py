"""Nodes, a store, clients and faults on one virtual clock, all from one seed.

A run has four parts: faults while clients work; healing; recovery, at whose end everything must have been
answered; and final reads, through every node, of everything that is in the log. Raises `Breach` as soon as an
invariant does not hold. The clients are the bench's, so the history is judged by the bench's checker too.
"""

import io
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

import orjson

import workloads.kafka.checker
from bench.generator import FinalPhase, MainPhase, Phase
from bench.history import Op
from bench.loop import VirtualLoop
from bench.recorder import Recorder
from bench.worker import ClientIds, Worker
from bench.workload import Setting
from leaderless.core.headlog import compaction, head
from leaderless.core.headlog.producer import COMMITS_IDLE_S
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.core.strategy import Options
from simulation.oracle import HEAD, Asked, Body, Oracle, require
from tests.fakes import LinKv, StrategyMaker, new_session
from tests.sim.node import Message, Node
from tests.sim.scenario import Scenario
from tests.sim.weather import NS, Weather

STORE = "lin-kv"
PRECONDITION_FAILED = 22
OPERATOR = "operator"  # fences, and asks every node at the end
RECOVERY_S = 15.0
UNFENCE_S = 5.0  # after healing, when no delayed message is left that could fence again


class Report(NamedTuple):
    """What a run leaves: its history, as the bench records it, and how often what happened."""

    history: list[Op]
    counts: Counter[str]

    def anomalies(self) -> list[str]:
        """What the bench's kafka checker holds against the history; one without operations is fine."""
        found = workloads.kafka.checker.check(self.history, {})["bad-error-types"]
        return [name for name in found if name != "empty-transaction-graph"]


def run(scenario: Scenario, make: StrategyMaker = LeaderlessLog) -> Report:
    """Run a world to its end. Raises `Breach` where an invariant breaks."""
    with small_limits(scenario):
        return World(scenario, make).run()


@contextmanager
def small_limits(scenario: Scenario) -> Iterator[None]:
    """The log's limits as small as the scenario wants them; a limit that lost its name is an error."""
    with ExitStack() as patches:
        for module, name, value in (
            (head, "SEAL_ENTRIES", scenario.seal_entries),
            (compaction, "SEGMENTS_PER_RUN", scenario.segments_per_run),
        ):
            patches.enter_context(patch.object(module, name, value))
        yield


class World:
    """See the module's text. `add`, `remove` and `send` are the network as clients see it."""

    def __init__(self, scenario: Scenario, make: StrategyMaker) -> None:
        self.scenario = scenario
        self._make = make
        self.loop = VirtualLoop()
        self.counts: Counter[str] = Counter()
        self.oracle = Oracle(scenario.freshness_s)
        self._store = LinKv()
        self._weather = Weather(scenario)
        self._random = Random(f"nemesis {scenario.seed}")
        self._asked: dict[tuple[str, int], Asked] = {}
        self._clients: dict[str, Any] = {OPERATOR: self._told}
        self._msg_ids = 0
        self._phase: Phase | None = None
        self._healed = False
        names = [f"n{number}" for number in range(scenario.nodes)]
        options = Options(scenario.freshness_s, scenario.combine)
        self._nodes = {
            name: Node(name, names, self.loop, options=options, make=make, sent=self._sent)
            for name in names
        }
        self._recorder = Recorder(self.loop, io.BytesIO())
        self._workload = workloads.kafka.build(self._setting())
        self._workers = self._make_workers()

    def run(self) -> Report:
        """Run to the end."""
        for node in self._nodes.values():
            node.start()
        self._plan_act()
        generator, random = self._workload.generator, Random(f"pace {self.scenario.seed}")
        self._work_through(
            MainPhase(
                self.loop,
                self._recorder,
                self._workers,
                generator,
                rate=self.scenario.rate,
                limit_s=self.scenario.fault_s,
                random=random,
            )
        )
        self._recover()
        final = self._workload.final_generator
        assert final
        self._work_through(FinalPhase(self.loop, self._recorder, self._workers, final, limit_s=10))
        self._read_everything()
        return Report(self._recorder.ops, self.counts)

    # ------------------------------------------------------------ phases

    def _setting(self) -> Setting:
        concurrency = self.scenario.nodes * self.scenario.clients_per_node
        limits = {"key_count": 4, "max_writes_per_key": 128}
        seed = self.scenario.seed
        return Setting([*self._nodes], concurrency, limits, lambda name: Random(f"{name} {seed}"))

    def _make_workers(self) -> list[Worker]:
        names = [*self._nodes]
        concurrency = self.scenario.nodes * self.scenario.clients_per_node
        ids = ClientIds()
        return [
            Worker(
                number,
                names[number % len(names)],
                concurrency=concurrency,
                workload=self._workload,
                loop=self.loop,
                network=self,  # type: ignore[arg-type]  # what a worker needs of a network
                recorder=self._recorder,
                client_ids=ids,
                on_complete=self._completed,
                on_failure=_fail,
            )
            for number in range(concurrency)
        ]

    def _completed(self, worker: Worker, op: Op) -> None:
        assert self._phase
        self._phase.completed(worker, op)

    def _work_through(self, phase: Phase) -> None:
        self._phase = phase
        self.loop.run_until(lambda: phase.done)

    def _pass(self, seconds: float) -> None:
        end_ns = self.loop.now_ns() + int(seconds * NS)
        self.loop.call_at(end_ns, int)  # something to wait for
        self.loop.run_until(lambda: self.loop.now_ns() >= end_ns)

    def _recover(self) -> None:
        """Heal, open the log, and see that every node still serves."""
        self._healed = True
        self._weather.clear()
        for node in self._nodes.values():
            if not node.alive:
                node.start()
        self._pass(UNFENCE_S)
        self._ask_as_operator(self._nodes["n0"], {"type": "unfence"})
        self._pass(UNFENCE_S)
        for name, node in self._nodes.items():
            self._ask_as_operator(node, {"type": "send", "key": "probe", "msg": name})
        self._pass(RECOVERY_S)
        require(not self._asked, "Progress", f"unanswered: {[*self._asked.values()][:3]}")

    def _read_everything(self) -> None:
        """Views converge: the oracle finds whatever a poll leaves out, once nothing is new."""
        self._pass(
            2 * COMMITS_IDLE_S
        )  # committed offsets that waited for a batch are in the log now
        keys = dict.fromkeys(self.oracle.messages, 0)
        require("probe" in keys, "Progress", "the probes are not in the log")
        for node in self._nodes.values():
            self._ask_as_operator(node, {"type": "poll", "offsets": keys})
            self._ask_as_operator(node, {"type": "list_committed_offsets", "keys": [*keys]})
        self._pass(1.0)
        require(not self._asked, "Progress", f"unanswered: {[*self._asked.values()][:3]}")

    # ------------------------------------------------------------ the operator

    def _ask_as_operator(self, node: Node, body: Body) -> None:
        self._msg_ids += 1
        self.send(OPERATOR, node.name, {**body, "msg_id": self._msg_ids})

    def _told(self, _src: str, body: Body, _wire: bytes) -> None:
        if body["type"] == "list_committed_offsets_ok":
            self.oracle.listed_at_last(body["offsets"])

    # ------------------------------------------------------------ faults

    def _plan_act(self) -> None:
        if self.scenario.acts:
            gap_s = self._random.expovariate(1 / self.scenario.interval_s)
            self._later(gap_s, self._act)

    def _later(self, seconds: float, function: Any, *args: Any) -> None:
        self.loop.call_at(self.loop.now_ns() + int(seconds * NS), function, *args)

    def _act(self) -> None:
        if self._healed:
            return
        act = self._random.choice(self.scenario.acts)
        self.counts[act] += 1
        node = self._random.choice([*self._nodes.values()])
        until_s = self._random.random() * 2
        match act:
            case "kill":
                self._kill(node)
                self._later(until_s, self._restart, node)
            case "partition":
                size = self._random.randint(0, len(self._nodes) - 1)
                self._weather.part(self._random.sample([*self._nodes], size))
            case "fence":
                self._ask_as_operator(node, {"type": "fence"})
                self._later(until_s, self._ask_as_operator, node, {"type": "unfence"})
        self._plan_act()

    def _kill(self, node: Node) -> None:
        node.kill()
        self.oracle.killed(node.name)
        self._asked = {
            call: asked for call, asked in self._asked.items() if asked.node != node.name
        }

    def _restart(self, node: Node) -> None:
        if not node.alive:
            node.start()

    # ------------------------------------------------------------ the network

    def add(self, client: str, deliver: Any) -> None:
        """A client begins to listen."""
        self._clients[client] = deliver

    def remove(self, client: str) -> None:
        """A client is gone."""
        del self._clients[client]

    def send(self, client: str, dest: str, body: Body) -> None:
        """A client's request: it arrives at once, unless the node is dead."""
        if self._nodes[dest].alive:
            self.oracle.asked(body)
            self._asked[client, body["msg_id"]] = Asked(dest, body, self.loop.now_ns() / NS)
            self._soon(self._nodes[dest].receive, client, body)

    def _soon(self, function: Any, *args: Any) -> None:
        self.loop.call_at(self.loop.now_ns() + 1, function, *args)

    def _fly(self, function: Any, *args: Any) -> None:
        """Let a message arrive, as often and as late as the weather wants."""
        for delay_ns in self._weather.delays_ns():
            self.loop.call_at(self.loop.now_ns() + delay_ns, function, *args)

    def _sent(self, node: Node, message: Message) -> None:
        dest, body = message["dest"], message["body"]
        self.counts[body["type"]] += 1
        if dest == STORE:
            self._fly(self._arrive_at_store, node, body)
        elif dest in self._nodes:
            if body["type"] == "hand_over_ok":
                self.oracle.handed_over(body)
            self._fly(self._arrive, node.name, dest, body)
        elif body["type"] != "init_ok":
            self._reply(dest, body)

    def _reply(self, client: str, body: Body) -> None:
        asked = self._asked.pop((client, body["in_reply_to"]), None)
        require(asked is not None, "AnsweredOnce", f"{client}: {body}")
        self.oracle.answered(asked, body)
        self._soon(self._deliver, client, body)

    def _deliver(self, client: str, body: Body) -> None:
        if client in self._clients:
            self._clients[client](STORE, body, b"")

    def _arrive(self, src: str, dest: str, body: Body) -> None:
        if not self._weather.parts(src, dest):
            self._nodes[dest].receive(src, body)

    def _arrive_at_store(self, node: Node, body: Body) -> None:
        """The store takes an operation, shows the oracle what it changed, and answers."""
        old = self._store.registers.get(body["key"])
        reply = self._store.handle(body)
        if reply.get("code") == PRECONDITION_FAILED:
            self.counts["conflict"] += 1
        new = self._store.registers.get(body["key"])
        if new is not old:
            now_s = self.loop.now_ns() / NS
            self.oracle.changed(body["key"], old, new, now_s)
            if body["key"] != HEAD:
                self._read_afresh(now_s)
        self._fly(node.receive, STORE, reply)

    def _read_afresh(self, now_s: float) -> None:
        """At this very moment a node that knows nothing can read everything."""
        polled: Body = {"type": "poll", "offsets": dict.fromkeys(self.oracle.messages, 0)}
        reply = read_alone(self._make, self._store, {**polled, "msg_id": 1})
        require(reply is not None, "CommittedReadable", "a fresh node gets no answer")
        self.oracle.answered(Asked("fresh", polled, now_s), reply)


def read_alone(make: StrategyMaker, store: LinKv, body: Body) -> Body | None:
    """What a fresh node answers that is alone with the store; None if it asks for too much or dies."""
    session = new_session(make, 1)
    names = {"node_id": "fresh", "node_ids": ["fresh"]}
    todo: deque[tuple[str, Body]] = deque(
        [("c", {"type": "init", "msg_id": 0, **names}), ("c", body)]
    )
    for _ in range(10_000):
        if not todo:
            return None
        src, received = todo.popleft()
        session.receive(orjson.dumps({"src": src, "dest": "fresh", "body": received}), 0.0)
        for message in map(orjson.loads, session.take().splitlines()):
            if message["dest"] == STORE:
                todo.append((STORE, store.handle(message["body"])))
            elif message["body"]["type"] != "init_ok":
                return message["body"]
    return None


def _fail(failure: Exception) -> None:
    raise failure
