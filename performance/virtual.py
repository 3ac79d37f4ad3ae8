"""What the protocol costs on the virtual clock, beside `cas`: docs/performance/protocol-cost.md.

    python -m performance.virtual [NAME...] [--seeds 4] [--docs docs/performance]

Neither processes nor processors cost time here: latencies consist of network and waiting. So the figures are
the same on every machine, and many seeds can judge a change of the protocol. NAMES are configurations, all by
default; only all of them make the page. The cells are those of bench/sweep/comparison.toml. Server messages
are divided by the sends and polls that succeeded; *ok* is the share of them that succeeded.
"""

from collections.abc import Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import click

from bench.sweep.plan import read
from performance.age import line
from performance.harness import A_PATH, ROOT, command_lines, program, write_page
from performance.strategies import (
    CONFIGURATIONS,
    ROWS_OF_VERDICTS,
    SUBJECT,
    Bound,
    Configuration,
    markdown,
)
from runs import figures
from runs.collection import collected_quietly
from runs.facts import Results, Settings, Told, grouped
from runs.figures import ASKED
from runs.operations import Timings
from runs.sweeps import Cell, Row
from runs.traffic import share
from simulation.scenario import OF_BENCH, Scenario
from simulation.world import World
from workloads.kafka import DEFAULT_KEY_COUNT

DEFERRED, CAS = "leaderless, deferred", "cas"
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    SUBJECT: {"commits": "durable"},
    DEFERRED: {"commits": "deferred"},
    CAS: {"strategy": "cas"},
}
CELLS = {  # whatever their strategy
    str(cell.axes["name"]): cell for cell in read(ROOT / "bench/sweep/comparison.toml").cells
}
TITLES = {each.name: each.title for each in CONFIGURATIONS}
SHOWN = ("server_messages_per_op", "throughput_ops_per_s", "send_p50_ms", "send_p99_ms")
ABOUT = """\
{command}

On the virtual clock computing takes no time. Medians of {seeds} seeds, lowest and highest in brackets.
`leaderless, deferred` has `--commits deferred`."""
K = TypeVar("K")
Numbers = dict[str, float | None]  # of a run, by the names of `runs.figures`


class VirtualRun(NamedTuple):
    """A cell of the comparison for so many virtual seconds; a scenario with `changes` is `named` anew."""

    cell: str
    time_limit_s: float
    aims: tuple[Bound, ...] = ()
    changes: Mapping[str, Any] = MappingProxyType({})
    named: str = ""

    @property
    def title(self) -> str:
        """Name it on the page."""
        return self.named or TITLES[self.cell]

    def scenario(self, **changes: Any) -> Scenario:
        """Make its scenario; `changes` come last."""
        options = CELLS[self.cell].options
        same = {name: getattr(options, name) for name in OF_BENCH - {"recovery_time_s", "strict"}}
        own = {
            "seed": 1,
            "time_limit_s": self.time_limit_s,
            "nodes": len(options.nodes),
            "clients": options.concurrency // len(options.nodes),
            "key_count": options.key_count or DEFAULT_KEY_COUNT,
            "think_us": 100,
        }
        return Scenario(**{**same, **own, **self.changes, **changes})


_OPS, _MESSAGES, _P50, _P99, _OK = (
    "throughput_ops_per_s", "server_messages_per_op", "send_p50_ms", "send_p99_ms", "ok_fraction",
)  # fmt: skip
_BESIDE_CAS = ("strategy", CAS)
_FASTER, _SOONER = (Bound(name, "at most", 1.0, _BESIDE_CAS) for name in (_P50, _P99))
_AS_CAS = (
    Bound(_OPS, "at least", 1.0, _BESIDE_CAS),
    _SOONER,
    Bound(_MESSAGES, "at most", 1 / 3, _BESIDE_CAS),
)
MANY = {"nodes": 25, "clients": 1, "rate": 500.0}
PARTS = {
    "2-nodes": VirtualRun(
        "2-nodes", 6.0,
        (Bound(_MESSAGES, "at most", 0.95, of=DEFERRED), Bound(_P50, "at most", 4.5, of=DEFERRED)),
    ),
    "16-nodes": VirtualRun("16-nodes", 2.0, (Bound(_MESSAGES, "at most", 1.0),)),
    "25-nodes": VirtualRun(
        "2-nodes", 6.0, (Bound(_MESSAGES, "at most", 1.6),), MANY, "25 nodes, 1n, rate 500"
    ),
    "5-nodes-100ms": VirtualRun("5-nodes-100ms", 20.0, (Bound(_OK, "at least", 0.97), *_AS_CAS)),
    "5-nodes-100ms-partitions": VirtualRun(
        "5-nodes-100ms-partitions", 20.0, (Bound(_OK, "at least", 0.95), *_AS_CAS)
    ),
    "5-nodes-partitions": VirtualRun(
        "5-nodes-partitions", 20.0, (_SOONER, Bound(_MESSAGES, "at most", 1.8))
    ),
    "16-nodes-10ms": VirtualRun("16-nodes-10ms", 6.0, (Bound(_P99, "at most", 150.0),)),
    "3-nodes-100ms": VirtualRun("3-nodes-100ms", 20.0, (_FASTER, _SOONER)),
}  # fmt: skip


def measure(scenario: Scenario) -> Numbers:
    """Run it: messages are divided by what succeeded, and *ok* is of the main phase.

    Raises `Violation` as the run does, because the figures of a wrong node mean nothing.
    """
    with collected_quietly():
        world = World(scenario)
        history, sent = world.execute().history, world.network.servers.sent
        del world  # nothing of it is left to be kept
    told = Told(
        Settings("simulation", time_limit_s=scenario.time_limit_s),
        Results({"net": {"servers": {"msg-count": sent}}}),
    )
    found = figures.measure(history, (), told).numbers
    limit_ns = scenario.time_limit_s * 1e9
    ends = [e.outcome for e in Timings(history) if e.f in ASKED and e.invoked_ns <= limit_ns]
    ok = share(ends.count("ok"), len(ends))
    judged_by_nobody = dict.fromkeys(ROWS_OF_VERDICTS)  # a simulation has its own judges
    return {**found, **judged_by_nobody, _MESSAGES: found["server_messages_per_ok"], _OK: ok}


def measured(scenarios: Mapping[K, Scenario], seeds: int, pool: Executor) -> dict[K, Cell]:
    """The runs of each scenario, of so many seeds from its own on."""
    names = [name for name in scenarios for _ in range(seeds)]
    runs = [replace(one, seed=one.seed + n) for one in scenarios.values() for n in range(seeds)]
    rows = (Row("virtual", {}, figures=found) for found in pool.map(measure, runs))
    return {name: Cell(each) for name, each in grouped(zip(names, rows, strict=True)).items()}


@program(__doc__)
@click.argument("names", type=click.Choice([*PARTS]), nargs=-1)
@click.option("--seeds", default=4)
@click.option("--docs", type=A_PATH)
def main(names: tuple[str, ...], *, seeds: int, docs: Path | None) -> None:
    sections = []
    with ProcessPoolExecutor() as pool:
        for name in names or PARTS:
            part = PARTS[name]
            scenarios = {(name, each): part.scenario(**VARIANTS[each]) for each in VARIANTS}
            title = f"{part.title}; {part.time_limit_s:g} s"
            configuration = Configuration(name, title, "", part.aims)
            sections.append(
                markdown([configuration], [*VARIANTS], measured(scenarios, seeds, pool), SHOWN)
            )
            click.echo(sections[-1])
    if docs and not names:
        command = f".venv/bin/python -m performance.virtual --seeds {seeds} --docs docs/performance"
        write_page(
            docs / "protocol-cost.md",
            "What the protocol costs",
            line(["leaderless/core"]),
            "\n\n".join([ABOUT.format(command=command_lines(command), seeds=seeds), *sections]),
        )


if __name__ == "__main__":
    main()
