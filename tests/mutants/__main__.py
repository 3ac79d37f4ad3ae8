"""Write docs/mutants.md: `python -m tests.mutants > docs/mutants.md`; names choose some."""

import os
from collections.abc import Iterator
from textwrap import fill

import click

from simulation.pool import spread
from tests.mutants.cases import CASES, SECTIONS, look_for
from tests.mutants.harder import EQUIVALENT
from tests.mutants.kill import SEEDS_MAX, Kill
from tests.mutants.mutant import Mutant

HEADER = f"""\
# What the simulator finds

Each of these is wrong in one way that is known, and must be found by `./maelstrom simulate` within
{SEEDS_MAX} seeds, or by a test. `seeds` is how many that took, counted from seed 0; options that are not
named in `tests/mutants` were drawn. Written by `python -m tests.mutants > docs/mutants.md`;
`tests/mutants/test_mutants.py` holds it.
"""
COLUMNS = "| what | the rule it breaks | caught by | seeds |\n|---|---|---|---|"


@click.command()
@click.argument("names", nargs=-1)
@click.option("--seeds", default=SEEDS_MAX, show_default=True, help="Try so many.")
@click.option("--jobs", type=int, help="Processes; one a core.")
def main(names: tuple[str, ...], seeds: int, jobs: int | None) -> None:
    """Find what is wrong with NAMES, or with all; the exit status is 1 if something survives."""
    chosen = [name for name in CASES if not names or name in names]
    if unknown := sorted(set(names) - set(CASES)):
        raise click.UsageError(f"no {', '.join(unknown)} here; there are {', '.join(CASES)}")
    found: dict[str, Kill | None] = {}
    work = [(name, seeds) for name in chosen]
    for name, killed in spread(look_for, work, jobs or os.cpu_count() or 1):
        found[name] = killed
        click.echo(f"{len(found)} of {len(chosen)}: {name}, {killed or 'survives'}", err=True)
    click.echo(HEADER)
    for line in table(found, seeds):
        click.echo(line)
    raise SystemExit(None in found.values())


def table(found: dict[str, Kill | None], seeds: int) -> Iterator[str]:
    """The document after its header."""
    for title, cases in SECTIONS.items():
        rows = [row(name, found[name], seeds) for name, *_ in cases if name in found]
        if rows:
            yield from (f"## {title}\n", COLUMNS, *rows, "")
    if len(found) == len(CASES):
        yield from equivalents()
    killed = sum(each is not None for each in found.values())
    yield f"{killed} of {len(found)} found."


def equivalents() -> Iterator[str]:
    """Which mutants no test can find, and why."""
    yield "## Mutants that cannot matter\n"
    yield from map(item, EQUIVALENT)
    yield ""


def item(mutant: Mutant) -> str:
    """A mutant that is in no table."""
    text = f"- `{mutant.name}` breaks this: {mutant.rule}."
    return fill(text, 116, subsequent_indent="  ", break_on_hyphens=False)


def row(name: str, killed: Kill | None, seeds: int) -> str:
    """One line of the table."""
    how = f"`{killed.caught_by}` | {killed.seeds}" if killed else f"**survives** | {seeds}"
    return f"| `{name}` | {CASES[name].rule} | {how} |"


if __name__ == "__main__":
    main()
