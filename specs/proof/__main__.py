"""`python -m specs.proof`: prove the models for every size, by z3, and again by cvc5.

Each law is shown to follow again from the laws before in each step. Then each wrong decision has to break its
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
from operator import call

import click

from specs.proof.checks import Report, check_broken, check_part, check_walk
from specs.proof.models import MODELS, small_configurations, wrong_configurations
from specs.proof.obligations import PROVED, UNKNOWN, parts
from specs.tlc import TlcUnavailableError

OF_EACH_DEPTH = 15
Piece = partial[Report]


@click.command(help=__doc__)
@click.option("--only", type=click.Choice(list(MODELS)), multiple=True, help="These models alone.")
@click.option("--law", default="", metavar="NAME", help="This law alone, of any action.")
@click.option("--broken", default="", metavar="NAME", help="This wrong configuration alone.")
@click.option("--most", default=OF_EACH_DEPTH, show_default=True, help="States of each depth.")
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, help="Processes.")
def main(*, only: Sequence[str], law: str, broken: str, most: int, jobs: int) -> None:
    began = time.perf_counter()
    pieces = [p for name in only or MODELS for p in pieces_of(name, law, broken, most)]
    reports = []
    try:
        with get_context("fork").Pool(jobs) as pool:
            for report in pool.imap_unordered(call, pieces):
                reports.append(report)
                click.echo(f"{len(reports):3} {_line(report)}", err=not report.wrong)
    except TlcUnavailableError as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    if not any(report.answers or report.told or report.wrong for report in reports):
        raise click.UsageError(f"nothing is named {law or broken}")
    told = [line for r in reports for line in r.told.splitlines()[1:]] if broken else []
    for line in (*told, *summary(reports), f"{time.perf_counter() - began:.0f} s"):
        click.echo(line)
    sys.exit(any(report.wrong for report in reports))


def pieces_of(
    name: str, law: str = "", wrong: str = "", most: int = OF_EACH_DEPTH
) -> Iterator[Piece]:
    """What is to be checked of a model, the longest first."""
    if not (law or wrong):
        yield from (partial(check_walk, each, most) for each in small_configurations(name))
    if not law:
        found = wrong_configurations(name)
        yield from (partial(check_broken, each) for each in found if wrong in ("", each.name))
    if not wrong:
        yield from (partial(check_part, name, part, law) for part in parts(MODELS[name]))


def _line(report: Report) -> str:
    if report.wrong:
        return "\n".join(("NO", *report.wrong))
    duration_s = sum(answer.z3_s + answer.cvc5_s for _, answer in report.answers)
    proved = f"{len(report.answers)} proved in {duration_s:.1f} s"
    return f"{report.title}: {report.told.partition(chr(10))[0] or proved}"


def summary(reports: Sequence[Report]) -> Iterator[str]:
    """Of each model how many were proved, by whom, in which time, and which took longest."""
    for model in dict.fromkeys(report.title.partition("/")[0] for report in reports):
        own = {n: a for r in reports for n, a in r.answers if n.startswith(f"{model}/")}
        if own:
            by_z3, by_cvc5 = ([getattr(a, by) for a in own.values()] for by in ("z3", "cvc5"))
            z3_s, cvc5_s = (sum(getattr(a, by) for a in own.values()) for by in ("z3_s", "cvc5_s"))
            slowest = max(own, key=lambda name: own[name].z3_s)
            silent = [name for name, answer in own.items() if answer.cvc5 == UNKNOWN]
            yield (
                f"{model}: {by_z3.count(PROVED)} of {len(own)} obligations proved by z3 in {z3_s:.1f} s, "
                f"{by_cvc5.count(PROVED)} by cvc5 too in {cvc5_s:.1f} s; "
                f"unknown to cvc5: {', '.join(silent) or 'none'}; "
                f"the slowest: {slowest} ({own[slowest].z3_s:.2f} s)"
            )
    wrong = sum(bool(report.wrong) for report in reports)
    yield f"{len(reports) - wrong} of {len(reports)} pieces as they should be"


if __name__ == "__main__":
    main()
