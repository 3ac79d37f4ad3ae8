"""What a simulated run is: its options, each drawn from the seed when it is not given.

Swarm testing [Groce, Zhang, Eide, Chen, Regehr: Swarm Testing, ISSTA 2012]: a run with every fault and every
knob at its worst mostly tests how little still works; many runs, each without some of them, find more. Each
option has its own stream of randomness, so giving one leaves the draws of the others as they are.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from bench.nemesis.partition import REAL_SHAPES, SHAPES
from bench.nemesis.targets import MIXED
from bench.options import TestOptions
from leaderless.core.limits import Limits
from leaderless.core.strategy import Options
from runs.faults.names import FAULTS

SURVIVORS = ("leaderless", "leaderless", "cas", "prefetch-sealed")  # leaderless twice as often


@dataclass(frozen=True, slots=True)
class Scenario:
    """The options of one run; those of the bench mean what they mean in `./maelstrom test`.

    `clients` per node; `think_us`: mean time a node takes for a line, distributed as `think_dist` says;
    `freshness_ms` to `store_timeout_ms` are the node's options, the next three its limits. `omit` and
    `omit_faults`: numbers of operations and acts of faults that are left out (`simulation.omit`).
    """

    seed: int
    strategy: str = "leaderless"
    nodes: int = 3
    clients: int = 2
    rate: float = 100.0
    time_limit_s: float = 4.0
    recovery_time_s: float = 10.0
    latency_ms: int = 3
    latency_dist: str = "exponential"
    think_us: int = 100
    think_dist: str = "constant"
    key_count: int = 4
    max_writes_per_key: int = 128
    nemesis: tuple[str, ...] = ()
    nemesis_interval_s: float = 1.0
    nemesis_targets: str = MIXED
    partition_shapes: tuple[str, ...] = REAL_SHAPES
    strict: bool = True
    freshness_ms: float = 90.0
    combine: bool = True
    lanes: int = 4
    memory_kib: int = 262_144
    store_timeout_ms: float = 1_000.0
    seal_entries: int = 256
    seal_bytes: int = 8_192
    segments_per_run: int = 16
    omit: tuple[int, ...] = ()
    omit_faults: tuple[int, ...] = ()

    @staticmethod
    def draw(seed: int, given: Mapping[str, Any] | None = None) -> "Scenario":
        """The scenario of a seed; the options in `given` are not drawn."""
        given = given or {}
        drawn = {
            name: draw(Random(f"simulate/{seed}/{name}"))
            for name, draw in DRAWS.items()
            if name not in given
        }
        return Scenario(seed=seed, **drawn | dict(given))

    @property
    def node_names(self) -> tuple[str, ...]:
        """n0, n1, ..."""
        return tuple(f"n{number}" for number in range(self.nodes))

    @property
    def bench_options(self) -> TestOptions:
        """What the bench is told."""
        return TestOptions(
            workload="kafka",
            bin="simulated",
            args=(),
            nodes=self.node_names,
            concurrency=self.nodes * self.clients,
            rate=self.rate,
            time_limit_s=self.time_limit_s,
            seed=str(self.seed),
            latency_ms=self.latency_ms,
            latency_dist=self.latency_dist,
            nemesis=self.nemesis,
            nemesis_interval_s=self.nemesis_interval_s,
            nemesis_targets=self.nemesis_targets,
            partition_shapes=self.partition_shapes,
            recovery_time_s=self.recovery_time_s,
            key_count=self.key_count,
            max_writes_per_key=self.max_writes_per_key,
            strict=self.strict,
        )

    @property
    def node_options(self) -> Options:
        """What each node is told."""
        return Options(
            freshness_s=self.freshness_ms / 1000,
            combine=self.combine,
            limits=Limits(
                lanes=self.lanes,
                seal_entries=self.seal_entries,
                seal_bytes=self.seal_bytes,
                segments_per_run=self.segments_per_run,
                memory_bytes=self.memory_kib * 1024,
                store_timeout_s=self.store_timeout_ms / 1000,
            ),
        )

    def options(self) -> dict[str, Any]:
        """All options by name, the seed first."""
        return asdict(self)


def _draw_faults(random: Random) -> tuple[str, ...]:
    """Each fault is absent from most runs, and all of them from some."""
    if random.random() < 1 / 8:
        return ()
    return tuple(fault for fault in FAULTS if random.random() < 0.4)


# Option -> how it is drawn. What is not here is only ever given.
DRAWS: dict[str, Any] = {
    "strategy": lambda random: random.choice(SURVIVORS),
    "nodes": lambda random: random.randint(1, 5),
    "clients": lambda random: random.randint(1, 4),
    "rate": lambda random: random.choice([30.0, 100.0, 300.0]),
    "time_limit_s": lambda random: random.choice([2.0, 4.0, 8.0]),
    "latency_ms": lambda random: random.choice([0, 1, 3, 20, 50]),
    "latency_dist": lambda random: random.choice(["constant", "uniform", "exponential"]),
    "think_us": lambda random: random.choice([20, 100, 500]),
    "think_dist": lambda random: random.choice(["constant", "uniform", "exponential"]),
    "key_count": lambda random: random.choice([1, 4, 10]),
    "max_writes_per_key": lambda random: random.choice([16, 128, 1024]),
    "nemesis": _draw_faults,
    "nemesis_interval_s": lambda random: random.choice([0.3, 1.0, 3.0]),
    "nemesis_targets": lambda random: random.choice([MIXED, MIXED, "one", "minority", "all"]),
    "partition_shapes": lambda random: random.choice([REAL_SHAPES, tuple(SHAPES)]),
    "freshness_ms": lambda random: random.choice([0.0, 10.0, 90.0]),
    "combine": lambda random: random.random() < 0.8,
    "lanes": lambda random: random.choice([1, 2, 4]),
    "memory_kib": lambda random: random.choice([4, 262_144]),
    "store_timeout_ms": lambda random: random.choice([300.0, 1_000.0]),
    "seal_entries": lambda random: random.choice([3, 16, 256]),
    "seal_bytes": lambda random: random.choice([1_024, 8_192]),
    "segments_per_run": lambda random: random.choice([2, 4, 16]),
}
