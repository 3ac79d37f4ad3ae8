"""Measure the speed of the simulator, and its limit: `python -m performance.simulation`.

The speed is in virtual seconds a second of one core. A profile gives the share of each part of the code.
The aim is at least 100 in the first row: 5 nodes at 100 operations a second without faults.
"""

import cProfile
import pstats
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median

import click

from performance import ROOT, show_table, spread
from runs.collection import collected_quietly
from runs.faults import FAULTS
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
PARTS = ("leaderless", "simulation", "bench", "workloads")


@click.command()
@click.option("--repetitions", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--profile", is_flag=True, help="Tell where the time of the first row goes.")
def main(repetitions: int, profile: bool) -> None:
    """Print a markdown table of the simulator's speed."""
    titles = ("scenario", "virtual s a second: median (lowest to highest)", "messages a second")
    show_table(titles, (row(name, scenario, repetitions) for name, scenario in ROWS.items()))
    if profile:
        click.echo()
        for part, share in shares(BASE).most_common():
            click.echo(f"- {part}: {share:.0f} %")


def row(name: str, scenario: Scenario, repetitions: int) -> list[str]:
    speeds, messages = zip(*(measure(scenario) for _ in range(repetitions)), strict=True)
    return [name, spread(speeds, ".0f"), f"{median(messages):.0f}"]


def measure(scenario: Scenario) -> tuple[float, float]:
    """Virtual seconds, and messages, a second of CPU; the checker's time is not in it."""
    with collected_quietly():
        world = World(scenario)
        began_s = time.process_time()
        world.execute()
        took_s = time.process_time() - began_s
    sent = world.network.clients.sent + world.network.servers.sent
    return world.virtual_s / took_s, sent / took_s


def shares(scenario: Scenario) -> Counter[str]:
    """Percent of the time in each package of the project; built-ins count for their caller."""
    profile = cProfile.Profile()
    with collected_quietly():
        profile.runcall(World(scenario).execute)
    spent: Counter[str] = Counter()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]  # not in the stubs
    for (file, _, _), (_, _, own_s, _, callers) in stats.items():
        if file == "~" and callers:
            for (caller, _, _), (_, _, own_of_caller_s, _) in callers.items():
                spent[_part(caller)] += own_of_caller_s
        else:
            spent[_part(file)] += own_s
    total = sum(spent.values())
    return Counter({part: 100 * each / total for part, each in spent.items()})


def _part(file: str) -> str:
    path = Path(file)
    if not path.is_relative_to(ROOT):
        return "Python's own"
    folder = path.relative_to(ROOT)
    return folder.parts[0] if folder.parts[0] in PARTS else "Python's own"


if __name__ == "__main__":
    main()
