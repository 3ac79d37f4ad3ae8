"""Find out which numbers of the policy pay: docs/performance/ablation.md, and ablation-real.md beside it.

    python -m performance.ablation [--fields rest_every,hedge_deviations] [--docs docs/performance]
    python -m performance.ablation --real 6 [--busy]
    python -m performance.ablation --candidate 'rest_every=1e9,late_s_max=1e9'

Each number of `performance.ablated` gets other values, one at a time; the neutral one comes first. All rows of
`performance.ablation_rows` are run with it and without it, with the same seeds. Where the outcome is in doubt,
more seeds are run. The virtual clock shows what the protocol costs, and flatters: a node costs nothing there.
So `--real` runs real processes, one run after the other, with `--busy` beside a core that another process keeps
busy. Results are kept, and a command that is given again goes on, until the code of the node changes.
"""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from math import exp
from pathlib import Path

import click

from bench.flags import names_of
from performance import ROOT, table_lines
from performance import sweep_records as of_sweep
from performance.ablated import ALTERNATIVES, Changes, default_of, missing, told
from performance.ablation_effects import (
    ERRORS,
    JUDGED,
    PAIRS_MIN,
    Ablation,
    Baseline,
    Effect,
    Found,
    Kept,
    verdict,
)
from performance.ablation_rows import ONLY, ROWS, Run

KEPT = ROOT / "results" / "ablation" / "runs.jsonl"

FIELD_TITLES = ("number", "default", "other value", "what it worsens", "what it betters", "verdict")
PAGE = "ablation.md", "on the virtual clock"
SHOWN = 2  # effects on either side; more are counted


def table_of(name: str, alternatives: Sequence[Found]) -> Iterator[list[str]]:
    """The rows of a number."""
    says, shown, default = verdict(alternatives), name, ""
    if name in ALTERNATIVES:
        shown, default = f"`{name}`", told({name: default_of(name)}).rpartition(" ")[2]
    for found in alternatives:
        sides = (_told(found.most(sign)) for sign in (1, -1))
        yield [shown, default, told(found.changes), *sides, says]
        shown = default = says = ""


def _told(effects: Sequence[Effect]) -> str:
    words = [each.told() for each in effects[:SHOWN]]
    if len(effects) > SHOWN:
        words.append(f"and {len(effects) - SHOWN} more rows")
    return "; ".join(words) or "–"


def _candidate(_context: click.Context, _option: object, texts: tuple[str, ...]) -> list[Changes]:
    try:
        return [
            {name: float(value) for name, value in (pair.split("=") for pair in text.split(","))}
            for text in texts
        ]
    except ValueError:
        raise click.BadParameter("give NAME=VALUE,NAME=VALUE") from None


@click.command(help=__doc__)
@click.option("--fields", type=names_of(tuple(ALTERNATIVES)), default="all", help="Which numbers.")
@click.option("--rows", type=names_of(tuple(ROWS)), default="all", help="Which rows.")
@click.option(
    "--candidate",
    "candidates",
    multiple=True,
    callback=_candidate,
    help="Values that are changed together, measured first; names as in --fields.",
)
@click.option("--seeds", default=2, show_default=True, help="Runs of each row, from seed 1 on.")
@click.option(
    "--more", default=8, show_default=True, help="Runs of the defaults, and where in doubt."
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; one a core.")
@click.option("--real", "real_s", default=0.0, help="Seconds of a run with real processes.")
@click.option("--busy", is_flag=True, help="Keep a core busy beside real processes.")
@click.option(
    "--kept",
    type=click.Path(path_type=Path),
    default=KEPT,
    help="The file of results.",
    show_default=True,
)
@click.option("--docs", type=click.Path(path_type=Path), help="The folder to write the page into.")
def main(
    *,
    fields: tuple[str, ...],
    rows: tuple[str, ...],
    candidates: list[Changes],
    seeds: int,
    more: int,
    jobs: int | None,
    real_s: float,
    busy: bool,
    kept: Path,
    docs: Path | None,
) -> None:
    if strangers := missing(ALTERNATIVES):
        raise click.ClickException(f"performance/ablated.py has to be told of {strangers}")
    if busy and not real_s:
        raise click.UsageError("--busy: a busy core does nothing to the virtual clock. Add --real.")
    chosen = [row for row in rows if ROWS[row].is_real or not real_s]
    lines: list[str] = []
    with ProcessPoolExecutor(jobs) as pool:
        base = Run("", {}, 0, real_s=real_s, busy=busy)
        ablation = Ablation(Kept(kept, real=real_s > 0), pool, base, seeds, more)

        def tables() -> Iterator[list[str]]:
            for number, changes in enumerate(candidates, 1):
                general = [row for row in chosen if row not in ONLY]
                found = Found(changes, list(ablation.effects(general, changes)))
                yield from table_of(f"candidate {number}", [found])
            for name in fields:
                concerned = [row for row in chosen if name in ONLY.get(row, {name})]
                alternatives = [
                    Found(changes, list(ablation.effects(concerned, changes)))
                    for changes in ALTERNATIVES[name]
                ]
                yield from table_of(name, alternatives)

        for line in table_lines(FIELD_TITLES, tables()):
            click.echo(line)
            lines.append(line)
        found = (_row(row, real_s, more, ablation.default(row)) for row in chosen)
        shown = list(table_lines(ROW_TITLES, found))
        click.echo("\n".join(["", *shown]))
    if docs:
        text = "\n\n".join([_about(real_s, more), *map("\n".join, (lines, shown))])
        name, where = ("ablation-real.md", "with real processes") if real_s else PAGE
        of_sweep.write_page(docs / name, f"Which numbers of the policy pay, {where}", text)


ROW_TITLES = ("row", "what", *(name for name, _ in JUDGED.values()))


def _row(row: str, real_s: float, more: int, runs: Baseline) -> list[str]:
    part, variant, _ = ROWS[row]
    cells = [
        f"{runs.median(figure):.3g} ± {exp(runs.chance(figure, more)) - 1:.0%}" for figure in JUDGED
    ]
    return [
        row,
        f"{part.title}; {variant.rpartition(' ')[2]}; {real_s or part.time_limit_s:g} s",
        *cells,
    ]


def _about(real_s: float, more: int) -> str:
    words = [".venv/bin/python", "-m", "performance.ablation", *sys.argv[1:]]
    where = (
        "On the virtual clock, where a node takes 0.1 ms for a line and nothing else costs time."
    )
    if real_s:
        load = os.getloadavg()[0]
        where = (
            f"With real processes on {os.cpu_count()} cores; load average at the end {load:.1f}."
        )
    return f"""\
{of_sweep.command_lines(shlex.join(words))}

{where}
Each number gets other values, one at a time. The first one is neutral, as if its mechanism were not there.
What it worsens is what the default buys, and what it betters is what the default costs: of each row the
figure that moves most. A figure counts when it moves by 5 % more than {ERRORS} standard errors, of pairs of the
same seed where there are {PAIRS_MIN} or more. Ratios are geometric means over seeds, figures medians. Behind ±
stand {ERRORS} standard errors of a difference of two means of {more} runs without pairs. A number that *moves
nothing* may move a figure by less than that: more seeds tell more."""


if __name__ == "__main__":
    main()
