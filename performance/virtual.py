"""Run the configurations of `make performance` on the virtual clock: `python -m performance.virtual`.

The figures are the cost of the protocol alone, without that of processes and of two cores: latencies
consist of network and waiting. They take minutes instead of an hour and are the same on every machine,
so many seeds can judge a change of the protocol. The cells are those of sweeps/comparison.toml. Each
figure is the median over the seeds, p99 with its lowest and highest. Server messages are divided by the
sends and polls that succeeded; `ok` is the lowest share of them that succeeded in a run.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from statistics import median
from typing import NamedTuple

import click

from bench.sweep.definition import Cell, read
from performance import ROOT, show_table, spread
from runs.collection import collected_quietly
from runs.history import Op
from runs.key_figures import latencies_ms
from runs.operations import Operation, operations, quantile
from simulation.scenario import OF_BENCH, Scenario
from simulation.world import World
from workloads.kafka import DEFAULT_KEY_COUNT

TITLES = (
    *("configuration", "commits", "send p50, ms", "p99 (lowest to highest)", "longest"),
    *("server messages/op", "ops/s", "ok"),
)
COMMITS = ("durable", "deferred")
SWEEP = ROOT / "sweeps" / "comparison.toml"
CELLS = {str(cell.axes["name"]): cell for cell in read(SWEEP).cells}  # whatever their strategy


class Figures(NamedTuple):
    """Of one run; latencies in ms, those without another word of sends."""

    p50: float
    p99: float
    longest: float
    messages: float
    per_second: float
    ok: float
    poll_p99: float


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([*CELLS]))
@click.option("--strategy", default="leaderless", show_default=True)
@click.option(
    "--commits",
    type=click.Choice([*COMMITS, "both"]),
    default="durable",
    show_default=True,
    help="How `leaderless` keeps committed offsets.",
)
@click.option("--seeds", default=8, show_default=True, help="From 1 on.")
@click.option("--time-limit", default=20.0, show_default=True, help="Virtual seconds of a run.")
@click.option(
    "--think-time", default=100, show_default=True, help="µs that a node takes for a line."
)
def main(
    *,
    names: tuple[str, ...],
    strategy: str,
    commits: str,
    seeds: int,
    time_limit: float,
    think_time: int,
) -> None:
    """Print a markdown table; NAMES are configurations, all by default."""

    def rows(pool: ProcessPoolExecutor) -> Iterator[list[str]]:
        for name, kept in product(names or CELLS, COMMITS if commits == "both" else [commits]):
            scenarios = [
                replace(scenario(CELLS[name], strategy, seed, time_limit, think_time), commits=kept)
                for seed in range(1, 1 + seeds)
            ]
            yield [name, kept, *cells(list(pool.map(measure, scenarios)))]

    with ProcessPoolExecutor() as pool:
        show_table(TITLES, rows(pool))


def cells(runs: list[Figures]) -> list[str]:
    p99 = spread((each.p99 for each in runs), ".0f")
    longest = max(each.longest for each in runs)
    middle = Figures(*map(median, zip(*runs, strict=True)))
    rest = (f"{longest:.0f}", f"{middle.messages:.2f}", f"{middle.per_second:.1f}")
    return [f"{middle.p50:.1f}", p99, *rest, f"{min(each.ok for each in runs):.3f}"]


def scenario(cell: Cell, strategy: str, seed: int, time_limit_s: float, think_us: int) -> Scenario:
    """The cell's run in the simulator."""
    options = cell.options
    same = {name: getattr(options, name) for name in OF_BENCH - {"recovery_time_s", "strict"}}
    same |= {"time_limit_s": time_limit_s, "key_count": options.key_count or DEFAULT_KEY_COUNT}
    nodes = len(options.nodes)
    return Scenario(
        seed=seed,
        strategy=strategy,
        nodes=nodes,
        clients=options.concurrency // nodes,
        think_us=think_us,
        **same,
    )


def measure(scenario: Scenario) -> Figures:
    """Run it. Raises `Violation` as the run does, because the figures of a wrong node mean nothing."""
    world = World(scenario)
    with collected_quietly():
        outcome = world.execute()
    return figures_of(outcome.history, world.network.servers.sent, scenario.time_limit_s)


def figures_of(history: Sequence[Op], server_messages: int, time_limit_s: float) -> Figures:
    """The figures of a run that has ended."""
    latency_ms, done = latencies_ms(history, time_limit_s)
    p50, p99, longest = (quantile(latency_ms["send"], q) or 0.0 for q in (0.5, 0.99, 1.0))
    succeeded = sum(map(len, latency_ms.values()))
    messages = server_messages / max(1, succeeded)
    asked = sum(each.f in latency_ms for each in _invoked(history, time_limit_s))
    per_second, ok = done / time_limit_s, succeeded / max(1, asked)
    poll_p99 = quantile(latency_ms["poll"], 0.99) or 0.0
    return Figures(p50, p99, longest, messages, per_second, ok, poll_p99)


def _invoked(history: Sequence[Op], limit_s: float) -> list[Operation]:
    return [each for each in operations(history) if each.invoked.time <= limit_s * 1e9]


if __name__ == "__main__":
    main()
