"""The command line: `python -m analysis ingest | check | report | ...`."""

import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from analysis.errors import Interrupted
from bench.terminal import Console, say
from runs.figures import of_run
from runs.files import RunsError
from runs.history import Keyword
from runs.store import is_run
from workloads.interface import worst

if TYPE_CHECKING:  # Spark is imported where it is used: a report needs none
    from pyspark.sql import SparkSession
    from rich.status import Status

_lake = click.option(
    "--lake",
    default="results/lake",
    show_default=True,
    help="Folder or URI (s3a://...) of the Parquet tables; made when it is not there.",
)
_master = click.option(
    "--master", default="local[*]", show_default=True, help="Spark master to run on."
)


_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)
_PATH = click.Path(path_type=Path)


class _Commands(click.Group):
    """Shows the errors that a user can correct as a message; their traceback only when it is asked for."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (RunsError, KeyboardInterrupt) as error:
            if ctx.params.get("traceback"):
                traceback.print_exception(error)
            if isinstance(error, Interrupted | KeyboardInterrupt):
                raise Stopped(str(error) or "Stopped by Ctrl-C.") from error
            raise click.ClickException(str(error)) from error
        except ModuleNotFoundError as error:  # the environment of `make run` has no notebooks
            raise click.ClickException(
                f"the package {error.name} is missing: `make setup` installs it"
            ) from error


class Stopped(click.ClickException):
    """Ends the command as a shell expects of what Ctrl-C ended."""

    exit_code = 130  # of what SIGINT ended


@click.group(cls=_Commands)
@click.option("--traceback", is_flag=True, help="Show where an error came from, Java's part too.")
def main(*, traceback: bool) -> None:
    """Analyse runs of the bench and stores of the real Maelstrom with Spark."""


@contextmanager
def _spark(
    master: str, doing: str, *, brief: bool = False, stderr: bool = False
) -> "Iterator[tuple[SparkSession, Console, Status]]":
    """A session of Spark, and a console whose status says what it does, until the block ends."""
    from analysis.spark import session

    console = Console(stderr=stderr)
    with console.status("Starting Spark ...") as status, session(master, brief=brief) as spark:
        status.update(doing)
        yield spark, console, status


@main.command()
@click.argument("paths", nargs=-1, required=True)
@_lake
@click.option("--program", metavar="NAME", help="What ran, where neither files nor a sweep say it.")
@_master
def ingest(paths: tuple[str, ...], lake: str, program: str | None, master: str) -> None:
    """Read the runs at or below PATHS into the lake. PATHS may be URIs, such as s3a://bucket/runs.

    A run that the lake already holds, unchanged, is skipped. Lines that cannot be used go to the
    table `quarantine`, with file, line and reason.
    """
    from analysis import lake as lakes
    from analysis.finding import find_runs

    with _spark(master, "Looking for runs ...") as (spark, console, status):
        runs = [*{run.folder: run for path in paths for run in find_runs(path, program)}.values()]
        number = 0

        def tell(read: int) -> None:
            status.update(f"Reading run {min(read + 1, len(runs))} of {len(runs)} ...")

        try:
            for done in lakes.ingest(spark, lakes.Lake(lake), runs, tell):
                number += 1
                word = "ingested" if done.fresh else "already there"
                console.print(f"{done.run.run_id}: {word}", soft_wrap=True)
        except KeyboardInterrupt:
            raise Interrupted(
                f"Stopped by Ctrl-C: {number} of {len(runs)} runs are in {lake}."
                " The same command reads the rest."
            ) from None
        console.print(f"{len(runs)} runs in {lake}", soft_wrap=True)


@main.command()
@click.argument("path", type=_PATH)
@click.option(
    "-o", "--output", type=_FILE, help="Where to write the page.  [default: PATH/report.html]"
)
def report(path: Path, output: Path | None) -> None:
    """Print the figures of the run in PATH, and write its page as one HTML file, without Spark.

    PATH may be a link such as results/latest. For a sweep only the page is written.
    The page needs no other file.
    """
    from analysis.printed import show
    from bench.pages.facts import read_facts
    from bench.pages.report import folder_of, write_report

    console = Console()
    if is_run(path.resolve()):
        folder = folder_of(path)
        show(read_facts(folder, time.time()), of_run(folder), console)
    console.print(f"Report: {write_report(path, output)}", soft_wrap=True)


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--lake",
    help="Folder or URI of the lake, or of a packed one.  [default: the reference results]",
)
@_master
@click.option(
    "-o",
    "--output",
    type=_FOLDER,
    default=Path("results/notebooks"),
    show_default=True,
    help="Folder for the executed notebooks.",
)
@click.option("--in-place", is_flag=True, help="Write them where they were read from instead.")
@click.option(
    "--pictures",
    type=_FOLDER,
    help="Folder for the picture that each of them opens with, as notebook-NAME.png.",
)
def notebooks(
    names: tuple[str, ...],
    lake: str | None,
    master: str,
    *,
    output: Path,
    in_place: bool,
    pictures: Path | None,
) -> None:
    """Execute the notebooks NAMEs (by default all) on a lake, and keep them with their outputs.

    A cell that fails ends the command, which names the notebook and the cell.
    """
    from analysis.notebooks.execution import execute, keep_picture, kernel, named
    from analysis.notebooks.tables import REFERENCE

    console = Console()
    with (
        console.status("Starting ...") as status,
        kernel(lake or str(REFERENCE), master) as process,
    ):
        for source in named(names):
            target = source if in_place else output / source.name
            began = time.monotonic()

            def tell(cell: int, cells: int, name: str = source.name) -> None:
                status.update(f"{name}, {cell}/{cells} ...")

            execute(source, target, process, tell)
            if pictures:
                keep_picture(target, pictures / f"notebook-{source.stem}.png")
            console.print(f"{target} ({time.monotonic() - began:.1f} s)", soft_wrap=True)


@main.command()
@click.argument("output")
@_lake
@_master
def pack(output: str, lake: str, master: str) -> None:
    """Write a lake into OUTPUT as one small file for each table: for a repository, or a mail.

    It leaves out the times and the contents of messages. Notebooks read it like any other lake.
    """
    _copy(lake, output, master, lean=True)


@main.command()
@click.argument("output")
@_lake
@_master
def compact(output: str, lake: str, master: str) -> None:
    """Copy a lake into OUTPUT, a folder or URI, with few large files a table, for reading.

    A lake has a file for each run and table, which is slow to read when there are thousands of runs. Give
    OUTPUT as --lake to notebooks. Ingest into the lake, and compact it again.
    """
    _copy(lake, output, master, lean=False)


def _copy(lake: str, output: str, master: str, *, lean: bool) -> None:
    from analysis import lake as lakes

    with _spark(master, f"Copying {lake} ...", brief=lean) as (spark, console, _):
        lakes.copy(spark, lakes.Lake(lake), output, lean=lean)
        console.print(f"{lake} is copied into {output}", soft_wrap=True)


@main.command()
@click.argument("paths", nargs=-1, type=_PATH)
@click.option("--run", "runs", multiple=True, metavar="ID", help="A run of the lake; repeatable.")
@_lake
@_master
@click.option("--json", "form", flag_value="json", help="Print one JSON object a history.")
@click.option("--edn", "form", flag_value="edn", help="Print everything, as results.edn has it.")
@click.option(
    "--anomalies",
    type=_FOLDER,
    help="Folder to write what was found to, as Parquet rows of the lake's table anomalies.",
)
def check(
    *,
    paths: tuple[Path, ...],
    runs: tuple[str, ...],
    lake: str,
    master: str,
    form: str | None,
    anomalies: Path | None,
) -> None:
    """Judge kafka histories of any size, as `./maelstrom check` does, with Spark.

    PATHS are histories (EDN or JSON lines, gzipped or not), folders of runs, or folders of Parquet as
    `synthesise` writes them. Without PATHS, runs of the lake: those named by --run, or all.
    Exit status: 0 all are valid, 1 one is invalid,
    2 one is unknown.
    """
    from analysis import lake as lakes
    from analysis.checker import printed as checked

    forms = {"json": checked.json_lines, "edn": checked.edn_texts, None: checked.plain_lines}
    with _spark(master, "Judging ...", stderr=True) as (spark, _, _):
        results = checked.judged(spark, paths, lakes.Lake(lake), runs)
        if anomalies:
            checked.write_anomalies(spark, results, anomalies)
    for line in forms[form](results):
        say(line)
    verdicts = [result[Keyword("valid?")] for result in results.values()]
    sys.exit({True: 0, False: 1}.get(worst(verdicts), 2))


def _counts(_: click.Context, __: click.Parameter, text: str) -> dict[str, int]:
    """`lost-write=3,duplicate` as a dict; a type without a number is planted once."""
    words = [word.partition("=") for word in text.split(",") if word]
    try:
        return {name.strip(): int(number or 1) for name, _, number in words}
    except ValueError:
        raise click.BadParameter(
            "expected TYPE=COUNT,..., such as lost-write=3,duplicate=2"
        ) from None


@main.command()
@click.option("--operations", default=100_000, show_default=True, help="At least so many.")
@click.option("--keys", default=1_000, show_default=True, help="How many keys are sent to.")
@click.option("--processes", default=20, show_default=True, help="Concurrent clients.")
@click.option("--anomalies", default="", callback=_counts, help="lost-write=3,duplicate=2, ...")
@click.option("--seed", default=0, show_default=True, help="The same seed, the same history.")
@click.option(
    "--output",
    required=True,
    type=_PATH,
    help="NAME.jsonl or NAME.edn for a history in one file, else a folder of Parquet.",
)
@_master
def synthesise(
    *,
    operations: int,
    keys: int,
    processes: int,
    anomalies: dict[str, int],
    seed: int,
    output: Path,
    master: str,
) -> None:
    """Make a kafka history of any size, valid or with anomalies planted in it.

    What was planted in which key is written beside it, to NAME.planted.json.
    """
    from analysis import synthesise as synthetic

    layout = synthetic.Layout(operations, keys, processes, seed)
    with _spark(master, f"Making {operations} operations ...", stderr=True) as (spark, _, _):
        planted = synthetic.write(synthetic.synthesise(spark, layout, anomalies), output)
    click.echo(f"{output}, and what is wrong with it in {planted}")
