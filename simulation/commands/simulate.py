"""`./maelstrom simulate`: one seed, or a range of seeds over the cores, of nodes or of programs."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bench.flags import optional_click_options
from bench.terminal import Console
from simulation import judge, reporting
from simulation.judge import Report
from simulation.life import BUCKET
from simulation.scenario import FLAGS, Scenario, command_of
from simulation.seeds import TEXT_MAX, Tally, run_seeds

EXIT_SOUND, EXIT_FAILED = 0, 1


class _OrOfANode(click.Command):
    """With --bin it is the command of `simulate_node`, whose options are those of `./maelstrom test`."""

    def make_context(
        self, info_name: str | None, args: list[str], *more: Any, **extra: Any
    ) -> click.Context:
        if any(word.partition("=")[0] == "--bin" for word in args):
            from simulation.commands.simulate_node import simulate_node

            return simulate_node.make_context(info_name, args, *more, **extra)
        return super().make_context(info_name, args, *more, **extra)


@click.command(cls=_OrOfANode)
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
@click.option("--programs", is_flag=True, help="As --store bucket.")
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
    programs: bool,
    **options: Any,
) -> None:
    """Simulate nodes or programs on a virtual clock, each run from one seed, and judge them.

    With --store lin-kv: a cluster of nodes. With --store bucket, or --programs: programs of a log on an object
    store, beside nodes where they are --mixed; the log is ours, or S3-Queue as published, or repaired. Programs
    of ours are members of groups, consume by hand and bury records (--members); compact, vacuum, fence; keep
    --runs parquet: merge them, delete the oldest, read snapshots, are drivers of a sink.
    With --bin NODE: a node of yours (`maelstrom simulate --bin NODE --help` has its options).

    Options that are not given are drawn from the seed and printed first. The same seed gives the same
    journal, whose digest is in the last line. Exit status: 0 sound, 1 something was wrong, 254 bad
    arguments, 255 crashed.
    """
    chosen = {name: value for name, value in options.items() if value is not None}
    if programs:
        chosen.setdefault("store", BUCKET)
    if problem := Scenario.draw(seed, chosen).problem:
        raise click.UsageError(problem)
    if out and seeds:
        raise click.UsageError("--out keeps the files of one seed: leave --seeds out.")
    console = Console(stderr=as_json, highlight=False, soft_wrap=True, emoji=False)
    if seeds:
        span = range(seed, seed + seeds)
        tally = run_seeds(span, chosen, jobs or os.cpu_count() or 1, keep_going)
        if as_json:
            click.echo(json.dumps(tally.as_object()))
        else:
            print_tally(tally, console, chosen)
        failing = tally.failed[0].scenario.seed if tally.failed else None
    else:
        scenario = Scenario.draw(seed, chosen)
        if not as_json:
            console.print(f"seed {seed}; given or drawn:", markup=False)
            console.print(f"  {scenario.command()}", markup=False)
        report = (
            reporting.simulate_into(out, scenario, console) if out else judge.simulate(scenario)
        )
        if as_json:
            click.echo(json.dumps(as_object(report, chosen)))
        else:
            print_report(console, report)
        failing = seed if report.failures else None
    if shrink and failing is not None:
        picture = (out or Path("results") / "simulate") / f"seed-{failing}.svg"
        scenario = Scenario.draw(failing, chosen)
        reporting.report_smallest(scenario, picture, console)
    sys.exit(EXIT_SOUND if failing is None else EXIT_FAILED)


def print_report(console: Console, report: Report) -> None:
    """Print the anomalies, the time, and the digest."""
    for failure in report.failures:
        console.print(f"✘ {failure.name}", style="bold red", markup=False)
        console.print(f"  {failure.text}", markup=False)
    if not report.failures:
        console.print("✔ sound: no anomaly, all answered, all processes show the same log")
    speed = report.virtual_s / report.cpu_s if report.cpu_s else 0.0
    requests = f", {sum(report.requests.values())} requests" if report.requests else ""
    console.print(
        f"{report.operations} operations{requests} in {report.virtual_s:.1f} virtual s,"
        f" {report.cpu_s:.2f} s of CPU ({speed:.0f} virtual s a second)"
    )
    if report.covered:
        told = ", ".join(f"{count} {what}" for what, count in report.covered.items())
        console.print(f"covered: {told}")
    console.print(f"digest: {report.digest}")


def print_tally(tally: Tally, console: Console, chosen: Mapping[str, Any]) -> None:
    """Print the result of a range of seeds, and for each that failed the command that replays it."""
    for failed in tally.failed:
        seed, log = failed.scenario.seed, failed.scenario.strategy
        found = f"✘ seed {seed}, {log}: {', '.join(failed.names)}"
        console.print(found, markup=False, style="red")
        console.print(f"  {failed.failures[0].text[:TEXT_MAX]}", markup=False)
        console.print(f"  replay: {command_of(seed, chosen)}", markup=False)
    console.print(tally.summary())


def as_object(report: Report, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """One run, for tools."""
    scenario = report.scenario
    options = asdict(scenario)
    return {
        "seed": options.pop("seed"),
        "options": options,
        "failures": [{"name": each.name, "text": each.text} for each in report.failures],
        "operations": report.operations,
        **({"requests": report.requests} if report.requests else {}),
        **({"covered": report.covered} if report.covered else {}),
        "virtual_s": report.virtual_s,
        "cpu_s": report.cpu_s,
        "replay": command_of(scenario.seed, chosen),
        "digest": report.digest,
    }
