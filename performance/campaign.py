"""Run many seeds of each strategy under each fault: `python -m performance.campaign --seeds 1000`.

Prints a markdown table, strategy x fault: seeds run, seeds with an anomaly, virtual hours; then the command
that replays each failing seed. The exit status is 1 if there is one. `--seeds`: so many of each cell, from
`--seed` on. `--storms`: of none, each fault, all. `--jobs`: processes, one a core.
"""

import os
from collections.abc import Iterator
from itertools import product
from typing import Annotated

import click

from bench.flags import names_of
from performance.harness import program, show_table
from runs.faults import FAULTS
from simulation.scenario import SURVIVORS, command_of
from simulation.seeds import run_seeds

STORMS = {"none": (), **{fault: (fault,) for fault in FAULTS}, "all": FAULTS}
STRATEGIES = tuple(dict.fromkeys(SURVIVORS))


@program
def main(
    *,
    seeds: int = 100,
    seed: int = 0,
    strategies: Annotated[tuple[str, ...], names_of(STRATEGIES)] = STRATEGIES,
    storms: Annotated[tuple[str, ...], names_of(tuple(STORMS))] = tuple(STORMS),
    jobs: Annotated[int | None, click.IntRange(min=1)] = None,
) -> None:
    failing: list[str] = []

    def cells() -> Iterator[list[str]]:
        for strategy, storm in product(strategies, storms):
            given: dict[str, object] = {"strategy": strategy, "nemesis": STORMS[storm]}
            label, span = f"{strategy}, {storm}", range(seed, seed + seeds)
            tally = run_seeds(span, given, jobs or os.cpu_count() or 1, True, label=label)
            failing.extend(
                f"- {', '.join(short.names)}: `{command_of(short.seed, given)}`"
                for short in tally.failed
            )
            figures = (tally.run, len(tally.failed), f"{tally.virtual_s / 3600:.1f}")
            yield [f"`{strategy}`", storm, *map(str, figures)]

    show_table(("strategy", "fault", "seeds", "with an anomaly", "virtual hours"), cells())
    if failing:
        click.echo("\n".join(["\nFailing:\n", *failing]))
    raise SystemExit(bool(failing))


if __name__ == "__main__":
    main()
