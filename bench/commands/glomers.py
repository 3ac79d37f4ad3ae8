"""`./maelstrom glomers`: grade a node by a challenge of Gossip Glomers, and by what that does not ask."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.text import Text

from bench import glomers as challenges
from bench.commands.sweep import EXIT_CRASHED, exit_status, guarded
from bench.glomers import Challenge, Graded
from bench.options import junit_option
from bench.sweep import making, plan, table
from bench.sweep.making import OUTPUT, Index, last_words, repeat
from bench.sweep.plan import Job
from bench.terminal import Console
from bench.verdict import print_failure
from runs.facts import EMBEDDED
from runs.sweeps import VALID, Key
from workloads.mixes import TOPOLOGIES


@click.command()
@click.argument("challenge", type=click.Choice(challenges.numbers()))
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[-- OPTIONS OF THE NODE]")
@click.option(
    "--bin",
    "program",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The program that runs one node.",
)
@click.option(
    "--seeds", default=3, show_default=True, type=click.IntRange(1), help="Runs of each check."
)
@click.option("--seed", help="Of the first runs.  [default: glomers-CHALLENGE]")
@click.option(
    "--topology",
    type=click.Choice(tuple(TOPOLOGIES)),
    help="Which neighbours a broadcast node is given: a suggestion, as the challenges say.",
)
@click.option(
    "--store", default="results", show_default=True, help="The folder in which runs are stored."
)
@junit_option
def glomers(
    challenge: str,
    args: tuple[str, ...],
    *,
    program: Path,
    seeds: int,
    report: Path | None,
    store: str,
    **more: str | None,
) -> None:
    """Grade a node by a challenge of Gossip Glomers (docs/glomers.md).

    First the challenge's own command and bounds, from several seeds; then what it does not ask, such as kills.
    Runs are kept in results/glomers-CHALLENGE/; those of the grading before are moved aside.
    Exit status: 0 the challenge is passed, whatever lies beyond it, 1 a run fails, 2 one is unknown,
    254 bad arguments, 255 one crashed, or not all could be run.
    """
    changes = {name: value for name, value in more.items() if value is not None}
    changes |= {"bin": str(program.absolute())} | ({"args": shlex.join(args)} if args else {})
    chosen = challenges.read(challenge, seeds, changes)
    index = Index(Path(store) / chosen.sweep.name)
    index.set_aside()
    console = Console()
    asked, beyond = (plan.jobs(chosen.some(asked=asked), EMBEDDED) for asked in (True, False))

    def make() -> None:
        console.print(Text(chosen.sweep.about), style="bold", soft_wrap=True)
        making.run_all(asked, index, console, again=False, discard=False)
        if any(each.count(VALID) for each in challenges.grade(chosen, index.rows().values())):
            console.print("Beyond what it asks:", style="bold")
            making.run_all(beyond, index, console, again=False, discard=False)

    stopped = guarded(index, make, "The same command begins anew.")
    graded = challenges.grade(chosen, index.rows().values())
    jobs = {job.key: job for job in (*asked, *beyond)}
    _print(console, chosen, graded, jobs, index.folder)
    if stopped:
        print_failure(console, stopped)
    if report:
        table.write_junit(report, chosen.sweep.name, list(_cases(graded, jobs, index.folder)))
    rows = [row for each in graded if each.check.asked for row in each.rows]
    sys.exit(EXIT_CRASHED if stopped else exit_status(rows))


def _print(
    console: Console,
    chosen: Challenge,
    graded: Sequence[Graded],
    jobs: Mapping[Key, Job],
    folder: Path,
) -> None:
    """A line for each check, with the command that repeats what went wrong; then the grade."""
    console.print()
    for each in graded:
        if each.rows:
            console.print(Text(each.line()), soft_wrap=True)
        if row := each.shown:
            job = jobs[row.key]
            console.print(Text(f"    read    {job.folder(folder) / OUTPUT}"), soft_wrap=True)
            console.print(Text(f"    repeat  {repeat(job)}"), soft_wrap=True)
    console.print(Text(challenges.verdict(chosen.number, graded), style="bold"), soft_wrap=True)


def _cases(graded: Sequence[Graded], jobs: Mapping[Key, Job], folder: Path) -> Iterator[table.Case]:
    """A test case for each run. What is wrong beyond the challenge is skipped, and says why."""
    for each in graded:
        rows = {row.key: row for row in each.rows}
        for job in (job for job in jobs.values() if job.cell.key == each.check.cell.key):
            case = table.case_of(job.title, rows.get(job.key), last_words(job, folder))
            if case.problem and not each.check.asked:
                case = replace(case, problem=table.SKIPPED, message=each.sentence())
            yield case
