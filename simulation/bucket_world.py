"""One simulated run of processes beside a bucket, watched in every step: what `World` does not do with nodes.

Each life of a process is a program; in a mixed run it is a program or a node. Programs of our log may be
members of a group of consumers (`simulation.group`). Beside the faults of the bench an operator compacts,
vacuums, and lets a process stand still for longer than the retention of a vacuum. The clocks on walls jump for
that, and nothing else happens meanwhile. The clocks by which processes wait jump in a queue alone, which gives
up by them what is too old; our log needs no clock for that.

At the end `leaderless.upkeep.fsck` looks at what is in the bucket.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from math import inf
from random import Random
from typing import Any

from bench.worker import Phase
from leaderless.hosting.surroundings import Surroundings
from leaderless.store.port import Store
from leaderless.upkeep import fsck
from runs.history import Op
from simulation.bucket import Bucket, LawfulBucket
from simulation.contents import RETENTION_S, Contents
from simulation.convergence import PROBE
from simulation.group import LEASE_S, Group
from simulation.hosts import NS, NodeSession
from simulation.life import BUCKET, Life
from simulation.logs import LEADERLESS, Act, Around
from simulation.oracle import Body, Oracle, Promises, Violation, raise_to, require
from simulation.peers import Fate, drawn_by
from simulation.port import at_once
from simulation.programs import GONE_S, POLL_LIMIT, TROUBLE, NodeOnBucket, Program
from simulation.scenario import Scenario
from simulation.table import Table, policy_of
from simulation.world import World

NODES_SHARE = 0.5  # of the lives of a mixed run
SKIPPED_S = 1.5 * RETENTION_S
STALL_NS, BLOCKED_NS = NS, int(1.7 * LEASE_S * NS)
FENCED_S = 0.3
SINK_BATCH_BYTES = 512  # so an epoch has several
MEMBER_S = 3 * LEASE_S  # so a member outlives the lease of one that died
# After so long, and so many requests, members that joined own the keys of those that died.
OWNED_S, REQUESTS = 1.5 * LEASE_S + 0.5, 40
CONSUMED_S = 120.0
# What each life of a mixed run has of its own: of a log that it makes, and of itself.
OWN_SHAPE = ("seal_entries", "seal_bytes", "segments_per_run", "page_bytes", "offset_registers")
OWN_LIMITS = ("lanes", "batch_bytes")


class BucketWorld(World):
    """A run of a scenario with `store` "bucket"."""

    store_name = BUCKET
    _gone_s = GONE_S
    _final_limit_s = 20.0  # a queue that lost a message is polled in vain

    def _new_store(self) -> Bucket:
        self._skipped_s = 0.0
        self._name = map("{0}-{0:024x}".format, count(1)).__next__
        random = Random(f"{self.scenario.seed}/group")
        went_on, blocked = self.watch.went_on, partial(self._pause, length_ns=BLOCKED_NS)
        self._group = Group(random, lambda: self.virtual_s, went_on, blocked)
        self._lives: list[Life] = []
        self._homes: dict[str, str] = {}  # where each process keeps committed offsets
        times = not self.scenario.ahead_s or self.scenario.runs == "parquet"  # as on S3
        self._acts: dict[str, Act] = {"consume": self._group.join}
        if not self.refinement:
            return Bucket(self._wall_s, keep=False, tells_times=times)
        store = LawfulBucket(self._wall_s, self.refinement, keep=False, tells_times=times)
        store.told = self._group.changed
        if self.scenario.runs == "parquet":
            self._use_table(store.contents)
        return store

    def _use_table(self, contents: Contents) -> None:
        """Programs retain, read and sink."""
        scenario, random = self.scenario, Random(f"{self.scenario.seed}/table")
        contents.processed = self._group.passed
        contents.policy = policy_of(random, groups=bool(scenario.members))
        assert self.watch.oracle
        assert self.refinement
        self.watch.oracle.trimmed = self.refinement.trimmed = contents.trimmed
        around = Surroundings(lambda: self.store.clock_s, self._name)
        self._table = Table(
            contents, random, around, skips=lambda: self._skipped_s, alive=self._is_alive
        )
        acts: dict[str, Act] = {
            "retain": self._table.retain,
            "snapshot": self._table.read,
            "sink": self._table.sink,
        }
        self._acts |= acts

    def _is_alive(self, store: Store) -> bool:
        """Whether the life with this store goes on."""
        newest = {life.name: life for life in self._lives}
        return any(life.port is store and self.hosts[name].alive for name, life in newest.items())

    def _new_oracle(self) -> Oracle | None:
        scenario = self.scenario
        if scenario.strategy != LEADERLESS:
            return None  # the checker alone finds its anomalies
        options = scenario.least_options
        promises = Promises(
            freshness_s=options.freshness_s if scenario.mixed else 0.0,
            commits_kept=options.durable_commits or not scenario.mixed,
            evicts=True,  # a poll ends with a run
            poll_messages=POLL_LIMIT,
        )
        return Oracle(promises)

    def _at_home(self, node: str, body: Body) -> Body:
        """Nodes and programs keep committed offsets in homes of their own."""
        if "commit" not in body.get("type", ""):
            return body
        home = self._homes[node]
        at_home = {f"{key} of {home}": at for key, at in body.get("offsets", {}).items()}
        keys = [f"{key} of {home}" for key in body.get("keys", ())]
        return {**body, "offsets": at_home, "keys": keys} if keys else {**body, "offsets": at_home}

    def _wall_s(self) -> float:
        """The time of all clocks on walls, in seconds since the run began."""
        return self.virtual_s + self._skipped_s

    def passed_s(self) -> float:
        """The time of the clocks by which processes wait."""
        return self.virtual_s if self.scenario.strategy == LEADERLESS else self._wall_s()

    def _new_session(self, name: str, incarnation: int) -> NodeSession:
        if incarnation > 1:
            self._strays.restarted(name)
        scenario = self.scenario
        options = scenario.options_of(name, incarnation)
        random = Random(f"{scenario.seed}/life/{name}/{incarnation}")
        is_node = scenario.mixed and random.random() < NODES_SHARE
        self._homes[name] = "nodes" if is_node else "programs"
        life: Life
        if is_node:
            make = self.refinement.followed(self._strategy)  # type: ignore[union-attr]
            life = NodeOnBucket(
                name, incarnation, self.passed_s, self.store, strategy=make, options=options
            )
        else:
            padding = "x" * scenario.value_bytes
            around = self._around(name, incarnation)
            life = Program(name, incarnation, self.passed_s, around, padding)
        self._lives.append(life)
        return life

    def _around(self, name: str, incarnation: int) -> Around:
        scenario = self.scenario
        options = scenario.options_of(name, incarnation)
        around = Around(
            scenario.strategy,
            scenario.repeats,
            lambda operator: self.store.clock_s + operator * scenario.ahead_s,
            self._name,
            self.store.traced,
            {"seal_entries": scenario.seal_entries, "segments_per_run": 2, "runs": scenario.runs},
            {"batch_bytes": SINK_BATCH_BYTES} if scenario.sinks else {},
            store_timeout_s=options.pace.store_timeout_s,
            acts=self._acts,
            crowd=self._crowd_of(name, incarnation),
            conditions=scenario.conditions,
        )
        if not scenario.mixed:
            return around
        return around._replace(
            shape={**around.shape, **{each: getattr(options.shape, each) for each in OWN_SHAPE}},
            limits={
                **{each: getattr(options.limits, each) for each in OWN_LIMITS},
                **around.limits,
            },
        )

    def _crowd_of(self, name: str, incarnation: int) -> tuple[int, Callable[[], Fate]] | None:
        scenario = self.scenario
        if not scenario.crowds or scenario.strategy != LEADERLESS:
            return None
        random = Random(f"{scenario.seed}/peers/{name}/{incarnation}")
        return random.randrange(scenario.crowds), drawn_by(random)

    # ------------------------------------------------------------ an operator

    def _main_phase(self) -> Phase:
        random, scenario = self._random("operator"), self.scenario
        acts = (
            (scenario.compactions, self._compact),
            (scenario.vacuums, self._vacuum),
            (scenario.stalls, self._stall),
            (scenario.members, self._join),
            (scenario.retentions, partial(self._tell, "retain")),
            (scenario.readers, partial(self._tell, "snapshot")),
            (scenario.sinks, partial(self._tell, "sink")),
            (scenario.fences, self._fence),
            (scenario.closes, partial(self._close, self._random("closes"))),
        )
        for times, act in acts:
            for _ in range(times):
                at_ns = self.loop.now_ns() + int(random.random() * scenario.time_limit_s * NS)
                node = random.choice(self.cluster.members)
                if not self.fault_acts.omitted():
                    self.loop.call_at(at_ns, act, node)
        return super()._main_phase()

    def _compact(self, _node: str) -> None:
        """All programs compact, or one: S3-Queue's compactions are not safe beside each other."""
        for name in self._programs if self.scenario.strategy == LEADERLESS else self._programs[:1]:
            self._side_clients.tell({"type": "compact"}, name)

    def _vacuum(self, _node: str) -> None:
        if not self.scenario.ahead_s:
            self._skip()
        for name in self._programs[:1]:
            self._side_clients.tell({"type": "vacuum"}, name)

    def _join(self, node: str, seconds: float = MEMBER_S) -> None:
        """A program consumes for a while, unless it dies; for ever: it does nothing odd."""
        if node in self._programs and self.scenario.strategy == LEADERLESS:
            body = {"type": "consume", "keys": self._keys(), "seconds": seconds}
            self._side_clients.tell({**body, "node": node, "calm": seconds == inf}, node)

    def _tell(self, what: str, node: str, **more: str) -> None:
        """A program is told to do something."""
        if node in self._programs:
            self._side_clients.tell({"type": what, **more}, node)

    def _close(self, random: Random, _node: str) -> None:
        """A key ends for ever, to which clients may send."""
        keys, programs = [key for key in self._keys() if key != PROBE], self._programs
        if keys and programs:
            self._tell("close", random.choice(programs), key=random.choice(keys))

    def _fence(self, node: str) -> None:
        """The log is closed for a while."""
        self._tell("fence", node)
        at_ns = self.loop.now_ns() + int(FENCED_S * NS)
        self.loop.call_at(at_ns, self._tell, "unfence", node)

    @property
    def _programs(self) -> list[str]:
        """Nodes compact by themselves, and know no vacuum."""
        return [name for name in self.cluster.members if self._homes.get(name) == "programs"]

    def _stall(self, node: str) -> None:
        """A process stands still, and an operator vacuums meanwhile."""
        if node in self.cluster.serving:
            self._pause(node, STALL_NS)
            self._skip()
            with suppress(*TROUBLE):
                self._operate(lambda log, *_: log.vacuum(RETENTION_S))

    def _pause(self, node: str, length_ns: int) -> None:
        if node in self.cluster.serving:
            self.cluster.pause(node)
            self.loop.call_at(self.loop.now_ns() + length_ns, self._resume, node)

    def _resume(self, node: str) -> None:
        if node in self.cluster.paused:
            self.cluster.resume(node)

    def _skip(self) -> None:
        """Time passes for all processes."""
        self._skipped_s += SKIPPED_S
        self.watch.skipped()

    def _recovered(self) -> None:
        """An operator opens the log, and the epoch of a sink that was begun is repeated until it is done."""
        super()._recovered()
        if self.scenario.fences:
            self._operate(lambda log, *_: log.unfence())
        if self.scenario.sinks and self._table.begun:
            self._operate(self._table.sink)

    def _operate(self, act: Act) -> None:
        """An operator does something with the log, in a process to which nothing else happens."""

        async def main(store: Store) -> None:
            async with self._around("operator", 1).opened(store, operator=True) as log:
                await act(log, store, {})

        at_once(self.store, main, self.passed_s())

    # ------------------------------------------------------------ the end

    def counted(self) -> dict[str, dict[str, int]]:
        """See `World`."""
        covered = self.store.contents.seen if isinstance(self.store, LawfulBucket) else {}
        return {"requests": dict(self.store.requests), "covered": dict(covered)}

    @property
    def judged(self) -> list[Op]:
        """Without the records that a retention has deleted: no checker knows where such a log begins."""
        trimmed = self.watch.oracle.trimmed if self.watch.oracle else {}
        return [left_of(op, trimmed) for op in super().judged] if trimmed else super().judged

    def execute(self) -> Any:
        """See `World`."""
        try:
            return super().execute()
        finally:
            for life in self._lives:
                life.end()

    def _epilogue(self) -> None:
        super()._epilogue()
        if self.scenario.members and self.scenario.strategy == LEADERLESS:
            self._consume_all()
        if self.scenario.strategy == LEADERLESS:
            for finding in at_once(self.store, fsck.check, self.passed_s()).findings:
                if finding.invariant != "CompactionGoesOn":  # faults kill two workers in a row
                    raise Violation(f"{finding.invariant}: {finding.object}: {finding.text}")

    def _consume_all(self) -> None:
        """All programs become members, until the group has passed all acknowledged sends."""
        ends: dict[str, int] = {}
        for op in self.recorder.ops:
            if (op.f, op.type) == ("send", "ok"):
                _, key, (offset, _) = op.value[0]
                raise_to(ends, {key: offset})
        for node in self._programs:
            self._join(node, inf)
        if self._programs:
            owned_s = OWNED_S + REQUESTS * self.scenario.latency_ms / 1000
            free = self._until(self._group.free, owned_s)
            require(not free, "KeysOwned", f"no living member owns {free} after {owned_s} s")
            behind = self._until(partial(self._group.behind, ends), CONSUMED_S)
            require(not behind, "ConsumedAtLast", f"no member passes all of {behind}")


def left_of(op: Op, trimmed: Mapping[str, int]) -> Op:
    """An operation as if the offsets below `trimmed` had never been."""
    match op.type, op.value:
        case "ok", [["send", key, [offset, _]]] if offset < trimmed.get(key, 0):
            return replace(op, type="fail")
        case "ok", [["poll", dict(polled)]]:
            left = {
                key: [pair for pair in pairs if pair[0] >= trimmed.get(key, 0)]
                for key, pairs in polled.items()
            }
            return replace(op, value=[[op.value[0][0], left]])
    return op


def world_of(scenario: Scenario, *arguments: Any, **named: Any) -> World:
    """The world of a scenario; see `World`."""
    make = World if scenario.store != BUCKET else BucketWorld
    return make(scenario, *arguments, **named)
