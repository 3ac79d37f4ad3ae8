"""One simulated run: the bench's own `Run`, its nodes objects on a virtual clock, watched all the way.

main phase with faults, healing, recovery, final polls      as on real processes
epilogue: every node is sent a probe, and read whole         `Progress`, `Convergence`
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import orjson

import workloads
from bench.hosts import OnFailure, OnLine
from bench.loop import VirtualLoop
from bench.nemesis.fault import Fault
from bench.net import Network, latency
from bench.run import MakeHosts, Run
from bench.services import default_services
from bench.services.consistency import Consistency
from leaderless.core.headlog.records import HEAD
from leaderless.core.limits import Limits
from simulation.convergence import Epilogue
from simulation.files import Ledger
from simulation.hosts import SimulatedHost, SimulatedHosts, Think
from simulation.nodes import MakeSpeaker, StrategyMaker, new_session
from simulation.omit import Acts, OmittingFault, OmittingGenerator
from simulation.oracle import Asked, Body, Oracle, require
from simulation.scenario import Scenario
from simulation.watch import NS, Store, Watch
from workloads.interface import Setting, Workload

STORE = "lin-kv"
FRESH_STEPS_MAX = 10_000
FRESH_READS = 30  # reads of the whole log while it doubles; all of them while it is short
FINAL_LIMIT_S = 120.0  # a node with little memory hands out the log in many small pieces
EVICTS_BELOW_KIB = 65_536  # no simulated log is as large


class Silent:
    """A `bench.run.Watcher` that shows nothing."""

    def phase(self, name: str) -> None:
        """Not shown."""

    def trace(self, event: str, message: bytes) -> None:
        """Not shown."""


class World(Run):
    """A run of a scenario. `make` gives the nodes, if they are not the scenario's strategy.

    `execute` raises `Breach` as soon as an invariant does not hold.
    """

    def __init__(
        self,
        scenario: Scenario,
        make: StrategyMaker | None = None,
        *,
        speaker: MakeSpeaker | None = None,
        keep: bool = False,
        history_file: Ledger | None = None,
        journal_file: Ledger | None = None,
    ) -> None:
        self.scenario = scenario
        self.loop = VirtualLoop()
        self._make: str | StrategyMaker = make or scenario.strategy
        self.history_file = history_file or Ledger(keep=keep)
        self.journal_file = journal_file or Ledger(keep=keep)
        has_oracle = scenario.strategy == "leaderless" and speaker is None
        evicts = scenario.memory_kib < EVICTS_BELOW_KIB
        oracle = (
            Oracle(scenario.freshness_ms / 1000, evicts, scenario.node_options.limits.lease_s)
            if has_oracle
            else None
        )
        self.acts, self.fault_acts = Acts(scenario.omit), Acts(scenario.omit_faults)
        self.hosts: dict[str, SimulatedHost] = {}
        self.watch = Watch(scenario.node_names, self.loop.now_ns, self._is_alive, oracle)
        self.store = Store(self._store_changed)
        self._changes_unread = 0
        super().__init__(
            scenario.bench_options,
            self._build_workload,
            self.loop,
            self._hosts_maker(speaker or self._new_session),
            history_file=self.history_file,
            journal_file=self.journal_file,
            watcher=Silent(),
        )

    @property
    def digest(self) -> str:
        """Of everything that happened: the journal, then the history."""
        return (self.journal_file.digest() + self.history_file.digest()).hex()

    @property
    def virtual_s(self) -> float:
        """How long the run has taken on its own clock."""
        return self.loop.now_ns() / NS

    # ------------------------------------------------------------ what it is made of

    def _build_workload(self, setting: Setting) -> Workload:
        workload = workloads.build(self.scenario.bench_options.workload, setting)
        gap_s = 1 / self.scenario.rate
        generator = OmittingGenerator(workload.generator, self.acts, gap_s)
        return replace(workload, generator=generator, final_limit_s=FINAL_LIMIT_S)

    def _new_session(self, _name: str, incarnation: int) -> Any:
        return new_session(self._make, incarnation, self.scenario.node_options)

    def _hosts_maker(self, make: MakeSpeaker) -> MakeHosts:
        def make_hosts(on_line: OnLine, _on_failure: OnFailure) -> SimulatedHosts:
            for name in self.scenario.node_names:
                think = think_time(self.scenario, self._random(f"think/{name}"))
                self.hosts[name] = WatchedHost(self.watch, name, self.loop, on_line, make, think)
            return SimulatedHosts(list(self.hosts.values()))

        return make_hosts

    def _make_network(self) -> Network:
        options = self.options
        draw = latency(options.latency_dist, options.latency_ms, self._random("net"))
        return Network(self.loop, self._journal, draw, self.watch.message)

    def _services(self) -> dict[str, Consistency]:
        return default_services(self._random) | {STORE: self.store}

    def _faults(self) -> list[Fault]:
        return [OmittingFault(fault, self.fault_acts) for fault in super()._faults()]

    def _is_alive(self, node: str) -> bool:
        return self.hosts[node].alive

    # ------------------------------------------------------------ the oracle's view of the store

    def _store_changed(self, register: str, old: Any, new: Any) -> None:
        oracle = self.watch.oracle
        if oracle:
            now_s = self.loop.now_ns() / NS
            oracle.changed(register, old, new, now_s)
            if register != HEAD:
                self._changes_unread += 1
                # All of a long log for each change would be quadratic.
                if self._changes_unread * FRESH_READS > len(oracle.entries):
                    self._changes_unread = 0
                    self._read_afresh(oracle, now_s)

    def _read_afresh(self, oracle: Oracle, now_s: float) -> None:
        """At this very moment a node that knows nothing can read everything."""
        polled: Body = {"type": "poll", "offsets": dict.fromkeys(oracle.messages, 0)}
        reply = read_alone(self._make, self.store.copy(), {**polled, "msg_id": 1})
        require(reply is not None, "CommittedReadable", "a fresh node gets no answer")
        assert reply
        oracle.answered(Asked("fresh", polled, now_s), reply)

    # ------------------------------------------------------------ the end

    def _epilogue(self) -> None:
        self._watcher.phase("epilogue")
        epilogue = Epilogue(self.network, self._client_ids.next(), self.scenario.node_names)
        self._converge(epilogue)
        self.network.remove(epilogue.client)
        left = list(self.watch.unanswered.values())
        require(
            not left, "Progress", f"unanswered: {[(each.node, each.body) for each in left[:3]]}"
        )

    def _converge(self, epilogue: Epilogue) -> None:
        patience_s = self.scenario.recovery_time_s
        epilogue.probe()
        self._wait_for(epilogue, patience_s, "a probe")
        self._sleep(
            2 * Limits().commits_idle_s
        )  # committed offsets that waited for a batch are in the log
        keys = sorted({"probe"} | {op.value[0][1] for op in self.recorder.ops if op.f == "send"})
        epilogue.read(keys)
        self._wait_for(epilogue, patience_s, "a poll")
        epilogue.judge()
        epilogue.list_committed(keys)
        self._wait_for(epilogue, patience_s, "list_committed_offsets")
        if self.watch.oracle:
            for offsets in epilogue.committed.values():
                self.watch.oracle.listed_at_last(offsets)

    def _wait_for(self, epilogue: Epilogue, patience_s: float, what: str) -> None:
        end_ns = self.loop.now_ns() + int(patience_s * NS)
        self.loop.call_at(end_ns, int)  # something to wait for
        self._wait(lambda: not epilogue.waiting or self.loop.now_ns() >= end_ns)
        silent = sorted(epilogue.waiting)
        text = f"{', '.join(silent)} did not answer {what} in {patience_s:g} s after all faults"
        require(not silent, "Progress", text)


class WatchedHost(SimulatedHost):
    """A host whose deaths are told."""

    def __init__(self, watch: Watch, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._watch = watch

    def kill(self) -> None:
        super().kill()
        self._watch.killed(self.name)


def think_time(scenario: Scenario, random: Random) -> Think:
    """Draws how long a node takes for a line, in nanoseconds."""
    mean_ns = scenario.think_us * 1_000
    draws: dict[str, Callable[[], int]] = {
        "constant": lambda: mean_ns,
        "uniform": lambda: int(random.random() * 2 * mean_ns) + 1,
        "exponential": lambda: int(random.expovariate(1 / mean_ns)) + 1,
    }
    return draws[scenario.think_dist]


def read_alone(make: str | StrategyMaker, store: Store, body: Body) -> Body | None:
    """What a fresh node answers that is alone with the store; None if it asks for too much or dies."""
    session = new_session(make)
    init: Body = {"type": "init", "msg_id": 0, "node_id": "fresh", "node_ids": ["fresh"]}
    todo: list[tuple[str, Body]] = [(STORE, body), ("c", init)]
    for _ in range(FRESH_STEPS_MAX):
        if not todo:
            return None
        src, received = todo.pop()
        session.receive(orjson.dumps({"src": src, "dest": "fresh", "body": received}), 0.0)
        for message in map(orjson.loads, session.take().splitlines()):
            answer: Body = message["body"]
            if message["dest"] == STORE and "key" in answer:
                reply = store.handle("fresh", answer) | {"in_reply_to": answer["msg_id"]}
                todo.append((STORE, reply))
            elif answer["type"] != "init_ok":
                return answer
    return None
