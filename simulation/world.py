"""One simulated run of a scenario, watched in every step.

an old log is written                                        `simulation.backlog`
main phase with faults, healing, recovery, final polls       as on real processes; clients beside those of the
                                                             workload, and more trouble with the store
epilogue: every node is sent a probe, and read whole         `Progress`, `Convergence`
aftermath: whatever was late has come                        `CompactionMoves`, `GarbageCollected`
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from math import inf
from random import Random
from typing import Any

from bench.cluster import OnLine
from bench.nemesis.fault import Fault
from bench.net import Mute, Trace
from bench.services import Consistency, Serve, default_services
from bench.worker import Phase
from leaderless.core.headlog.records import HEAD, head_of
from leaderless.core.strategy import Options
from simulation.aftermath import KEY, let_compact, require_compacted
from simulation.alone import Alone
from simulation.backlog import old_key, write_backlog
from simulation.convergence import POLLS, PROBE, Epilogue
from simulation.headlog import HeadLogOracle, oracle_for
from simulation.hosts import NS, MakeNode, NodeSession, SimulatedHost, Think
from simulation.life import BUCKET
from simulation.nodes import StrategyMaker, new_session
from simulation.omit import Acts, OmittingFault, OmittingGenerator
from simulation.oracle import Asked, Body, Oracle, require
from simulation.refinement import Refinement
from simulation.registers import Store
from simulation.run import SimulatedRun
from simulation.scenario import Scenario
from simulation.side_clients import AUDITED, SideClients
from simulation.strays import Strays
from simulation.trouble import StoreTrouble
from simulation.watch import NEARLY_GONE_S, Watch
from workloads.interface import Setting, Workload

FRESH = Options()
FRESH_READS = 30  # reads of the whole log while it doubles; all of them while it is short
EVICTS_BELOW_KIB = 65_536  # no simulated log is as large
CALLS_PER_OLD_ENTRY = 8  # one after the other, on the way down to a run that is not in memory


class World(SimulatedRun):
    """A run of a scenario.

    `make` gives the strategy of the nodes, if it is not the scenario's; `node` gives whole nodes, which the
    checker alone judges; `kept`: see `SimulatedRun`. `execute` raises `Violation` as soon as an invariant does
    not hold.
    """

    def __init__(
        self,
        scenario: Scenario,
        make: StrategyMaker | None = None,
        *,
        node: MakeNode | None = None,
        **kept: Any,
    ) -> None:
        self.scenario = scenario
        self._strategy: str | StrategyMaker = make or scenario.strategy
        self.acts, self.fault_acts = Acts(scenario.omit), Acts(scenario.omit_faults)
        oracle = None if node else self._new_oracle()
        self._names = [*scenario.node_names]  # of all nodes that there ever were
        self.watch = Watch(
            self._names,
            lambda: self.loop.now_ns(),  # noqa: PLW0108 - the loop is made later
            lambda node: self.hosts[node].alive,
            oracle,
            line_bytes=scenario.limits.line_bytes if scenario.strategy == "leaderless" else inf,
            in_time=node is None,
            gone_s=self._gone_s,
            at_home=self._at_home,
        )
        is_followed = oracle and scenario.strategy == "leaderless"
        self.refinement = Refinement() if is_followed else None
        self.store = self._new_store()
        self._shape = scenario.shape  # of the log, once it is there
        self._changes_unread = 0
        super().__init__(
            scenario.bench_options,
            node or self._new_session,
            **kept,
        )

    def counted(self) -> dict[str, dict[str, int]]:
        """`requests`: what was asked of a bucket, by kind; `covered`: what happened to a log as a table."""
        return {}

    # ------------------------------------------------------------ what it is made of

    def _new_oracle(self) -> Oracle | None:
        evicts = self.scenario.memory_kib < EVICTS_BELOW_KIB
        return oracle_for(self.scenario.strategy, self.scenario.least_options, evicts=evicts)

    def _new_store(self) -> Any:
        return Store(self._store_changed)

    _gone_s = NEARLY_GONE_S  # see `Watch`
    _final_limit_s = 120.0  # a node with little memory hands out the log in many small pieces
    _at_home: Callable[[str, Body], Body] | None = None  # a message as the oracle knows it

    def _build_workload(self, setting: Setting) -> Workload:
        workload = super()._build_workload(setting)
        gap_s = 1 / self.scenario.rate
        names, idle = self.scenario.node_names, self.scenario.idle_names
        generator = OmittingGenerator(
            workload.generator,
            self.acts,
            gap_s,
            lambda worker: names[worker % len(names)] in idle,
        )
        return replace(workload, generator=generator, final_limit_s=self._final_limit_s)

    def _new_session(self, name: str, incarnation: int) -> NodeSession:
        if incarnation > 1:
            self._strays.restarted(name)
        options = self.scenario.options_of(name, incarnation)
        followed = self.refinement.followed(self._strategy) if self.refinement else self._strategy
        return new_session(followed, incarnation, options)

    def _new_host(self, name: str, on_line: OnLine) -> SimulatedHost:
        if name not in self._names:
            self._names.append(name)
        return SimulatedHost(
            name,
            self.loop,
            on_line,
            self._make,
            think_time(self.scenario, self._random(f"think/{name}")),
            on_kill=self.watch.killed,
            on_resume=self.watch.resumed,
            on_old_lines=self.watch.reads_old_lines,
        )

    def _muted(self, mute: Mute) -> None:
        super()._muted(mute)
        if self.watch.oracle:
            self.watch.unheard(mute.node, mute.value["name"])
            self._hearing.started(mute.node)  # or the run would only show what a mute node does

    def _trace(self) -> Trace:
        def trace(event: str, src: str, dest: str, body: Body, wire: bytes) -> None:
            if event == "send":
                self._strays.sent(src, dest, body, wire)
            self.watch.message(event, src, dest, body, wire)
            if self.refinement:
                self.refinement.settle()

        return trace

    def _services(self) -> dict[str, Consistency]:
        random = self._random("trouble")
        self._trouble = StoreTrouble(self.scenario, self.store, self.loop, random)
        return default_services(self._random) | {self.store_name: self._trouble}

    def _serve_store(self) -> Serve:
        return self._trouble.around(super()._serve_store())

    def _faults(self) -> list[Fault]:
        return [OmittingFault(fault, self.fault_acts) for fault in super()._faults()]

    # ------------------------------------------------------------ the oracle's view of the store

    def _store_changed(self, register: str, old: Any, new: Any) -> None:
        self.watch.changed(register, old, new)
        if self.refinement:
            self.refinement.changed(register, new)
        oracle = self.watch.oracle
        if register == HEAD and old is None and isinstance(oracle, HeadLogOracle):
            self._shape = head_of(new).shape
            self.watch.line_bytes = self._shape.register_bytes  # whatever nodes could read
        if isinstance(oracle, HeadLogOracle) and register != HEAD:
            self._changes_unread += 1
            # All of a long log for each change would be quadratic.
            if self._changes_unread * FRESH_READS > len(oracle.entries):
                self._changes_unread = 0
                self._read_afresh(oracle)

    def _read_afresh(self, oracle: HeadLogOracle) -> None:
        """At this very moment a node that knows nothing can read everything."""
        questions: list[Body] = [
            {"type": "poll", "offsets": dict.fromkeys(oracle.messages, 0)},
            {"type": "list_committed_offsets", "keys": list(oracle.commits_in_log)},
        ]
        absent = self._names  # what they committed is in their registers
        store = Store(cells=self.store.cells)  # whose changes are not reported
        alone = Alone(["fresh"], self._strategy, FRESH, store, absent)
        for question in questions:
            reply = alone.ask("fresh", question, rounds=0)
            require(bool(reply), "CommittedReadable", "a fresh node gets no answer")
            oracle.answered(Asked("fresh", question, self.virtual_s), reply, self.virtual_s)

    # ------------------------------------------------------------ phases

    def _start_nodes(self) -> None:
        scenario, oracle = self.scenario, self.watch.oracle
        if oracle:
            write_backlog(scenario, self.store, oracle)
        arrive, random = self.network.arrive_again, self._random("strays")
        self._strays = Strays(self.loop, arrive, scenario.strays, random)
        super()._start_nodes()

    def _main_phase(self) -> Phase:
        self._trouble.begin()
        random = self._random("side clients")
        self._side_clients = SideClients(
            self.scenario, self.cluster, self.network, self._new_client, random
        )
        self._side_clients.begin()
        return super()._main_phase()

    def _recovered(self) -> None:
        """Nobody asked anything for a while: committed offsets that waited for company are in the log."""
        if self.scenario.auditors:
            epilogue = self._new_epilogue()
            epilogue.list_committed(self._keys())
            self.network.remove(epilogue.client)

    def _epilogue(self) -> None:
        self._watcher.phase("epilogue")
        epilogue, keys = self._new_epilogue(), self._keys()
        epilogue.run(keys)
        if self.scenario.aftermath:
            self._aftermath(epilogue, keys)
        self.network.remove(epilogue.client)
        left = list(self.watch.unanswered.values())
        require(
            not left, "Progress", f"unanswered: {[(each.node, each.body) for each in left[:3]]}"
        )

    def _aftermath(self, epilogue: Epilogue, keys: list[str]) -> None:
        late_ns = self._trouble.last_ns - self.loop.now_ns()
        self._sleep(max(0, late_ns) / NS + 1)
        its = self.scenario
        # A store with a limit may refuse a run of segments for ever. Programs compact when they are asked.
        if its.strategy == "leaderless" and its.store != BUCKET and not its.store_value_kib:
            let_compact(epilogue, self.scenario.node_options.pace.lease_s, self._shape)
            require_compacted(self.store.registers, self._shape.segments_per_run)
        epilogue.read([*keys, KEY])
        epilogue.list_committed(keys)

    def _new_epilogue(self) -> Epilogue:
        return Epilogue(
            self.network,
            self._new_client(),
            tuple(self.cluster.members),
            self.watch.oracle,
            wait=self._wait_for,
            rest=self._sleep,
        )

    def _keys(self) -> list[str]:
        """All keys to which anybody sent, or that anybody committed."""
        sent = {op.value[0][1] for op in self.recorder.ops if op.f == "send"}
        old = {old_key(number) for number in range(self.scenario.backlog)}
        audited = AUDITED if self.scenario.auditors else []
        return sorted({PROBE, *audited} | sent | old | self._side_clients.sent)

    def _wait_for(self, what: str, waiting: set[str]) -> None:
        patience_s, oracle = self.scenario.recovery_time_s, self.watch.oracle
        if what == POLLS and isinstance(oracle, HeadLogOracle):
            # A node reads a whole log back one part after the other: it kept none of it if it has little
            # memory, or read none of it since its start.
            call_s = self.scenario.latency_ms / 1000
            patience_s += len(oracle.entries) * call_s * CALLS_PER_OLD_ENTRY
        silent = self._until(lambda: waiting, patience_s)
        text = f"{', '.join(silent)} did not answer {what} in {patience_s:g} s after all faults"
        require(not silent, "Progress", text)

    def _until(self, lacking: Callable[[], Collection[str]], seconds: float) -> list[str]:
        """Wait until nothing is lacking, for so many seconds at most; what is lacking then."""
        self._sleep(seconds, lambda: not lacking())
        return sorted(lacking())


def think_time(scenario: Scenario, random: Random) -> Think:
    """Draws how long a node takes for a line, in nanoseconds."""
    mean_ns = scenario.think_us * 1_000
    draws: dict[str, Callable[[], int]] = {
        "constant": lambda: mean_ns,
        "uniform": lambda: int(random.random() * 2 * mean_ns) + 1,
        "exponential": lambda: int(random.expovariate(1 / mean_ns)) + 1,
    }
    return draws[scenario.think_dist]
