"""The command line: `python -m analysis ingest | summary | report`."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from analysis.errors import AnalysisError

DEFAULT_LAKE = "results/lake"

_lake = click.option(
    "--lake",
    default=DEFAULT_LAKE,
    show_default=True,
    help="Folder or URI (s3a://...) of the Parquet tables; made when it is not there.",
)
_master = click.option(
    "--master", default="local[*]", show_default=True, help="Spark master to run on."
)


def _readable_errors(command: Callable[..., None]) -> Callable[..., None]:
    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except AnalysisError as error:
            raise click.ClickException(str(error)) from error

    return run


@click.group()
def main() -> None:
    """Analyse runs of the bench and stores of the real Maelstrom with Spark."""


@main.command()
@click.argument("paths", nargs=-1, required=True)
@_lake
@_master
@_readable_errors
def ingest(paths: tuple[str, ...], lake: str, master: str) -> None:
    """Read the runs at or below PATHS into the lake. PATHS may be URIs, such as s3a://bucket/runs.

    A run that the lake already holds, unchanged, is skipped. Lines that cannot be used go to the
    table `quarantine`, with file, line and reason.
    """
    from analysis.ingest import ingest as read_in
    from analysis.lake import Lake
    from analysis.session import session
    from analysis.sources import find_runs

    console = Console()
    with console.status("Starting Spark ...") as status, session(master) as spark:
        runs = [*{run.folder: run for path in paths for run in find_runs(path)}.values()]
        status.update(f"Reading {len(runs)} runs ...")
        for number, done in enumerate(read_in(spark, Lake(lake), runs), start=1):
            word = "ingested" if done.fresh else "already there"
            console.print(f"{done.run.run_id}: {word}", soft_wrap=True)
            status.update(f"Reading {len(runs)} runs, {number} done ...")
    console.print(f"{len(runs)} runs in {lake}", soft_wrap=True)


@main.command()
@click.argument("run_dir", type=click.Path(path_type=Path))
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the page.  [default: RUN_DIR/report.html]",
)
@_lake
@_master
@_readable_errors
def summary(run_dir: Path, output: Path | None, lake: str, master: str) -> None:
    """Ingest the run in RUN_DIR, print its figures and write a page about it.

    RUN_DIR may be a link such as results/latest.
    """
    from analysis.ingest import ingest_run
    from analysis.lake import Lake
    from analysis.pages.facts import read_facts
    from analysis.pages.library import keep_figures
    from analysis.pages.report import folder_of, write_report
    from analysis.session import session
    from analysis.sources import find_run
    from analysis.summary import summarise
    from analysis.tables import show

    console = Console()
    run = find_run(run_dir)
    with console.status("Starting Spark ...") as status, session(master, brief=True) as spark:
        status.update(f"Reading {run.run_id} ...")
        ingest_run(spark, Lake(lake), run)
        status.update("Computing ...")
        figures = summarise(spark, Lake(lake), run.run_id)
    folder = folder_of(run_dir)
    show(read_facts(folder, time.time()), figures, console)
    with suppress(OSError):  # a folder that is not ours to write in; they are for `serve` to show
        keep_figures(folder, figures)
    page = write_report(run_dir, output, figures)
    console.print(f"Report: {page}", soft_wrap=True)


@main.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the page.  [default: PATH/report.html]",
)
@_readable_errors
def report(path: Path, output: Path | None) -> None:
    """Write the page of the run or the sweep in PATH as one HTML file, without Spark.

    PATH may be a link such as results/latest. The page holds everything itself.
    """
    from analysis.pages.report import write_report

    Console().print(f"Report: {write_report(path, output)}", soft_wrap=True)
