"""What arrival in turn costs: `python -m performance.arrival`, on the virtual clock.

Runs `leaderless` on 5 nodes with 4 clients each at rate 200, at latencies of 0, 10 and 100 ms, once with each
kind of arrival (`bench.arrival`), and prints the medians over the seeds. The figures are the same on every
machine.
"""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product

from bench.arrival import ARRIVALS
from performance.harness import program, show_table
from performance.virtual import measured
from simulation.scenario import Scenario

TITLES = ("latency", "arrival", "operations", "send p50, ms", "p99", "poll p50, ms", "p99")
SHOWN = {"operations": 0, "send_p50_ms": 1, "send_p99_ms": 1, "poll_p50_ms": 1, "poll_p99_ms": 1}
LATENCIES = ((0, "constant"), (10, "constant"), (10, "exponential"), (100, "exponential"))
CALM = Scenario(
    seed=1, nodes=5, clients=4, rate=200.0, key_count=10, max_writes_per_key=16, time_limit_s=20.0
)


@program
def main(*, seeds: int = 5) -> None:
    scenarios = {
        (f"{latency_ms} ms {dist}", arrival): replace(
            CALM, latency_ms=latency_ms, latency_dist=dist, arrival=arrival
        )
        for (latency_ms, dist), arrival in product(LATENCIES, ARRIVALS)
    }
    with ProcessPoolExecutor() as pool:
        found = measured(scenarios, seeds, pool)
    middles = {
        name: [
            f"{each.middle:.{decimals}f}"
            for figure, decimals in SHOWN.items()
            if (each := cell.summary(figure))
        ]
        for name, cell in found.items()
    }
    show_table(TITLES, ([*name, *cells] for name, cells in middles.items()))


if __name__ == "__main__":
    main()
