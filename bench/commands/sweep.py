"""`./maelstrom sweep`: run a matrix of tests, resumable, and show the outcome of each cell."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

import workloads
from bench import engine
from bench.failure import (
    EXIT_CRASHED,
    EXIT_INVALID,
    EXIT_UNKNOWN,
    EXIT_VALID,
    RunFailure,
    unwritable,
)
from bench.flags import COUNT, OneOf
from bench.options import junit_option
from bench.stores.names import missing as lack_of
from bench.sweep import making, plan, table
from bench.sweep.axes import NAMES, Value
from bench.sweep.jobs import Job, finished, jobs_of, missing, seconds_left
from bench.sweep.making import Index, last_words, repeat, write_machine
from bench.system import sigterm_as_interrupt
from bench.terminal import Console
from bench.verdict.printing import print_failure
from runs.facts import EMBEDDED, JEPSEN, grouped
from runs.sweeps import CRASHED, Row


def _pairs(
    _context: click.Context, _flag: click.Parameter, words: Sequence[str]
) -> dict[str, list[Value]]:
    for word in words:
        if "=" not in word or word.partition("=")[0] not in NAMES:
            raise click.BadParameter(
                f"{word}: write KEY=VALUE, where KEY is one of {', '.join(NAMES)}."
            )
    pairs = (word.split("=", 1) for word in words)
    return grouped((name, plan.value_of(text)) for name, text in pairs)


@click.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.toml")
@click.option("--dry-run", is_flag=True, help="List the cells and how long they take; run nothing.")
@click.option("--again", is_flag=True, help="Also repeat runs that did not end as expected.")
@click.option("--fresh", is_flag=True, help="Begin anew; the sweep that is there is moved aside.")
@click.option("--discard", is_flag=True, help="Keep only the figures of runs that end as expected.")
@click.option("--only", multiple=True, callback=_pairs, help="KEY=VALUE: these cells only.")
@click.option("--set", "changes", multiple=True, callback=_pairs, help="KEY=VALUE in every cell.")
@click.option("--repetitions", type=COUNT, help="In place of the number in the file.")
@click.option(
    "--store", default="results", show_default=True, help="The folder in which sweeps are stored."
)
@click.option("--name", help="The folder in the store.  [default: the file's name]")
@junit_option
@click.option(
    "--engine",
    "asked",
    type=OneOf((EMBEDDED, JEPSEN)),
    help="For cells that name none. As for `test`: the real tool when MAELSTROM names it.",
)
def sweep(
    file: Path,
    *,
    dry_run: bool,
    again: bool,
    fresh: bool,
    discard: bool,
    only: Mapping[str, Sequence[Value]],
    changes: Mapping[str, Sequence[Value]],
    repetitions: int | None,
    store: str,
    name: str | None,
    report: Path | None,
    asked: str | None,
) -> None:
    """Run every cell of a matrix, and keep the runs and an index in results/NAME/.

    A KEY is an option of `maelstrom test` or of the node, as in the file (docs/bench/sweeps.md).
    The same command goes on where an interrupted one stopped: finished runs are not repeated.
    Exit status: 0 every run ended as expected (valid, unless the file says otherwise), 1 one did
    not, 2 one is unknown, 254 bad arguments, 255 one crashed, or not all could be run.
    """
    # Into a file, a table is not cut to a terminal's width.
    console = Console(width=None if sys.stdout.isatty() else 160)
    chosen = plan.read(file, {key: values[-1] for key, values in changes.items()})
    chosen = replace(
        chosen, name=name or chosen.name, repetitions=repetitions or chosen.repetitions
    )
    if chosen.name in workloads.NAMES:
        raise click.UsageError(f"{chosen.name} is a workload's folder: give another --name.")
    usual = JEPSEN if engine.choose(asked, dict(os.environ)) else EMBEDDED
    planned = jobs_of(plan.restrict(chosen, only), usual)
    index = Index(Path(store) / chosen.name)

    if dry_run:
        console.print(table.cells(chosen, planned))
        rows = finished(planned, index.rows())
        todo = missing(planned, rows, again=again)
        left_s = making.duration(seconds_left(todo, planned, rows))
        all_runs = making.so_many_runs(len(planned))
        console.print(f"{all_runs}, {len(todo)} to make: about {left_s}", highlight=False)
        return
    _need_stores(planned)
    if fresh:
        index.set_aside()
    stopped = guarded(
        index,
        lambda: making.run_all(planned, index, console, again=again, discard=discard),
        "Give the same command again; it continues there.",
    )
    rows = finished(planned, index.rows())
    if rows:
        console.print(table.outcome(chosen, rows))
    wrong = [job for job in planned if job.key in rows and not rows[job.key].as_expected]
    again_ = [f"To repeat {job.title}: {repeat(job)}" for job in wrong]
    for line in [*table.findings(planned, rows), *again_]:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if stopped:
        print_failure(console, stopped)
    console.print(f"Index: {index.path}", markup=False, highlight=False, soft_wrap=True)
    if report:
        words = ((job, last_words(job, index.folder)) for job in planned)
        cases = [table.case_of(job.title, rows.get(job.key), last) for job, last in words]
        table.write_junit(report, chosen.name, cases)
    sys.exit(EXIT_CRASHED if stopped else exit_status(rows.values()))


def _need_stores(planned: Iterable[Job]) -> None:
    """Raise `click.UsageError` when a store that a run would start is not installed."""
    for job in planned:
        if lack := lack_of(job.cell.options.store_server):
            raise click.UsageError(f"{job.title}: {lack}")


def guarded(index: Index, make: Callable[[], None], hint: str) -> RunFailure | None:
    """Make the runs of a sweep while nobody else uses its folder.

    Returns:
        why it stopped before its end, if it did; `hint` says what to do after Ctrl-C.
    """
    try:
        with index.locked(), sigterm_as_interrupt():
            write_machine(index.folder)
            make()
    except RunFailure as failure:
        return failure
    except OSError as error:
        return unwritable(f"The folder {index.folder}", error)
    except KeyboardInterrupt:
        return RunFailure(f"The run under way is not in the index. {hint}", interrupted=True)
    return None


def exit_status(rows: Iterable[Row]) -> int:
    """The worst that happened: an unexpected verdict, then a crash, then none to be had."""
    verdicts = {row.verdict for row in rows if not row.as_expected}
    if verdicts & {"valid", "invalid"}:
        return EXIT_INVALID
    if CRASHED in verdicts:
        return EXIT_CRASHED
    return EXIT_UNKNOWN if verdicts else EXIT_VALID
