"""One run from the first process to the last operation.

    start the nodes, init each          (10 s)
    main phase: operations at a rate, faults beside them   (--time-limit)
    heal, wait                          (--recovery-time; only if the workload has a final phase)
    final phase: what the workload wants to see at the end
    stop the nodes

The run is the same on real processes and on a virtual clock: loop, hosts and files are handed in.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from random import Random
from typing import TYPE_CHECKING, Any

from bench.cluster import Cluster, Hosts, OnFailure, OnLine
from bench.failure import RunFailure, unwritable
from bench.loop import Loop
from bench.nemesis.fault import Fault, Turns
from bench.nemesis.fence import Fence
from bench.nemesis.links import LEVELS, LinkFaults, Links
from bench.nemesis.members import Membership, Processes
from bench.nemesis.partitions import Partition
from bench.nemesis.requests import MODES_OF_LIN_KV, STORE, Requests, StoreFaults
from bench.net import IN_TURN, Hearing, Mute, Network, Trace, latency
from bench.options import TestOptions
from bench.services import Consistency, Serve, connect, default_services
from bench.verdict.no_start import unfit_script
from bench.verdict.silence import Pipes
from bench.worker import FinalPhase, MainPhase, Phase, Recorder, Worker, client_names
from runs.collection import collection_paused
from runs.faults import FAULTS, HEARD, MUTE
from runs.history import MS, NEMESIS, TIMEOUT, Op, error_text, keywords
from runs.writing import Journal, Lines
from workloads.interface import CLIENT_TIMEOUT_MS, Draft, Setting, Workload

if TYPE_CHECKING:  # real stores take a client of HTTP, and most runs have none
    from bench.stores.run_store import RunStore

_FLUSH_NS = 250_000_000
_LOOK_NS = 10_000_000
_SLOW_NS = 2_000_000_000
_LATE_NS = 2_000_000_000  # how long a late answer to a set-up is waited for, to say that it is late


class Watcher:
    """Takes notice of how a run goes, to show or measure it; this one does nothing."""

    def phase(self, name: str) -> None:
        """Another phase begins."""

    def trace(self, event: str, message: bytes) -> None:
        """A message was sent or received (only with `--log-net-send`, `--log-net-recv`)."""

    def muted(self, mute: Mute) -> None:
        """Nobody hears a node from now on."""


@dataclass(slots=True)
class RunResult:
    """The result of a run. `failure` says why it ended early, if it did; `pipes` are the nodes' at its end."""

    history: list[Op]
    network: Network
    failure: RunFailure | None
    history_origin_ns: int
    pipes: Mapping[str, Pipes] = field(default_factory=dict)


def random_streams(seed: str) -> Callable[[str], Random]:
    """Streams of randomness by name: drawing from one does not shift another."""
    return lambda name: Random(f"{seed}/{name}")


class BenchRun:
    """Everything of one run, wired together. `store_name`: the service that the fault `store` affects."""

    store_name = STORE

    def __init__(
        self,
        options: TestOptions,
        build_workload: Callable[[Setting], Workload],
        loop: Loop,
        make_hosts: Callable[[OnLine, OnFailure], Hosts],
        *,
        history_file: Lines,
        journal_file: Lines,
        watcher: Watcher,
        real_store: "RunStore | None" = None,
    ) -> None:
        self._real_store = real_store
        self.options = options
        self.failure: RunFailure | None = None
        self._loop = loop
        self._watcher = watcher
        self._random = random_streams(options.seed)
        self._journal = Journal(journal_file)
        self.recorder = Recorder(loop, history_file)
        self._hearing = Hearing(
            lenient=options.lenient,
            on_mute=self._muted,
            on_heard=lambda node: self.recorder.record("info", NEMESIS, HEARD, keywords(node=node)),
        )
        self.network = Network(
            loop,
            self._journal,
            latency(options.latency_dist, options.latency_ms, self._random("net")),
            self._trace(),
            hearing=self._hearing,
            in_turn=options.arrival == IN_TURN,
        )
        self._hosts = make_hosts(self._receive, self.fail)
        self._new_client = client_names()
        self._store_faults = StoreFaults(loop, self._random("store"))
        self.cluster = Cluster(
            options.nodes, loop, self.network, self._new_client, self.fail, self._hosts.add
        )
        self.workload = build_workload(
            Setting(options.nodes, options.concurrency, options.as_dict(), self._random)
        )
        self._workers = [self._make_worker(number) for number in range(options.concurrency)]
        gap_ns, record = int(options.nemesis_interval_s * 1e9), self.recorder.record
        self._turns = [
            Turns(each, loop, gap_ns, self._random(f"nemesis/{each.name}"), record)
            for each in self._faults()
        ]
        self._phase: Phase | None = None

    def fail(self, failure: RunFailure) -> None:
        """End the run as soon as the present turn is over; the first reason counts."""
        self.failure = self.failure or failure

    def fault(self) -> str:
        """The faults that are active, or an empty string."""
        active = [turns.fault.name for turns in self._turns if turns.active]
        return f"under {', '.join(active)}" if active else ""

    def execute(self) -> RunResult:
        """Do it all. A failure is in the outcome, not raised; no node is left behind."""
        try:
            # The history grows by objects that live on, and nothing in the bench makes garbage in
            # cycles: the collector would only pause the run for a tenth of a second, again and again.
            with collection_paused():
                self._perform()
        except RunFailure as failure:
            self.fail(failure)
        except OSError as error:
            self.fail(unwritable("The run", error))
        finally:
            self._watcher.phase("stopping the nodes")
            pipes = self.cluster.pipes()
            self._hosts.stop()
            self._close_files()
        ops, origin_ns = self.recorder.ops, self.recorder.origin_ns
        return RunResult(ops, self.network, self.failure, origin_ns, pipes)

    def _perform(self) -> None:
        self._start_nodes()
        self._set_up()
        self._watcher.phase("main phase")
        if self._real_store:
            self._real_store.begin()
        self.recorder.start()
        for mute in self._hearing.mute.values():  # since its init
            self.recorder.record("info", NEMESIS, MUTE, mute.value)
        self._flush()
        self._run_phase(self._main_phase())
        if self.workload.final_generator is None:
            return
        self._watcher.phase("recovery")
        for turns in self._turns:
            turns.stop()
        self._wait(lambda: all(each.over for each in self._turns) and self.cluster.ready)
        self._sleep(self.options.recovery_time_s)
        self._recovered()
        self._watcher.phase("final phase")
        generator, limit_s = self.workload.final_generator, self.workload.final_limit_s
        self._run_phase(FinalPhase(self._loop, self.recorder, self._workers, generator, limit_s))
        self._epilogue()

    def _services(self) -> dict[str, Consistency]:
        """The services by name; a subclass may watch them."""
        return default_services(self._random)

    def _serve_store(self) -> Serve:
        """What becomes of requests to the store; a subclass may trouble them more."""
        return self._store_faults.serve

    def _recovered(self) -> None:
        """A subclass may talk to the nodes here, when the time for recovery is over."""

    def _epilogue(self) -> None:
        """A subclass may talk to the nodes here before they are stopped."""

    def _start_nodes(self) -> None:
        self._watcher.phase("starting the nodes")
        connect(self.network, self._services(), {self.store_name: self._serve_store()})
        if self._real_store:
            self._real_store.connect(self.network, self.cluster.is_starting)
        random, each_ns = self._random("start"), self.options.start_spread_ms * MS
        self.cluster.start(
            self._hosts.prepare(), lambda: int(random.random() * each_ns * len(self.options.nodes))
        )
        self._loop.call_later(_SLOW_NS, self._tell_slow)
        self._wait(lambda: self.cluster.ready)

    def _tell_slow(self) -> None:
        """Show why a node has not answered `init` so far, long before its time is over."""
        slow = next((node for node in self.options.nodes if self.cluster.is_starting(node)), None)
        if slow and slow not in self._hearing.mute:
            self._watcher.phase(f"starting the nodes: {self.cluster.why_silent(slow, 'init').fact}")

    def _set_up(self) -> None:
        """Let the workload say to every node what it has to say before the operations."""
        if self.workload.set_up is None:
            return
        waiting = set(self.options.nodes)
        for node in self.options.nodes:
            self._prepare(node, waiting.discard, self.fail)
        self._wait(lambda: not waiting)

    def _prepare(self, node: str, on_done: Callable[[str], object], on_failure: OnFailure) -> None:
        """Let a worker say to a node what `Workload.set_up` has to say to it; that is in no history."""
        set_up = self.workload.set_up
        assert set_up

        def completed(worker: Worker, op: Op) -> None:
            if op.type == "ok":
                on_done(node)
            elif error_text(op) == TIMEOUT:
                self._loop.call_later(_LATE_NS, self._unanswered, worker, on_failure)
            else:
                on_failure(_not_taken(worker, f"answered {worker.asked} with {error_text(op)}"))

        worker = Worker(
            number=0,
            whose=lambda: node,
            concurrency=1,
            workload=replace(self.workload, open_client=partial(set_up, self.cluster.members)),
            loop=self._loop,
            network=self.network,
            recorder=Recorder(self._loop, BytesIO()),
            new_client=self._new_client,
            on_complete=completed,
            on_failure=on_failure,
        )
        worker.invoke(Draft("set-up"))

    def _unanswered(self, worker: Worker, on_failure: OnFailure) -> None:
        """A node has not answered in time what a worker had to say to it before the operations."""
        limit = f"within {CLIENT_TIMEOUT_MS / 1000:g} s"
        if worker.is_late:
            on_failure(_not_taken(worker, f"answered {worker.asked}, but not {limit}"))
            return
        why = self.cluster.why_silent(worker.node, worker.asked)
        on_failure(
            _not_taken(worker, f"did not answer {worker.asked} {limit}: {why.fact}", why.advice)
        )

    def _prepare_joined(self, node: str) -> None:
        """Let the workload say to a node that joins what it says to every node, once it has started."""
        if self.workload.set_up is None:
            return
        if self.cluster.is_starting(node):
            self._loop.call_later(_LOOK_NS, self._prepare_joined, node)
        elif node in self.cluster.serving:  # one that was killed meanwhile is told nothing
            self._prepare(node, lambda _: None, lambda _: None)

    def _main_phase(self) -> Phase:
        for turns in self._turns:
            turns.start(self.options.time_limit_s)
        return MainPhase(
            self._loop,
            self.recorder,
            self._workers,
            self.workload.generator,
            rate=self.options.rate,
            limit_s=self.options.time_limit_s,
            random=self._random("schedule"),
        )

    def _run_phase(self, phase: Phase) -> None:
        self._phase = phase
        self._wait(lambda: phase.done)

    def _sleep(self, seconds: float, done: Callable[[], bool] = lambda: False) -> None:
        """Let time pass: so many seconds, or until it is `done`."""
        end_ns = self._loop.now_ns() + int(seconds * 1e9)
        self._loop.call_at(end_ns, lambda: None)
        self._wait(lambda: done() or self._loop.now_ns() >= end_ns)

    def _wait(self, done: Callable[[], bool]) -> None:
        self._loop.run_until(lambda: self.failure is not None or done())
        if self.failure:
            raise self.failure

    def _receive(self, node: str, line: bytes) -> None:
        """A node printed a line."""
        try:
            self.network.send_line(node, line)
        except RunFailure as failure:
            self.fail(RunFailure(f"{failure}\n{unfit_script(self.options.bin, 'stdout')}".rstrip()))

    def _muted(self, mute: Mute) -> None:
        self._watcher.muted(mute)
        if self._phase:
            self.recorder.record("info", NEMESIS, MUTE, mute.value)

    def _completed(self, worker: Worker, op: Op) -> None:
        if self._phase:
            self._phase.completed(worker, op)

    def _flush(self) -> None:
        self.recorder.flush()
        self._journal.flush()
        self._loop.call_later(_FLUSH_NS, self._flush)

    def _close_files(self) -> None:
        for file in (self.recorder, self._journal):
            try:
                file.close()
            except OSError as error:
                self.fail(unwritable("The run", error))

    def _trace(self) -> Trace | None:
        """What is told of each message; a subclass may want to know all of them."""
        events = {"send": self.options.log_net_send, "recv": self.options.log_net_recv}

        def trace(event: str, _src: str, _dest: str, _body: dict[str, Any], wire: bytes) -> None:
            if events[event]:
                self._watcher.trace(event, wire)

        return trace if any(events.values()) else None

    def _make_worker(self, number: int) -> Worker:
        place = number % len(self.options.nodes)
        return Worker(
            number=number,
            whose=lambda: self.cluster.at(place),
            concurrency=self.options.concurrency,
            workload=self.workload,
            loop=self._loop,
            network=self.network,
            recorder=self.recorder,
            new_client=self._new_client,
            on_complete=self._completed,
            on_failure=self.fail,
        )

    def _faults(self) -> list[Fault]:
        """The requested faults in the order of `FAULTS`; at the end of a run they end in this order.

        A subclass may leave some of their acts out.
        """
        nodes, targets = self.cluster.names, self.options.nemesis_targets
        link_faults = LinkFaults(nodes, self.options.latency_ms > 0, self._random("weather"))
        faults: list[Fault] = [
            Partition(self.network, nodes, self.options.partition_shapes),
            *(Processes(name, self.cluster, targets) for name in ("kill", "pause")),
            *(Links(name, self.network, link_faults, nodes, targets) for name in LEVELS),
            self._store_fault(),
            Fence(self.cluster, self.network, self._loop),
            Membership(self.cluster, targets, self._prepare_joined),
        ]
        assert tuple(fault.name for fault in faults) == FAULTS
        return [fault for fault in faults if fault.name in self.options.nemesis]

    def _store_fault(self) -> Fault:
        targets = self.options.nemesis_targets
        if self._real_store and Requests.name in self.options.nemesis:
            return self._real_store.fault(self.cluster.names, targets)
        return Requests(self._store_faults.impose, self.cluster.names, targets, MODES_OF_LIN_KV)


def _not_taken(worker: Worker, what: str, advice: str = "") -> RunFailure:
    """The report on a node that did not take what it was told: `what` it did instead, and advice."""
    return RunFailure(
        f"Node {worker.node} {what}.\n"
        f"Every node is told {worker.asked} before the operations, and must answer {worker.asked}_ok,"
        f" even if it does not need it (docs/bench/workloads.md). {advice}".rstrip()
    )
