"""Run seeds: `python -m tests.sim FIRST [COUNT]`. Prints each scenario that fails, and what failed."""

import time
import traceback
from collections import Counter

import click

from simulation.garbage import collected_quietly
from tests.sim.scenario import Scenario
from tests.sim.world import run


@click.command()
@click.argument("first", type=int)
@click.argument("count", type=int, default=1)
def main(first: int, count: int) -> None:
    """Run COUNT seeds from FIRST on; the exit status is 1 if one of them fails."""
    failed, counts, began = 0, Counter(), time.perf_counter()
    for seed in range(first, first + count):
        scenario = Scenario.draw(seed)
        if count == 1:
            click.echo(scenario)
        try:
            with collected_quietly():
                report = run(scenario)
            assert not report.anomalies(), report.anomalies()
            counts += report.counts
            counts["operations"] += len(report.history) // 2
        except Exception as error:
            failed += 1
            click.echo(f"seed {seed}: {type(error).__name__} {str(error)[:300]}\n  {scenario}")
            if count == 1:
                traceback.print_exc()
    click.echo(f"{failed} of {count} seeds failed, {time.perf_counter() - began:.1f} s, {counts}")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
