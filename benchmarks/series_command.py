"""The command line that all series of runs share, and the measuring of their jobs."""

from collections.abc import Callable, Sequence
from pathlib import Path

import click
from rich.console import Console

from benchmarks import series
from benchmarks.measure import ROOT, Job, measure
from benchmarks.series import Series

Main = Callable[[Series, Path | None, Console], None]


def series_command(
    store: Path,
    *,
    names: Sequence[str],
    repetitions: int,
    time_limit: int,
    strategies: str,
    docs_help: str,
) -> Callable[[Main], click.Command]:
    """Make a command of `main(run, docs, console)`: its options are those of a series.

    `store` is where its folders are, `names` what `--only` may choose from; the rest are defaults. The
    function gets the series, new or resumed, whose `plan` holds the settings.
    """

    def decorate(main: Main) -> click.Command:
        @click.command(help=main.__doc__)
        @click.option(
            "--repetitions", type=click.IntRange(1), default=repetitions, show_default=True
        )
        @click.option("--time-limit", type=click.IntRange(1), default=time_limit, show_default=True)
        @click.option(
            "--only", type=click.Choice(list(names)), multiple=True, help="May be given again."
        )
        @click.option(
            "--strategies",
            default=strategies,
            show_default=True,
            help="Separated by commas, in the order of the table.",
        )
        @click.option(
            "--resume", help="Go on with a series: its folder, or latest. Takes its settings."
        )
        @click.option(
            "--bin",
            "program",
            type=click.Path(exists=True, path_type=Path),
            default=ROOT / "run.sh",
            help="The node.  [default: run.sh]",
        )
        @click.option("--docs", type=click.Path(exists=True, path_type=Path), help=docs_help)
        def command(
            *,
            only: tuple[str, ...],
            strategies: str,
            resume: str | None,
            program: Path,
            docs: Path | None,
            **numbers: int,
        ) -> None:
            settings = {
                **numbers,
                "only": only or tuple(names),
                "strategies": strategies.split(","),
                "program": str(program),
            }
            run = Series.resume(store, resume) if resume else Series.create(store, settings)
            main(run, docs, Console())

        return command

    return decorate


def measure_all(run: Series, jobs: Sequence[Job], console: Console) -> bool:
    """Measure every job that the series lacks; says whether it was not interrupted."""
    node = Path(run.plan["program"]).absolute()
    return series.perform(run, jobs, lambda job: measure(job, node, run.folder / "kept"), console)
