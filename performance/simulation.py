"""Measure the speed of the simulator: `python -m performance.simulation`.

The speed is in virtual seconds a second of one core. The aim is at least 100 in the first row: 5 nodes at 100
operations a second without faults.
"""

import time
from dataclasses import replace
from functools import partial
from statistics import median

from leaderless.core.strategy import Identity, Trace
from performance.harness import in_turn, program, show_table, spread
from runs.collection import collected_quietly
from runs.faults import FAULTS
from simulation.objects import run as objects
from simulation.objects.bucket import EPOCH_S, Bucket
from simulation.objects.loop import VirtualEventLoop, run_virtual
from simulation.objects.model import Held
from simulation.objects.scenario import LEADERLESS
from simulation.objects.scenario import Scenario as Programs
from simulation.scenario import Scenario
from simulation.world import World

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
            world = World(scenario)
            world.refinement = world.refinement if held else None
            began_s = time.process_time()
            world.execute()
            took_s += time.process_time() - began_s
        virtual_s += world.virtual_s
        sent += world.network.clients.sent + world.network.servers.sent
    return virtual_s / took_s, sent / took_s


class NotHeld(Held):
    """Follows nothing."""

    def traced(self, _identity: Identity) -> Trace:
        return Trace()

    def changed(self, _key: str, _value: bytes | None) -> None: ...


def measure_programs(*scenarios: Programs, held: bool = True) -> tuple[float, float]:
    """Virtual seconds, and requests to the bucket, a second of CPU; `held`: as of `measure`."""
    virtual_s = took_s = sent = 0.0
    for scenario in scenarios:

        async def run(loop: VirtualEventLoop, scenario: Programs = scenario) -> Bucket:
            world = objects.World(scenario, loop)
            world.model = world.model if held else NotHeld()
            await world.execute()
            return world.bucket

        with collected_quietly():
            began_s = time.process_time()
            bucket = run_virtual(run)
            took_s += time.process_time() - began_s
        virtual_s += bucket.clock_s - EPOCH_S
        sent += sum(bucket.usage.requests.values())
    return virtual_s / took_s, sent / took_s


@program
def main(*, repetitions: int = 5) -> None:
    works = {name: partial(measure, scenario) for name, scenario in ROWS.items()}
    drawn = [Scenario.draw(seed, {"strategy": "leaderless"}) for seed in DRAWN]
    works[f"{len(drawn)} drawn seeds of leaderless"] = partial(measure, *drawn)
    works["the same, not held to the model"] = partial(measure, *drawn, held=False)
    works["leaderless, not held to the model"] = partial(measure, BASE, held=False)
    programs = [Programs.draw(seed, {"log": LEADERLESS}) for seed in DRAWN]
    works[f"{len(programs)} drawn seeds of programs"] = partial(measure_programs, *programs)
    works["the same programs, not held"] = partial(measure_programs, *programs, held=False)
    titles = ("scenario", "virtual s a second: median (lowest to highest)", "messages a second")
    found = {name: [*zip(*each, strict=True)] for name, each in in_turn(works, repetitions).items()}
    rows = (
        [name, spread(speeds, ".0f"), f"{median(sent):.0f}"]
        for name, (speeds, sent) in found.items()
    )
    show_table(titles, rows)


if __name__ == "__main__":
    main()
