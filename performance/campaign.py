"""Run many seeds of each strategy under each fault: `python -m performance.campaign --seeds 1000`.

Prints a markdown table, strategy x fault: seeds run, seeds with an anomaly, virtual hours; then the command
that replays each failing seed. The exit status is 1 if there is one.
"""

import os
from collections.abc import Iterator
from itertools import product

import click

from bench.flags import names_of
from performance import show_table
from runs.faults import FAULTS
from simulation.scenario import SURVIVORS, command_of
from simulation.seeds import run_seeds

STORMS: dict[str, tuple[str, ...]] = {
    "none": (),
    **{fault: (fault,) for fault in FAULTS},
    "all": FAULTS,
}
STRATEGIES = tuple(dict.fromkeys(SURVIVORS))


@click.command()
@click.option("--seeds", default=100, show_default=True, help="So many of each cell.")
@click.option("--seed", default=0, show_default=True, help="The first.")
@click.option("--strategies", type=names_of(STRATEGIES), default="all", show_default=True)
@click.option(
    "--storms", type=names_of(tuple(STORMS)), help="Of none, each fault, all. [default: each]"
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; one a core.")
def main(
    seeds: int,
    seed: int,
    strategies: tuple[str, ...],
    storms: tuple[str, ...] | None,
    jobs: int | None,
) -> None:
    """Run a campaign and print its table."""
    failing: list[str] = []

    def cells() -> Iterator[list[str]]:
        for strategy, storm in product(strategies, storms or STORMS):
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
