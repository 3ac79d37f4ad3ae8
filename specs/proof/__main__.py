"""`python -m specs.proof`: prove the models for every size, by z3, and again by cvc5.

Each law is shown to follow again from the invariant in each step. Then each wrong decision has to break its
law, and what the small configurations reach has to be states and steps of what was proved.

Exit status: 0 when all is proved and as it should be; 1 otherwise, also when z3 says unknown; 2 when TLC cannot
run.
"""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing import get_context

import click

from specs.proof.checks import Report, check_broken, check_part, check_walk
from specs.proof.models import PROOFS, right, small_configurations, wrong_configurations
from specs.proof.obligations import PROVED, UNKNOWN, parts
from specs.tlc import TlcUnavailableError

MOST_STATES = 1_000
Piece = partial[Report]


@click.command(help=__doc__)
@click.option("--only", type=click.Choice(list(PROOFS)), multiple=True, help="These models alone.")
@click.option("--law", default="", metavar="NAME", help="This law alone, of any action.")
@click.option("--broken", default="", metavar="NAME", help="This wrong configuration alone.")
@click.option("--most", default=MOST_STATES, show_default=True, help="States of a configuration.")
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, help="Processes.")
def main(*, only: Sequence[str], law: str, broken: str, most: int, jobs: int) -> None:
    began = time.perf_counter()
    pieces = [p for name in only or PROOFS for p in pieces_of(name, law, broken, most)]
    reports = []
    try:
        for report in reports_of(pieces, jobs):
            reports.append(report)
            click.echo(f"{len(reports):3} {_line(report)}", err=not report.wrong)
    except TlcUnavailableError as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    if not reports:
        raise click.UsageError(f"nothing is named {law or broken}")
    told = [line for r in reports for line in r.told.splitlines()[1:]] if broken else []
    for line in (*told, *summary(reports)):
        click.echo(line)
    click.echo(f"{time.perf_counter() - began:.0f} s")
    sys.exit(any(report.wrong for report in reports))


def reports_of(pieces: Sequence[Piece], jobs: int) -> Iterator[Report]:
    """What comes out of the pieces, as it comes; nothing of a piece that had nothing to check."""
    with get_context("fork").Pool(jobs) as pool:
        found = pool.imap_unordered(_run, pieces)
        yield from (report for report in found if report.answers or report.told or report.wrong)


def _run(piece: Piece) -> Report:
    return piece()


def pieces_of(
    name: str, law: str = "", wrong: str = "", most: int = MOST_STATES
) -> Iterator[Piece]:
    """What is to be checked of a model, the longest first."""
    if not (law or wrong):
        for configuration in small_configurations(name):
            yield partial(check_walk, configuration, most)
    if not law:
        for configuration in wrong_configurations(name):
            if wrong in ("", configuration.name):
                yield partial(check_broken, configuration)
    if not wrong:
        for part in parts(right(name)):
            yield partial(check_part, name, part, law)


def _line(report: Report) -> str:
    if report.wrong:
        return "\n".join(("NO", *report.wrong))
    duration_s = sum(answer.duration_s for _, answer in report.answers)
    proved = f"{len(report.answers)} proved in {duration_s:.1f} s"
    return f"{report.title}: {report.told.partition(chr(10))[0] or proved}"


def summary(reports: Sequence[Report]) -> Iterator[str]:
    """How many were proved and by whom, and which took longest."""
    answers = [each for report in reports for each in report.answers]
    if answers:
        by_z3 = sum(answer.z3 == PROVED for _, answer in answers)
        silent = [name for name, answer in answers if answer.cvc5 == UNKNOWN]
        name, slowest = max(answers, key=lambda each: each[1].duration_s)
        most = f"{name} ({slowest.duration_s:.1f} s)"
        yield f"{by_z3} of {len(answers)} obligations proved by z3; the slowest: {most}"
        agrees = sum(answer.cvc5 == PROVED for _, answer in answers)
        unknown = f"unknown: {len(silent)} ({', '.join(silent)})" if silent else "none unknown"
        yield f"{agrees} proved by cvc5 too; {unknown}"
    wrong = sum(bool(report.wrong) for report in reports)
    yield f"{len(reports) - wrong} of {len(reports)} pieces as they should be"


if __name__ == "__main__":
    main()
