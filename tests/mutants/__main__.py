"""Find what is wrong with each mutant, print tables, and write found.toml: `python -m tests.mutants [NAMES]`.

With names, only these are looked for, and nothing is written.
"""

import os
from collections.abc import Iterator
from textwrap import fill

import click

from simulation.pool import spread
from tests.mutants.cases import CASES, EQUIVALENT, SECTIONS, look_for
from tests.mutants.kill import FOUND, SEEDS_MAX, Kill
from tests.mutants.mutant import Mutant

COLUMNS = "| what | the rule it breaks | caught by | seeds |\n|---|---|---|---|"
HEAD = "# By python -m tests.mutants: after how many seeds from 0 each is found, and what says so first."
BY_TEST = """\
## Found by a test

{killed} of {count}: `tests/mutants/*.toml` have the rule, the place and the test of each.
"""


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
    click.echo("\n".join(table(found, seeds)))
    if not names:
        FOUND.write_text("\n".join((HEAD, "", *kept(found), "")))
    raise SystemExit(None in found.values())


def kept(found: dict[str, Kill | None]) -> Iterator[str]:
    """The lines of found.toml; what a test finds names its test where it is broken."""
    for name, case in CASES.items():
        if (killed := found.get(name)) and not case.test:
            yield f'"{name}" = {{ seeds = {killed.seeds}, caught_by = "{killed.caught_by}" }}'


def table(found: dict[str, Kill | None], seeds: int) -> Iterator[str]:
    """Tables: what seeds show, section by section, then what tests show."""
    by_test = [name for name, case in CASES.items() if case.test and name in found]
    for title, cases in SECTIONS.items():
        by_seed = [name for name, *_ in cases if name in found and name not in by_test]
        rows = [row(name, found[name], seeds) for name in by_seed]
        if rows:
            yield from (f"## {title}\n", COLUMNS, *rows, "")
    if by_test:
        killed = sum(found[name] is not None for name in by_test)
        yield BY_TEST.format(killed=killed, count=len(by_test))
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
    """One line of a table of seeds."""
    how = f"`{killed.caught_by}` | {killed.seeds}" if killed else f"**survives** | {seeds}"
    return f"| `{name}` | {CASES[name].rule} | {how} |"


if __name__ == "__main__":
    main()
