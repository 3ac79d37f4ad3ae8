"""`python -m specs.check`: check the models with TLC against `manifest.json`.

Exit status: 0 when every verdict, violated property and number of distinct states is as the manifest
says, a counterexample that a page tells is still the same, and every property has a configuration that
violates it; 1 otherwise; 2 when TLC cannot run. A configuration that takes longer than its time class is
named: that says something of the machine, too.
"""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from specs import stories, tlc
from specs.counterexample import story
from specs.manifest import SIZES, Configuration, Manifest, load

STOPPED_AFTER = 10  # time classes: TLC will not end


@dataclass(frozen=True)
class Result:
    """What came out of one configuration, and how that differs from the manifest.

    `slow` says that it took longer than its time class, "" that it did not.
    """

    configuration: Configuration
    outcome: tlc.Outcome
    duration_s: float
    differences: tuple[str, ...]
    slow: str = ""


@click.command(help=__doc__)
@click.option("--size", type=click.Choice(SIZES), default="small", show_default=True)
@click.option("--only", multiple=True, metavar="TEXT", help="Models with this text in the title.")
@click.option("--jobs", default=2, show_default=True, help="Runs of TLC at a time.")
@click.option("--workers", default="1", show_default=True, help="Threads of each TLC, or auto.")
@click.option("--show", is_flag=True, help="Print every counterexample, expected ones too.")
@click.option("--print-config", is_flag=True, help="Print the .cfg files and stop.")
def main(
    *, size: str, only: tuple[str, ...], jobs: int, workers: str, show: bool, print_config: bool
) -> None:
    manifest = load()
    chosen = [
        c
        for c in manifest.configurations
        if c.size == size and (not only or any(text in c.title for text in only))
    ]
    if not chosen:
        raise click.UsageError(f"no configuration matches {', '.join(only)}")
    if print_config:
        for configuration in chosen:
            click.echo(f"\\* {configuration.title}\n{configuration.config_text()}")
        return
    progress = Console(stderr=True)
    try:
        results = check_all(manifest, chosen, jobs, workers, partial(_progress, progress))
    except tlc.TlcUnavailableError as error:
        progress.print(f"[red]{error}")
        sys.exit(2)
    unbroken = [] if only else manifest.unbroken_properties()
    _report(results, unbroken, show)
    sys.exit(bool(unbroken) or any(result.differences for result in results))


def _progress(console: Console, result: Result) -> None:
    mark = "[green]ok" if not result.differences else "[red]DIFFERS"
    took = result.slow or f"{result.duration_s:.1f} s"
    console.print(f"{mark}[/] {result.configuration.title} ({took})")


def _report(results: Sequence[Result], unbroken: Sequence[str], show: bool) -> None:
    for result in results:
        title, outcome = result.configuration.title, result.outcome
        if (show or result.differences) and outcome.states:
            click.echo(f"\n{story(title, outcome)}\n")
        elif (show or result.differences) and outcome.message:
            click.echo(f"\n{title}: {outcome.message}\n")
    console = Console()
    if not console.is_terminal:
        console.width = 140  # the table is read in CI logs too
    console.print(table(results))
    for line in summary(results, unbroken):
        console.print(line, highlight=False)


def check_all(
    manifest: Manifest,
    configurations: Iterable[Configuration],
    jobs: int,
    workers: str,
    progress: Callable[[Result], None],
) -> list[Result]:
    """Check several configurations, `jobs` at a time; the longest classes start first.

    Raises:
        specs.tlc.TlcUnavailableError: Java or TLC is missing.
    """
    limits = manifest.time_classes
    ordered = sorted(configurations, key=lambda c: -limits[c.time_class])

    def one(configuration: Configuration) -> Result:
        result = check(configuration, limits[configuration.time_class], workers)
        progress(result)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        results = {r.configuration.title: r for r in pool.map(one, ordered)}
    return [results[c.title] for c in manifest.configurations if c.title in results]


def check(configuration: Configuration, limit_s: float, workers: str = "1") -> Result:
    """Run TLC on one configuration, and compare what it says with what the manifest says.

    Args:
        limit_s: its time class in seconds; TLC is stopped at `STOPPED_AFTER` times that.
        workers: threads of TLC.

    Raises:
        specs.tlc.TlcUnavailableError: Java or TLC is missing.
    """
    small, stopped_after_s = configuration.size == "small", STOPPED_AFTER * limit_s
    try:
        text, duration_s = tlc.run(
            configuration.module,
            configuration.config_text(),
            deadlock=configuration.deadlock,
            behaviours=configuration.behaviours,
            workers=workers,
            heap_mb=1024 if small else 4096,
            long_run=not small,
            timeout_s=stopped_after_s,
        )
        outcome = tlc.parse(text, configuration.properties)
    except subprocess.TimeoutExpired:
        outcome = tlc.Outcome("error", None, message=f"stopped after {stopped_after_s:.0f} s")
        duration_s = stopped_after_s
    found = tuple(differences(configuration, outcome, one_way=workers == "1"))
    return Result(configuration, outcome, duration_s, found, slowness(duration_s, limit_s))


def slowness(duration_s: float, limit_s: float) -> str:
    """That a run took longer than its time class, or "" if it did not."""
    return f"{duration_s:.0f} s, longer than {limit_s:.0f} s" if duration_s > limit_s else ""


def differences(
    configuration: Configuration, outcome: tlc.Outcome, *, one_way: bool = True
) -> Iterator[str]:
    """Each way in which an outcome is not what the manifest says, or (TLC finds but `one_way`) a page."""
    if outcome.verdict == "error":
        yield f"TLC could not check it: {outcome.message.splitlines()[0]}"
        return
    if outcome.verdict != configuration.expect:
        yield f"expected {configuration.expect}, got {outcome.verdict}"
    expected = configuration.distinct_states
    if expected is not None and outcome.distinct_states != expected:
        yield f"expected {expected} distinct states, got {outcome.distinct_states}"
    if one_way and stories.differs(configuration.title, outcome):
        yield "TLC goes another way than the page tells: run python -m specs.stories"


def table(results: Sequence[Result]) -> Table:
    """One row per configuration; a row that differs from the manifest says how."""
    shown = Table(
        *(Column(name, overflow="fold") for name in ("model", "configuration", "verdict")),
        *(
            Column(name, overflow="fold", justify="right")
            for name in ("distinct states", "seconds")
        ),
        Column("as expected", overflow="fold"),
        title="Models checked by TLC",
        title_justify="left",
    )
    for result in results:
        configuration, states = result.configuration, result.outcome.distinct_states
        wrong = escape("; ".join(result.differences))
        shown.add_row(
            configuration.model,
            configuration.name,
            escape(result.outcome.verdict),
            "-" if states is None else f"{states:,}",
            result.slow or f"{result.duration_s:.1f}",
            f"[red]NO: {wrong}" if wrong else "[green]yes",
        )
    return shown


def summary(results: Sequence[Result], unbroken: Sequence[str]) -> list[str]:
    """How many came out as expected, and how many broken configurations were caught."""
    broken = [r for r in results if r.configuration.broken]
    caught = [r for r in broken if not r.differences]
    good = sum(not r.differences for r in results)
    return [
        f"{good} of {len(results)} configurations as expected",
        f"{len(caught)} of {len(broken)} broken configurations violated as expected",
        *(f"no broken configuration violates {name}: add one" for name in unbroken),
    ]


if __name__ == "__main__":
    main()
