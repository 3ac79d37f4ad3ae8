"""`python -m specs.check`: check the models with TLC against `manifest.json`.

Exit status: 0 when every verdict, violated property, number of distinct states and time class is
as the manifest says and every property has a configuration that violates it; 1 otherwise; 2 when
TLC cannot run.
"""

from __future__ import annotations

import sys

import click
from rich.console import Console

from specs.tools import counterexample, report
from specs.tools.check import Result, check_all
from specs.tools.manifest import SIZES, Configuration, Manifest, load
from specs.tools.tlc import TlcUnavailableError


def _selected(manifest: Manifest, size: str, only: tuple[str, ...]) -> list[Configuration]:
    return [
        c
        for c in manifest.configurations
        if c.size == size and (not only or any(word in c.title for word in only))
    ]


def _progress(console: Console, result: Result) -> None:
    mark = "[green]ok" if not result.differences else "[red]DIFFERS"
    console.print(f"{mark}[/] {result.configuration.title} ({result.duration_s:.1f} s)")


@click.command(help=__doc__)
@click.option("--size", type=click.Choice(SIZES), default="small", show_default=True)
@click.option("--only", multiple=True, metavar="TEXT", help="Models whose title has this in it.")
@click.option("--jobs", default=2, show_default=True, help="Runs of TLC at a time.")
@click.option("--workers", default="1", show_default=True, help="Threads of each TLC, or auto.")
@click.option("--show", is_flag=True, help="Tell every counterexample, expected ones too.")
@click.option("--print-config", is_flag=True, help="Print the .cfg files and stop.")
def main(
    *, size: str, only: tuple[str, ...], jobs: int, workers: str, show: bool, print_config: bool
) -> None:
    """Run the checks and end the process with their status."""
    manifest = load()
    chosen = _selected(manifest, size, only)
    if not chosen:
        raise click.UsageError(f"no configuration matches {', '.join(only)}")
    if print_config:
        for configuration in chosen:
            click.echo(f"\\* {configuration.title}\n{configuration.config_text()}")
        return
    sys.exit(_run(manifest, chosen, jobs=jobs, workers=workers, show=show, whole=not only))


def _explain(result: Result) -> None:
    title, outcome = result.configuration.title, result.outcome
    if outcome.states:
        click.echo(f"\n{counterexample.story(title, outcome)}\n")
    elif outcome.message:
        click.echo(f"\n{title}: {outcome.message}\n")


def _run(
    manifest: Manifest,
    chosen: list[Configuration],
    *,
    jobs: int,
    workers: str,
    show: bool,
    whole: bool,
) -> int:
    progress, console = Console(stderr=True), Console()
    if not console.is_terminal:
        console.width = 140  # the table is read in CI logs too
    try:
        results = check_all(
            manifest, chosen, jobs=jobs, workers=workers, progress=lambda r: _progress(progress, r)
        )
    except TlcUnavailableError as error:
        progress.print(f"[red]{error}")
        return 2
    for result in results:
        if show or result.differences:
            _explain(result)
    unbroken = manifest.unbroken_properties() if whole else []
    report.show(console, results, unbroken)
    return 1 if unbroken or any(r.differences for r in results) else 0


if __name__ == "__main__":
    main()
