"""Measure the speed of the simulator: `python -m performance.simulation`.

The speed is in virtual seconds a second of one core. The aim is at least 100 in the first row: 5 nodes at 100
operations a second without faults.
"""

import time
from dataclasses import replace
from functools import partial
from statistics import median

from performance.harness import in_turn, program, show_table, spread
from runs.collection import collected_quietly
from runs.faults import FAULTS
from simulation.bucket_world import world_of
from simulation.programs import BUCKET
from simulation.scenario import Scenario

BASE = Scenario(
    seed=1, nodes=5, clients=2, rate=100.0, time_limit_s=60.0, recovery_time_s=1.0, latency_ms=0
)
ROWS = {
    "leaderless": BASE,
    "leaderless, 10 ms latency": replace(BASE, latency_ms=10),
    "leaderless, rate 1000": replace(BASE, rate=1000.0, time_limit_s=10.0),
    "leaderless, all faults": replace(BASE, nemesis=FAULTS, nemesis_interval_s=3.0),
    "cas": replace(BASE, strategy="cas"),
    "prefetch-sealed": replace(BASE, strategy="prefetch-sealed"),
}
DRAWN = range(100, 160)


def measure(*scenarios: Scenario, held: bool = True) -> tuple[float, float]:
    """Virtual seconds, and messages, a second of CPU; the checker's time is not in it.

    `held`: whether each step is held to the model (`simulation.refinement`), as it is in every other run.
    """
    virtual_s = took_s = sent = 0.0
    for scenario in scenarios:
        with collected_quietly():
            world = world_of(scenario)
            world.refinement = world.refinement if held else None
            began_s = time.process_time()
            world.execute()
            took_s += time.process_time() - began_s
        virtual_s += world.virtual_s
        sent += world.network.clients.sent + world.network.servers.sent
    return virtual_s / took_s, sent / took_s


@program
def main(*, repetitions: int = 5) -> None:
    works = {name: partial(measure, scenario) for name, scenario in ROWS.items()}
    drawn = [Scenario.draw(seed, {"strategy": "leaderless"}) for seed in DRAWN]
    works[f"{len(drawn)} drawn seeds of leaderless"] = partial(measure, *drawn)
    works["the same, not held to the model"] = partial(measure, *drawn, held=False)
    works["leaderless, not held to the model"] = partial(measure, BASE, held=False)
    programs = [Scenario.draw(seed, {"store": BUCKET, "strategy": "leaderless"}) for seed in DRAWN]
    works[f"{len(programs)} drawn seeds of programs"] = partial(measure, *programs)
    titles = ("scenario", "virtual s a second: median (lowest to highest)", "messages a second")
    found = {name: [*zip(*each, strict=True)] for name, each in in_turn(works, repetitions).items()}
    rows = (
        [name, spread(speeds, ".0f"), f"{median(sent):.0f}"]
        for name, (speeds, sent) in found.items()
    )
    show_table(titles, rows)


if __name__ == "__main__":
    main()
