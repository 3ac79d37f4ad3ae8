"""The command line: `python -m analysis ingest | summary`."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from analysis.errors import AnalysisError

DEFAULT_LAKE = Path("results/lake")

_lake = click.option(
    "--lake",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_LAKE,
    show_default=True,
    help="Folder of the Parquet tables; made when it is not there.",
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
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@_lake
@_master
@_readable_errors
def ingest(paths: tuple[Path, ...], lake: Path, master: str) -> None:
    """Read the runs at or below PATHS into the lake.

    A run that the lake already holds, unchanged, is skipped. Lines that cannot be used go to the
    table `quarantine`, with file, line and reason.
    """
    from analysis.ingest import ingest_run
    from analysis.lake import Lake
    from analysis.session import session
    from analysis.sources import find_runs

    console = Console()
    runs = {run.folder: run for path in paths for run in find_runs(path)}.values()
    with console.status("Starting Spark ..."), session(master) as spark:
        for run in runs:
            done = ingest_run(spark, Lake(lake), run)
            console.print(f"{run.run_id}: {'ingested' if done.fresh else 'already there'}")
    console.print(f"{len(runs)} runs in {lake}")


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
def summary(run_dir: Path, output: Path | None, lake: Path, master: str) -> None:
    """Ingest the run in RUN_DIR, print its figures and write a page about it.

    RUN_DIR may be a link such as results/latest.
    """
    from analysis.ingest import ingest_run
    from analysis.lake import Lake
    from analysis.report import write_report
    from analysis.session import session
    from analysis.sources import find_run
    from analysis.summary import summarise
    from analysis.tables import show

    console = Console()
    run = find_run(run_dir)
    with console.status("Starting Spark ...") as status, session(master, brief=True) as spark:
        status.update(f"Reading {run.folder.name} ...")
        ingest_run(spark, Lake(lake), run)
        status.update("Computing ...")
        figures = summarise(spark, Lake(lake), run.run_id)
    show(figures, console)
    page = write_report(figures, output or run_dir / "report.html")
    console.print(f"Report: {page}", soft_wrap=True)
