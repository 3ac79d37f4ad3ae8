"""What arrival in turn costs: `python -m performance.arrival`, on the virtual clock.

Runs `leaderless` on 5 nodes with 4 clients each at rate 200, at latencies of 0, 10 and 100 ms, once with each
kind of arrival (`bench.arrival`), and prints the medians over the seeds. The figures are the same on every
machine.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from statistics import median
from typing import NamedTuple

import click

from bench.arrival import ARRIVALS
from performance import show_table
from runs.collection import collected_quietly
from runs.history import NEMESIS
from runs.key_figures import JUDGED, latencies_ms
from runs.operations import quantile
from simulation.scenario import Scenario
from simulation.world import World

TITLES = ("latency", "arrival", "operations", "send p50, ms", "p99", "poll p50, ms", "p99")
LATENCIES = ((0, "constant"), (10, "constant"), (10, "exponential"), (100, "exponential"))
TIME_LIMIT_S = 20.0


class Figures(NamedTuple):
    """Of one run: operations of clients in all, and latencies in ms."""

    operations: float
    send_p50: float
    send_p99: float
    poll_p50: float
    poll_p99: float


@click.command(help=__doc__)
@click.option("--seeds", default=5, show_default=True, help="From 1 on.")
def main(seeds: int) -> None:
    def rows(pool: ProcessPoolExecutor) -> Iterator[list[str]]:
        for latency_ms, dist in LATENCIES:
            for arrival in ARRIVALS:
                given = (scenario(seed, arrival, latency_ms, dist) for seed in range(1, 1 + seeds))
                middle = map(median, zip(*pool.map(measure, given), strict=True))
                operations, *latencies = middle
                shown = [f"{operations:.0f}", *(f"{each:.1f}" for each in latencies)]
                yield [f"{latency_ms} ms {dist}", arrival, *shown]

    with ProcessPoolExecutor() as pool:
        show_table(TITLES, rows(pool))


def scenario(seed: int, arrival: str, latency_ms: int, dist: str) -> Scenario:
    """A calm run with the node's own limits."""
    return Scenario(
        seed=seed,
        nodes=5,
        clients=4,
        rate=200.0,
        key_count=10,
        max_writes_per_key=16,
        time_limit_s=TIME_LIMIT_S,
        latency_ms=latency_ms,
        latency_dist=dist,
        arrival=arrival,
    )


def measure(scenario: Scenario) -> Figures:
    """Run it. Raises `Violation` as the run does."""
    world = World(scenario)
    with collected_quietly():
        history = world.execute().history
    count = sum(op.type == "invoke" and op.process != NEMESIS for op in history)
    latency_ms, _ = latencies_ms(history, TIME_LIMIT_S)
    latencies = (quantile(latency_ms[f], q) or 0.0 for f in JUDGED for q in (0.5, 0.99))
    return Figures(count, *latencies)


if __name__ == "__main__":
    main()
