"""`./maelstrom glomers`: grade a node by a challenge of Gossip Glomers, and by what that does not ask."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import click
from rich.text import Text

from bench import glomers as challenges
from bench.commands.sweep import exit_status, guarded
from bench.failure import EXIT_CRASHED
from bench.flags import COUNT, OneOf
from bench.glomers import Challenge, Graded, Simulated
from bench.options import OfNode, junit_option, program_at
from bench.sweep import making, table
from bench.sweep.jobs import Job, jobs_of
from bench.sweep.making import OUTPUT, Index, last_words, repeat
from bench.terminal import Console
from bench.verdict.printing import print_failure
from runs.facts import EMBEDDED
from runs.sweeps import VALID, CheckGrade, Grade, Key, Row, keep_grade, verdict_of
from workloads.mixes import TOPOLOGIES

REAL = 3  # runs of each check on real processes, where the seeds are simulated


@click.command(cls=OfNode)
@click.argument("challenge", type=OneOf(challenges.numbers()), metavar="CHALLENGE")
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[-- OPTIONS OF THE NODE]")
@click.option("--bin", "program", required=True, help="The program that runs one node.")
@click.option("--seeds", default=REAL, show_default=True, type=COUNT, help="Runs of each check.")
@click.option("--seed", help="Of the first runs.  [default: glomers-CHALLENGE]")
@click.option(
    "--topology",
    type=OneOf(tuple(TOPOLOGIES)),
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
    program: str,
    seeds: int,
    report: Path | None,
    store: str,
    **more: str | None,
) -> None:
    """Grade a node by a challenge of Gossip Glomers, such as 3b (docs/bench/glomers.md).

    Beyond 3 seeds, a node on a kit maelstrom_node.* is simulated with all, and runs 3 in real time.
    First the challenge's own command and bounds, from several seeds; then what it does not ask, such as kills.
    Runs are kept in results/glomers-CHALLENGE/; those of the grading before are moved aside.
    Exit status, of the challenge alone: 0 it is passed, 1 a run fails, 2 one is unknown, 255 one crashed,
    or not all could be run; 254 bad arguments.
    """
    given = {"bin": program_at(program), "args": shlex.join(args) or None, **more}
    changes = {name: value for name, value in given.items() if value is not None}
    chosen, console = challenges.read(challenge, seeds, changes), Console()
    simulated = _simulate(chosen, seeds, console) if seeds > REAL else {}
    chosen = challenges.read(challenge, REAL, changes) if simulated else chosen
    index = Index(Path(store) / chosen.sweep.name)
    index.set_aside()
    asked, beyond = (jobs_of(chosen.some(asked=asked), EMBEDDED) for asked in (True, False))

    def make() -> None:
        console.print(Text(chosen.sweep.about), style="bold", soft_wrap=True)
        making.run_all(asked, index, console)
        if any(each.count(VALID) for each in challenges.grade(chosen, index.rows().values(), {})):
            console.print("Beyond what it asks:", style="bold")
            making.run_all(beyond, index, console)

    stopped = guarded(index, make, "The same command begins anew.")
    graded = challenges.grade(chosen, index.rows().values(), simulated)
    jobs = {job.key: job for job in (*asked, *beyond)}
    asked_for = [Row("", {}, verdict=each.verdict) for each in graded if each.check.asked]
    status = EXIT_CRASHED if stopped else exit_status(asked_for)
    grade = Grade(
        verdict_of(status),
        challenges.verdict(chosen.number, graded),
        [_told(each, jobs) for each in graded if each.rows],
    )
    _print(console, grade, index.folder)
    with suppress(OSError):  # a page then shows the runs alone
        keep_grade(index.folder, grade)
    if stopped:
        print_failure(console, stopped)
    if report:
        table.write_junit(report, chosen.sweep.name, list(_cases(graded, jobs, index.folder)))
    sys.exit(status)


def _simulate(chosen: Challenge, seeds: int, console: Console) -> dict[str, Simulated]:
    """What the seeds of each check show on a virtual clock, by its cell; empty if one cannot be run."""
    found: dict[str, Simulated] = {}
    for each in chosen.checks:
        above = import_module("simulation.commands.simulate_node")  # of the bench
        told = above.simulated(each.cell.options, seeds)
        if isinstance(told, str):
            console.print(Text(f"Not simulated, so all run in real time: {told}"), soft_wrap=True)
            return {}
        found[each.cell.key] = told
        console.print(Text(f"{each.name}: {told.line()}"), soft_wrap=True)
    return found


def _told(graded: Graded, jobs: Mapping[Key, Job]) -> CheckGrade:
    """The line of a check; where a run went wrong, what to read of it and how to repeat it."""
    told, row = CheckGrade(graded.verdict, graded.line()), graded.shown
    if graded.simulated_wrong:
        return replace(told, repeat=graded.simulated_wrong.repeat)
    if row is None:
        return told
    job = jobs[row.key]
    return replace(told, run=row.run, output=str(job.folder(Path()) / OUTPUT), repeat=repeat(job))


def _print(console: Console, grade: Grade, folder: Path) -> None:
    """Print a line for each check, with what to read and to repeat where it went wrong; then the grade."""
    console.print()
    for each in grade.checks:
        console.print(Text(each.line), soft_wrap=True)
        if each.output:
            console.print(Text(f"    read    {folder / each.output}"), soft_wrap=True)
        if each.repeat:
            console.print(Text(f"    repeat  {each.repeat}"), soft_wrap=True)
    console.print(Text(grade.sentence, style="bold"), soft_wrap=True)


def _cases(graded: Sequence[Graded], jobs: Mapping[Key, Job], folder: Path) -> Iterator[table.Case]:
    """A test case for each run. What is wrong beyond the challenge is skipped, and says why."""
    for each in graded:
        rows = {row.key: row for row in each.rows}
        cases = [
            table.case_of(job.title, rows.get(job.key), last_words(job, folder))
            for job in jobs.values()
            if job.cell.key == each.check.cell.key
        ]
        if each.simulated:
            row = Row("", {}, verdict=each.simulated.verdict)
            cases.append(table.case_of(f"{each.check.name}, simulated", row, each.sentence()))
        for case in cases:
            yield (
                replace(case, problem=table.SKIPPED, message=each.sentence())
                if case.problem and not each.check.asked
                else case
            )
