"""Print the table of mutants: `python -m tests.mutants > docs/mutants.md`; names of mutants choose some."""

import sys

import click

from simulation.garbage import collected_quietly
from tests.mutants.kill import SEEDS_MAX, kill
from tests.mutants.mutants import MUTANTS

HEADER = f"""\
# Mutants of the leaderless log

Each breaks one rule of the core by a few words (`tests/mutants/mutants.py`) and must be killed by a simulated
world (`tests/sim`), whose oracle names the invariant that no longer holds. `seeds` is how many worlds that
took, counted from seed 0; {SEEDS_MAX} are tried. Written by `python -m tests.mutants > docs/mutants.md`.

| mutant | the rule it breaks | caught by | seeds |
|---|---|---|---|"""


@click.command()
@click.argument("names", nargs=-1)
def main(names: tuple[str, ...]) -> None:
    """Kill the mutants NAMES, or all; the exit status is 1 if one survives."""
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    click.echo(HEADER)
    killed = 0
    for mutant in chosen:
        with collected_quietly():
            found = kill(mutant, range(SEEDS_MAX))
        killed += found is not None
        how = f"`{found.caught_by}` | {found.seeds}" if found else f"**survives** | {SEEDS_MAX}"
        click.echo(f"| `{mutant.name}` | {mutant.rule} | {how} |")
        sys.stdout.flush()
    click.echo(f"\n{killed} of {len(chosen)} killed.")
    raise SystemExit(killed < len(chosen))


if __name__ == "__main__":
    main()
