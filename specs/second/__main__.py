"""`python -m specs.second`: check the small models a second time, without TLC.

Exit status: 0 when every verdict and every number of distinct states agrees with the manifest.
"""

import sys
import time
from collections.abc import Sequence

import click
from rich.console import Console
from rich.table import Table

from specs.manifest import PASS, SIZES, VIOLATION, Configuration, load
from specs.second.configurations import has_second_model, second_model, step_laws
from specs.second.explorer import Exploration, explore

MOST_STATES = 20_000  # a few seconds of Python


def check(configuration: Configuration, most: int = MOST_STATES) -> Exploration:
    """Explore a configuration's second model with the configuration's invariants.

    A model that TLC found to have more than `most` distinct states is not begun.
    """
    if (configuration.distinct_states or 0) > most:
        return Exploration(0, complete=False)
    laws = configuration.invariants
    return explore(second_model(configuration), laws, most, step_laws(configuration))


def disagreements(configuration: Configuration, found: Exploration) -> list[str]:
    """What differs from the manifest, which TLC is held to as well.

    An incomplete exploration agrees with nothing and contradicts nothing.
    """
    if not found.complete:
        return []
    verdict = _verdict(found)
    wrong = []
    if verdict != configuration.expect:
        wrong.append(f"TLC: {configuration.expect}; here: {verdict}")
    expected = configuration.distinct_states
    if verdict == PASS and expected not in (None, found.distinct_states):
        wrong.append(f"TLC: {expected} distinct states; here: {found.distinct_states}")
    return wrong


@click.command(help=__doc__)
@click.option("--size", type=click.Choice(SIZES), default="small", show_default=True)
@click.option("--only", multiple=True, metavar="TEXT", help="Models with this text in the title.")
@click.option("--most", default=MOST_STATES, show_default=True, help="Distinct states to visit.")
def main(*, size: str, only: Sequence[str], most: int) -> None:
    chosen = [
        c
        for c in load().configurations
        if c.size == size
        and has_second_model(c)
        and (not only or any(text in c.title for text in only))
    ]
    if not chosen:
        raise click.UsageError(f"no configuration with a second model matches {', '.join(only)}")
    table = Table("configuration", "verdict", "distinct states", "seconds", "agrees")
    wrong = unfinished = 0
    for configuration in chosen:
        start_s = time.perf_counter()
        found = check(configuration, most)
        differences = disagreements(configuration, found)
        wrong += bool(differences)
        unfinished += not found.complete
        table.add_row(
            configuration.title,
            _verdict(found),
            f"{found.distinct_states:,}",
            f"{time.perf_counter() - start_s:.1f}",
            "NO: " + "; ".join(differences) if differences else "yes" if found.complete else "?",
        )
    Console().print(table)
    decided = len(chosen) - unfinished
    click.echo(f"{decided - wrong} of {decided} configurations agree with TLC")
    if unfinished:
        click.echo(f"{unfinished} have more than {most:,} states: --most visits more")
    sys.exit(1 if wrong else 0)


def _verdict(found: Exploration) -> str:
    if not found.complete:
        return "unknown"
    return VIOLATION + found.broken_law if found.broken_law else PASS


if __name__ == "__main__":
    main()
