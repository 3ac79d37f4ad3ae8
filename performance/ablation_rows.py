"""The rows of an ablation, and one run of a row: on the virtual clock, or with real processes."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from subprocess import Popen
from typing import Any, NamedTuple

import orjson

from leaderless.core.strategy import Options
from performance import ROOT
from performance.ablated import Changes, varied
from performance.bench_capacity import run as run_bench
from performance.protocol_cost import DEFERRED, DURABLE, Part
from performance.virtual import Figures, figures_of, measure
from simulation.oracle import Violation
from simulation.scenario import Scenario

VARIED_NODE = ROOT / "performance" / "nodes" / "varied.py"
BUSY = "import os\nos.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\nwhile True: pass"
TEMPORARILY_UNAVAILABLE = 11


class Row(NamedTuple):
    """A configuration. `is_real`: real processes can run it, because the simulator adds nothing to it."""

    part: Part
    variant: str = DURABLE
    is_real: bool = True

    def scenario(self, seed: int) -> Scenario:
        """One run."""
        return self.part.scenario(self.variant, seed)


def _part(title: str, cell: str, seconds: float, **change: Any) -> Part:
    return Part(title, cell, seconds, (), partial(_changed, change))


def _changed(change: dict[str, Any], scenario: Scenario) -> Scenario:
    return replace(scenario, **change)


_TWO = _part("2 nodes, 2n, rate 1000", "2-nodes", 4.0)
_SIXTEEN = _part("16 nodes, 2n, rate 10 000", "16-nodes", 0.5)
_STORE: dict[str, Any] = {"nodes": 3, "clients": 2, "rate": 100.0, "latency_ms": 3}
_KILLS: dict[str, Any] = {**_STORE, "nemesis": ("kill",), "nemesis_interval_s": 2.0}
_KILLS |= {"seal_entries": 16, "segments_per_run": 2}

ROWS = {
    "lone client": Row(_part("1 node, 1n, rate 1000", "2-nodes", 3.0, nodes=1, clients=1)),
    "2x2 durable": Row(_TWO),
    "2x2 deferred": Row(_TWO, DEFERRED),
    "16x2 durable": Row(_SIXTEEN),
    "16x2 deferred": Row(_SIXTEEN, DEFERRED),
    "25x1": Row(_part("25 nodes, 1n, rate 500", "2-nodes", 2.0, nodes=25, clients=1, rate=500.0)),
    "5x2 10ms calm": Row(_part("5 nodes, 2n, rate 1000, latency 10 ms", "5-nodes-calm", 10.0)),
    "5x2 10ms cut": Row(
        _part(
            "5 nodes, 2n, rate 1000, latency 10 ms, partitions every 2 s",
            "5-nodes-partitions",
            16.0,
        )
    ),
    "5x4 100ms calm": Row(
        _part("5 nodes, 4n, rate 200, latency 100 ms exponential", "5-nodes-100ms", 40.0)
    ),
    "5x4 100ms cut": Row(
        _part(
            "5 nodes, 4n, rate 200, latency 100 ms exponential, partitions every 3 s",
            "5-nodes-100ms-partitions",
            40.0,
        )
    ),
    "store silent": Row(
        _part(
            "3 nodes, 2n, rate 100, latency 3 ms; every 3 s the store is late or silent for some nodes",
            "2-nodes",
            30.0,
            **_STORE,
            nemesis=("store",),
            nemesis_interval_s=3.0,
        )
    ),
    "store refuses some": Row(
        _part(
            "3 nodes, 2n, rate 100, latency 3 ms; the store refuses a tenth of all requests",
            "2-nodes",
            20.0,
            **_STORE,
            refusal_code=TEMPORARILY_UNAVAILABLE,
        ),
        is_real=False,
    ),
    "store refuses all": Row(
        _part(
            "3 nodes, 2n, rate 100, latency 3 ms; the store refuses everything for 3 of 10 s",
            "2-nodes",
            10.0,
            **_STORE,
            refusal_code=TEMPORARILY_UNAVAILABLE,
            refusing_s=3.0,
        ),
        is_real=False,
    ),
    "far store": Row(
        _part(
            "2 nodes, 2n, rate 10, latency 300 ms; a call takes twice the store timeout",
            "2-nodes",
            40.0,
            nodes=2,
            clients=2,
            rate=10.0,
            latency_ms=300,
            store_timeout_ms=300.0,
        ),
        is_real=False,
    ),
    "kills": Row(
        _part("3 nodes, 2n, rate 100, latency 3 ms; kills; short runs", "2-nodes", 20.0, **_KILLS),
        is_real=False,
    ),
    "little memory": Row(
        _part(
            "3 nodes, 2n, rate 100, latency 3 ms; old messages are read back",
            "2-nodes",
            10.0,
            **_STORE,
            memory_kib=4,
            seal_entries=16,
            segments_per_run=2,
        ),
        is_real=False,
    ),
    "leader": Row(_part("2 nodes, 2n, strategy leader", "2-nodes", 4.0, strategy="leader")),
}
_OPTIONS = [each.name for each in fields(Scenario)]
ONLY = {"leader": {"push_period_s"}}  # rows that have nothing to say of other numbers


@dataclass(frozen=True)
class Varied(Scenario):
    """A scenario whose nodes have other numbers."""

    changes: Changes = field(default_factory=dict)

    @property
    def node_options(self) -> Options:
        """Options of each node."""
        return varied(Scenario.node_options.fget(self), self.changes)  # type: ignore[attr-defined]


class Run(NamedTuple):
    """One run of a row."""

    row: str
    changes: Changes
    seed: int
    real_s: float = 0.0  # seconds with real processes; 0: on the virtual clock
    busy: bool = False

    @property
    def scenario(self) -> Varied:
        """What is run."""
        same = ROWS[self.row].scenario(self.seed)
        given = {name: getattr(same, name) for name in _OPTIONS}
        scenario = Varied(**given, changes=self.changes)
        if not self.real_s:
            return scenario
        return replace(scenario, time_limit_s=self.real_s, recovery_time_s=1.0)

    @property
    def key(self) -> str:
        """Names the run in the file of results: whatever decides how it ends, but the code."""
        whole = repr((self.scenario, self.real_s, self.busy, sorted(self.changes.items())))
        return blake2b(whole.encode(), digest_size=12).hexdigest()

    def measure(self) -> Figures | str:
        """Its figures, or what went wrong, in words."""
        try:
            return self._real() if self.real_s else measure(self.scenario)
        except Violation as violation:
            return f"broken: {violation.name}"
        except RecursionError:
            return "broken: RecursionError"

    def _real(self) -> Figures:
        scenario = self.scenario
        options = replace(
            scenario.bench_options,
            bin=str(VARIED_NODE),
            args=(
                orjson.dumps(self.changes).decode(),
                *("--strategy", scenario.strategy, "--commits", scenario.commits),
            ),
        )
        with busy_core(on=self.busy), tempfile.TemporaryDirectory() as folder:
            outcome, _ = run_bench(options, Path(folder))
        return figures_of(outcome.history, outcome.network.servers.sent, scenario.time_limit_s)


@contextmanager
def busy_core(*, on: bool) -> Iterator[None]:
    """Keep the first core busy with another process."""
    if not on:
        yield
        return
    process = Popen([sys.executable, "-c", BUSY])
    try:
        yield
    finally:
        process.kill()
        process.wait()
