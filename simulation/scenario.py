"""The options of a simulated cluster; each that is not given is drawn from the seed (`simulation.options`).

An option that `./maelstrom test` has too takes its words and its help from there.
"""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from random import Random
from typing import Annotated, Any

import click

from bench.flags import COUNT, NATURAL, NOT_NEGATIVE, NUMBERS, POSITIVE, Flag, declared, flags_of
from bench.nemesis.fault import MIXED
from bench.nemesis.partitions import REAL_SHAPES, SHAPES
from bench.net import IN_TURN, WHEN_DUE
from bench.options import DISTRIBUTIONS, TestOptions
from leaderless.core.limits import Limits
from leaderless.core.pace import Pace
from leaderless.core.shape import Shape
from leaderless.core.strategies import STRATEGIES
from leaderless.core.strategy import Options
from runs.faults import FAULTS
from runs.house import MAELSTROM
from simulation.life import BUCKET
from simulation.logs import LEADERLESS, LOGS, PUBLISHED, REPAIRED
from simulation.options import Draw, Named, as_words, chance, of_bench, one_of, some_of

NODE = Options()  # the node's own defaults
SHAPE = Shape()  # of a log that a node makes
LIN_KV = "lin-kv"
OURS, FILES = "our log", "our log of Parquet files"  # beside a bucket
STORES = (LIN_KV, BUCKET)
KEPT_BY = (*sorted(STRATEGIES), PUBLISHED, REPAIRED)
LESS = (0, 1, 2)
SURVIVORS = ("leaderless", "leaderless", "cas", "prefetch-sealed")  # leaderless twice as often


@dataclass(frozen=True, slots=True)
class Scenario:
    """The options of one run; those of the bench mean what they mean in `./maelstrom test`.

    `freshness_ms` to `message_kib` are the node's options. From `store_late_s` on follows what no bench does to
    a node (`simulation.trouble`, `side_clients`, `backlog`, `strays`, `aftermath`). `omit` and `omit_faults`
    number the operations and the acts of faults that are left out (`simulation.omit`).
    """

    seed: int
    strategy: Annotated[
        str,
        Flag(
            f"How the log is kept: {', '.join(KEPT_BY)}. Those of S3-Queue are logs of programs.",
            Named(KEPT_BY),
            words=("--log", "--strategy"),
        ),
        one_of(*SURVIVORS, lower=None),
    ] = "leaderless"
    store: Annotated[
        str,
        Flag("What the log is kept in: with a bucket, nodes are programs.", click.Choice(STORES)),
    ] = LIN_KV
    time_limit_s: Annotated[
        float,
        of_bench("time_limit_s", POSITIVE),
        one_of(2.0, 4.0, 8.0, lower=(0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)),
    ] = 4.0
    nodes: Annotated[
        int,
        replace(of_bench("node_count"), words=("--processes", "--nodes")),
        Draw(lambda random: random.randint(1, 5), lower=(1, 2, 3, 4)),
    ] = 3
    clients: Annotated[
        int,
        Flag("How many clients each node has.", COUNT, words=("--workers", "--clients")),
        Draw(lambda random: random.randint(1, 4), lower=(1, 2, 3)),
    ] = 2
    rate: Annotated[
        float,
        of_bench("rate", POSITIVE),
        one_of(
            *(30.0, 100.0, 300.0),
            lower=(5.0, 10.0, 20.0, 30.0, 60.0, 100.0, 200.0),
            calm={30.0: 5.0, 100.0: 15.0, 300.0: 30.0},
        ),
    ] = 100.0
    key_count: Annotated[int, of_bench("key_count"), one_of(1, 4, 10, lower=(1, 2, 4))] = 4
    recovery_time_s: Annotated[float, of_bench("recovery_time_s", POSITIVE)] = 10.0
    latency_ms: Annotated[int, of_bench("latency_ms"), one_of(0, 1, 3, 20, 50, lower=None)] = 3
    latency_dist: Annotated[str, of_bench("latency_dist"), one_of(*DISTRIBUTIONS)] = "exponential"
    arrival: Annotated[str, of_bench("arrival"), one_of(IN_TURN, WHEN_DUE, WHEN_DUE)] = WHEN_DUE
    think_us: Annotated[
        int,
        Flag("Mean time that a node takes for a line.", COUNT, words=("--think-time",)),
        one_of(20, 100, 500),
    ] = 100
    think_dist: Annotated[
        str,
        Flag("How these times are distributed.", click.Choice(DISTRIBUTIONS)),
        one_of(*DISTRIBUTIONS),
    ] = "constant"
    max_writes_per_key: Annotated[int, of_bench("max_writes_per_key"), one_of(16, 128, 1024)] = 128
    nemesis: Annotated[
        tuple[str, ...], of_bench("nemesis"), some_of(FAULTS, none=1 / 8, each=0.4)
    ] = ()
    nemesis_interval_s: Annotated[float, of_bench("nemesis_interval_s"), one_of(0.3, 1.0, 3.0)] = (
        1.0
    )
    nemesis_targets: Annotated[
        str, of_bench("nemesis_targets"), one_of(MIXED, MIXED, "one", "minority", "all", lower=None)
    ] = MIXED
    partition_shapes: Annotated[
        tuple[str, ...],
        of_bench("partition_shapes"),
        one_of(REAL_SHAPES, tuple(SHAPES), lower=None),
    ] = REAL_SHAPES
    strict: Annotated[bool, of_bench("strict")] = True
    lenient: Annotated[bool, of_bench("lenient")] = False
    freshness_ms: Annotated[
        float,
        Flag("A view that is older is renewed before it answers a poll.", NOT_NEGATIVE),
        one_of(0.0, 10.0, 90.0),
    ] = NODE.freshness_s * 1000
    combine: Annotated[
        bool,
        Flag("Whether batches may be handed over to another node."),
        chance(0.8, lives=True),
    ] = NODE.combine
    commits: Annotated[
        str,
        Flag(
            "Whether the store has a committed offset before it is acknowledged.",
            click.Choice(["durable", "deferred"]),
        ),
        one_of("durable", "deferred"),
    ] = "durable"
    lanes: Annotated[
        int,
        Flag("Batches that a node has under way at most.", COUNT),
        one_of(1, 2, 4, lives=True),
    ] = NODE.limits.lanes
    memory_kib: Annotated[
        int,
        Flag("Log that a node keeps in memory.", COUNT, words=("--memory-kib",)),
        one_of(4, 262_144),
    ] = NODE.limits.memory_bytes // 1024
    store_timeout_ms: Annotated[
        float,
        Flag(
            "When the outcome of a store call counts as unknown.",
            POSITIVE,
            words=("--store-timeout-ms",),
        ),
        one_of(300.0, 1_000.0, lives=True, bound=300.0),
    ] = NODE.pace.store_timeout_s * 1000
    commit_kib: Annotated[
        int,
        Flag(
            "Batches that are committed together; a batch has half of it.",
            COUNT,
            words=("--commit-kib",),
        ),
        one_of(1, 64, lives=True, bound=64),
    ] = NODE.limits.commit_bytes // 1024
    seal_entries: Annotated[
        int,
        Flag("Entries of a full tail.", COUNT),
        one_of(3, 16, 256, lives=True, calm={3: 2, 16: 4, 256: 256}),
    ] = SHAPE.seal_entries
    seal_bytes: Annotated[
        int,
        Flag("Bytes of a full tail.", COUNT),
        one_of(1_024, 8_192, lives=True, bound=8_192, calm={1_024: 256, 8_192: 8_192}),
    ] = SHAPE.seal_bytes
    segments_per_run: Annotated[
        int,
        Flag("Segments that are compacted together.", click.IntRange(min=2)),
        one_of(2, 4, 16, lives=True, bound=16, calm={2: 2, 4: 2, 16: 4}),
    ] = SHAPE.segments_per_run
    message_kib: Annotated[
        int,
        Flag("The largest request that a node takes.", COUNT, words=("--message-kib",)),
        one_of(32, 1024),
    ] = NODE.limits.message_bytes // 1024
    store_late_s: Annotated[
        float,
        Flag("Some store requests are carried out up to so late.", NOT_NEGATIVE),
        one_of(0.0, 0.0, 0.0, 3.0, 120.0, lower=(0.0, 3.0, 30.0)),
    ] = 0.0
    refusal_code: Annotated[
        int,
        Flag("The code with which the store refuses requests; 0: it does not.", NATURAL),
        one_of(*[0] * 14, 1, 10, 11, 13, 14, 21, 1000, lower=(0, 11)),
    ] = 0
    refusing_s: Annotated[
        float,
        Flag("It refuses all of them for so long; 0: single ones.", NOT_NEGATIVE),
        one_of(0.0, 0.5, 3.0, lower=(0.0, 0.5)),
    ] = 0.0
    store_value_kib: Annotated[
        int,
        Flag(
            "The largest value that the store takes; 0: any.", NATURAL, words=("--store-value-kib",)
        ),
        one_of(0, 0, 0, 128, lower=(0,), of=LIN_KV),
    ] = 0
    store_kib_per_s: Annotated[
        int,
        Flag(
            "What passes between a node and the store each second; 0: anything.",
            NATURAL,
            words=("--store-kib-per-s",),
        ),
        one_of(0, 0, 0, 4_096, lower=(0,)),
    ] = 0
    large_kib: Annotated[
        int,
        Flag(
            "One more client sends values up to so large; 0: none does.",
            NATURAL,
            words=("--large-kib",),
        ),
        one_of(0, 0, 0, 0, 16, 200, lower=(0, 1, 16, 64), of=LIN_KV),
    ] = 0
    auditors: Annotated[
        int,
        Flag("Clients that commit and list offsets through all nodes.", NATURAL),
        one_of(0, 0, 1, 3, lower=(0, 1)),
    ] = 0
    idle_nodes: Annotated[
        int,
        Flag("Nodes, the last ones, to which no client of the workload talks.", NATURAL),
        one_of(0, 0, 1, 2, lower=(0, 1)),
    ] = 0
    backlog: Annotated[
        int,
        Flag("Messages that are in the log before the run begins.", NATURAL),
        one_of(0, 0, 0, 0, 0, 200, lower=(0, 10, 50), of=LIN_KV),
    ] = 0
    strays: Annotated[
        int,
        Flag("Copies of messages of its former life that come when a node lives again.", NATURAL),
        one_of(0, 0, 20, lower=(0, 1, 5)),
    ] = 0
    aftermath: Annotated[
        bool,
        Flag("Whether the run goes on until all is late, and compaction must have moved."),
        chance(0.3),
    ] = False
    mixed: Annotated[
        bool,
        Flag("Whether each life of a node has limits, pace and a shape for new logs of its own."),
        chance(0.8),
    ] = False
    crowds: Annotated[
        int,
        Flag("Crowds of programs that hand over, each within its own; 0: none does.", NATURAL),
        one_of(0, 1, 1, 2, lower=(0, 1), of=BUCKET),
    ] = 0
    conditions: Annotated[
        bool,
        Flag("Whether programs append where they expect a key to end, and with tokens."),
        chance(0.3, of=OURS),
    ] = False
    compactions: Annotated[
        int,
        Flag("Compactions that a program is asked for.", NATURAL),
        one_of(0, 3, 10, lower=LESS, of=BUCKET),
    ] = 0
    vacuums: Annotated[
        int,
        Flag("Vacuums that a program is asked for, each after a long time.", NATURAL),
        one_of(0, 0, 1, 3, lower=LESS, of=BUCKET),
    ] = 0
    stalls: Annotated[
        int,
        Flag("Programs that stand still for a long time, in which an operator vacuums.", NATURAL),
        one_of(0, 0, 1, 3, lower=LESS, of=BUCKET),
    ] = 0
    members: Annotated[
        int,
        Flag("How often a program becomes a member of a group of consumers.", NATURAL),
        one_of(*[0] * 7, 6, lower=LESS, of=BUCKET),
    ] = 0
    runs: Annotated[
        str,
        Flag("How programs keep old records.", click.Choice(["json", "parquet"])),
        one_of("json", "json", "json", "parquet", lower=("json",), of=OURS),
    ] = "json"
    retentions: Annotated[
        int,
        Flag("Retentions that a program is asked for, on a log of Parquet files.", NATURAL),
        one_of(0, 2, 6, lower=LESS, of=FILES),
    ] = 0
    readers: Annotated[
        int,
        Flag("Snapshots that a program reads, on a log of Parquet files.", NATURAL),
        one_of(0, 3, 10, lower=LESS, of=FILES),
    ] = 0
    sinks: Annotated[
        int,
        Flag("Commits of a sink, on a log of Parquet files.", NATURAL),
        one_of(0, 4, 12, lower=LESS, of=FILES),
    ] = 0
    fences: Annotated[
        int,
        Flag("How often the log is fenced, and opened again.", NATURAL),
        one_of(*[0] * 5, 2, lower=LESS, of=OURS),
    ] = 0
    closes: Annotated[
        int,
        Flag("Keys that are closed.", NATURAL),
        one_of(*[0] * 7, 2, lower=LESS, of=OURS),
    ] = 0
    ahead_s: Annotated[
        float,
        Flag(
            "How far an operator's clock is ahead; a bucket of JSON tells no times then.",
            NOT_NEGATIVE,
        ),
        one_of(0.0, 0.0, 3_720.0, of=BUCKET),
    ] = 0.0
    repeats: Annotated[
        bool,
        Flag("The client library of programs repeats conditional writes."),
        chance(0.5, of=BUCKET),
    ] = False
    value_bytes: Annotated[
        int,
        Flag("Bytes that a program adds to each message.", NATURAL),
        one_of(0, 0, 100, of=BUCKET),
    ] = 0
    omit: Annotated[tuple[int, ...], Flag("Leave out operations by number: 3,5-9.", NUMBERS)] = ()
    omit_faults: Annotated[
        tuple[int, ...], Flag("Leave out acts of faults by number.", NUMBERS)
    ] = ()

    @classmethod
    def draw(cls, seed: int, given: Mapping[str, Any] | None = None) -> "Scenario":
        """The scenario of a seed; the options in `given` are not drawn.

        Who gives one of those that lives differ in gets nodes that are alike.
        """
        given = dict(given or {})
        if given.keys() & LIVES.keys():
            given = {"mixed": False, **given}
        if given.get("store") == BUCKET:
            given = {"strategy": Random(f"simulate/{seed}/log").choice(LOGS), **given}
        drawn = {name: it.draw(Random(f"simulate/{seed}/{name}")) for name, it in DRAWS.items()}
        scenario = cls(seed, **drawn | given)
        unfit = scenario.unfit
        if scenario.store != BUCKET and scenario.strategy != LEADERLESS:
            unfit += HEAVY
        changes: dict[str, Any] = {name: DEFAULTS[name] for name in unfit if name not in given}
        if scenario.strategy != LEADERLESS:
            changes["mixed"] = False
        elif scenario.mixed:
            changes["value_bytes"] = 0  # nodes do not read the large values of programs
        if scenario.store == BUCKET:
            changes |= {name: value for name, value in scenario._calm.items() if name not in given}
        return replace(scenario, **changes)

    def command(self) -> str:
        """The command that runs this scenario, with nothing left to draw."""
        options = asdict(self)
        shown = [name for name, flag in FLAGS.items() if flag.kind is not NUMBERS or options[name]]
        return command_of(self.seed, {name: options[name] for name in shown})

    @property
    def unfit(self) -> list[str]:
        """The options that only runs of another kind have."""
        ours = (OURS, *[FILES] * (self.runs != "json")) if self.strategy == LEADERLESS else ()
        fit = {"", BUCKET, *ours} if self.store == BUCKET else {"", LIN_KV}
        return [name for name, it in DRAWS.items() if it.of not in fit]

    @property
    def problem(self) -> str:
        """Why it cannot be run, in words."""
        for name in self.unfit:
            if getattr(self, name) != DEFAULTS[name]:
                is_ours = self.store == BUCKET and DRAWS[name].of in (OURS, FILES)
                where = "this log, or of its --runs" if is_ours else f"--store {self.store}"
                return f"{FLAGS[name].words[0]} is no option of {where}"
        kept = LOGS if self.store == BUCKET else [*STRATEGIES]
        return "" if self.strategy in kept else f"no {self.strategy} in {self.store}: name another"

    @property
    def idle_names(self) -> tuple[str, ...]:
        """The nodes to which no client of the workload talks; there is always another."""
        return self.node_names[max(1, self.nodes - self.idle_nodes) :]

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(f"n{number}" for number in range(self.nodes))

    @property
    def bench_options(self) -> TestOptions:
        return TestOptions(
            workload="kafka",
            bin="simulated",
            nodes=self.node_names,
            concurrency=self.nodes * self.clients,
            seed=str(self.seed),
            **{name: getattr(self, name) for name in OF_BENCH},
        )

    @property
    def node_options(self) -> Options:
        return Options(
            freshness_s=self.freshness_ms / 1000,
            combine=self.combine,
            durable_commits=self.commits == "durable",
            limits=self.limits,
            pace=Pace(store_timeout_s=self.store_timeout_ms / 1000),
            shape=self.shape,
        )

    def options_of(self, node: str, life: int) -> Options:
        """Those of one life of a node: where the cluster is mixed, limits, pace and defaults of its own.

        So a node may come back with other options, and makes other logs than its peers would.
        """
        if not self.mixed:
            return self.node_options
        random = Random(f"simulate/{self.seed}/mixed/{node}/{life}")
        own = replace(self, **{name: it.draw(random) for name, it in LIVES.items()})
        if self.store == BUCKET:
            own = replace(own, **{name: own._calm[name] for name in LIVES.keys() & own._calm})
        nodes = random.choice((1, self.nodes, 10))
        page_bytes = random.choice((64, 256))
        shape = replace(own.shape.for_nodes(nodes), page_bytes=page_bytes)
        worth_s = random.choice((0.001, NODE.pace.message_worth_s, 0.05))
        pace = replace(own.node_options.pace, message_worth_s=worth_s)
        return own.node_options._replace(shape=shape, pace=pace)

    @property
    def least_options(self) -> Options:
        """Of all that a node of the cluster may have, those that promise least."""
        return self._bounds.node_options

    @property
    def _bounds(self) -> "Scenario":
        """With the bounds of what the lives of a mixed cluster draw for themselves."""
        bounds = {name: it.bound for name, it in LIVES.items() if it.bound is not None}
        return replace(self, **bounds) if self.mixed else self  # type: ignore[arg-type]

    @property
    def _calm(self) -> dict[str, Any]:
        """What becomes of options beside a bucket: a request is some messages there, and tails fill slowly."""
        return {name: it.calm.get(getattr(self, name)) for name, it in DRAWS.items() if it.calm}

    @property
    def limits(self) -> Limits:
        """Of a node. Its lines are as long as the registers of the log, or of any log of a mixed cluster."""
        return replace(self._limits, line_bytes=self._bounds.shape.register_bytes)

    @property
    def shape(self) -> Shape:
        """Of the log. Its registers are as small as the other sizes allow."""
        shape = Shape(
            seal_entries=self.seal_entries,
            seal_bytes=self.seal_bytes,
            segments_per_run=self.segments_per_run,
            page_children=2,
            page_bytes=256,
            runs=self.runs,  # type: ignore[arg-type]  # one of its choices
        ).for_nodes(self.nodes)
        segment_bytes = self._bounds._limits.segment_bytes(shape)
        run_bytes = (self.segments_per_run - 1) * segment_bytes
        return replace(shape, run_bytes=run_bytes, register_bytes=run_bytes + segment_bytes)

    @property
    def _limits(self) -> Limits:
        message_bytes = self.message_kib * 1024
        return Limits(
            lanes=self.lanes,
            batch_bytes=self.commit_kib * 512,
            committed_keys=4,
            memory_bytes=self.memory_kib * 1024,
            message_bytes=message_bytes,
            answer_bytes=min(2 * message_bytes, NODE.limits.answer_bytes),
        )


# By field. An option without a draw is only ever given; one whose `lower` is None is left as it is.
FLAGS: dict[str, Flag] = flags_of(Scenario)
DRAWS: dict[str, Draw] = declared(Scenario, Draw)
# The options that a scenario has from the bench, in the same form.
OF_BENCH = {each.name for each in fields(TestOptions)} & FLAGS.keys() - {"nodes", "store"}

LIVES = {name: it for name, it in DRAWS.items() if it.lives}
# What a strategy with a whole log in one register cannot bear.
HEAVY = ["store_value_kib", "store_kib_per_s", "large_kib", "backlog"]
DEFAULTS = {each.name: each.default for each in fields(Scenario)}


def command_of(seed: int, options: Mapping[str, Any]) -> str:
    """The command that runs a seed with these options."""
    return shlex.join([MAELSTROM, "simulate", "--seed", str(seed), *as_words(options, FLAGS)])
