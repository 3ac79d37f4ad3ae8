"""`./maelstrom simulate`: one seed, or a range of seeds over the cores."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from bench.flags import optional_click_options
from simulation import judge, reporting
from simulation.judge import Report
from simulation.scenario import FLAGS, Scenario, command_of, given_options
from simulation.seeds import Tally, run_seeds

EXIT_SOUND, EXIT_FAILED = 0, 1


@click.command()
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--seeds", type=click.IntRange(min=1), help="Run so many seeds, from --seed on.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes for --seeds; one a core.")
@click.option("--keep-going", is_flag=True, help="Do not stop at the first seed that fails.")
@click.option("--shrink", is_flag=True, help="Make the first failing seed as small as can be.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write the files of a single seed into this folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for tools.")
@optional_click_options(FLAGS)
def simulate(
    *,
    seed: int,
    seeds: int | None,
    jobs: int | None,
    keep_going: bool,
    shrink: bool,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Simulate clusters on a virtual clock, each from one seed, and judge them.

    Options that are not given are drawn from the seed and printed first. The same seed gives the same
    journal, whose digest is in the last line. Exit status: 0 sound, 1 something was wrong, 254 bad
    arguments, 255 crashed.
    """
    given = given_options(options)
    if seeds and out:
        raise click.UsageError("--out keeps the files of one seed; leave --seeds out.")
    if seeds:
        tally = run_seeds(range(seed, seed + seeds), given, jobs or os.cpu_count() or 1, keep_going)
        print_tally(tally, as_json, given)
        failing = tally.failed[0].seed if tally.failed else None
    else:
        report = run_one(seed, given, out, as_json)
        failing = seed if report.failures else None
    if shrink and failing is not None:
        folder = out or Path("results") / "simulate"
        console = Console(stderr=as_json, highlight=False, soft_wrap=True, emoji=False)
        reporting.report_smallest(
            Scenario.draw(failing, given), folder / f"seed-{failing}.svg", console
        )
    sys.exit(EXIT_SOUND if failing is None else EXIT_FAILED)


def run_one(seed: int, given: Mapping[str, Any], out: Path | None, as_json: bool) -> Report:
    scenario = Scenario.draw(seed, given)
    console = Console(stderr=as_json, highlight=False, soft_wrap=True, emoji=False)
    if not as_json:
        console.print(f"seed {seed}; given or drawn:", markup=False)
        console.print(f"  {scenario.command()}", markup=False)
    report = reporting.simulate_into(out, scenario, console) if out else judge.simulate(scenario)
    if as_json:
        click.echo(json.dumps(as_object(report, given)))
    else:
        print_report(console, report)
    return report


def print_report(console: Console, report: Report) -> None:
    """Print the anomalies, the time, and the digest."""
    for failure in report.failures:
        console.print(f"✘ {failure.name}", style="bold red", markup=False)
        console.print(f"  {failure.text}", markup=False)
    if not report.failures:
        console.print("✔ sound: no anomaly, all answered, all nodes hold the same log")
    speed = report.virtual_s / report.cpu_s if report.cpu_s else 0.0
    console.print(
        f"{report.operations} operations in {report.virtual_s:.1f} virtual s,"
        f" {report.cpu_s:.2f} s of CPU ({speed:.0f} virtual s a second)"
    )
    console.print(f"digest: {report.digest}")


def print_tally(tally: Tally, as_json: bool, given: Mapping[str, Any]) -> None:
    """Print the result of a range of seeds, and for each that failed the command that replays it."""
    if as_json:
        click.echo(json.dumps(tally.as_object()))
        return
    console = Console(highlight=False, soft_wrap=True, emoji=False)
    for failed in tally.failed:
        console.print(f"✘ seed {failed.seed}: {', '.join(failed.names)}", markup=False, style="red")
        console.print(f"  {failed.text}", markup=False)
        console.print(f"  replay: {command_of(failed.seed, given)}", markup=False)
    console.print(tally.summary())


def as_object(report: Report, given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "seed": report.scenario.seed,
        "options": {name: report.scenario.options()[name] for name in FLAGS},
        "failures": [{"name": each.name, "text": each.text} for each in report.failures],
        "operations": report.operations,
        "virtual_s": report.virtual_s,
        "cpu_s": report.cpu_s,
        "replay": command_of(report.scenario.seed, given),
        "digest": report.digest,
    }
