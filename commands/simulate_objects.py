"""`./maelstrom simulate-objects`: logs on a virtual object store, one seed or a range of seeds."""

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import click

from bench.flags import optional_click_options
from commands.simulate import EXIT_FAILED, EXIT_SOUND
from simulation.objects import judge
from simulation.objects.scenario import FLAGS, Scenario, command_of
from simulation.objects.shrink import smallest
from simulation.objects.story import events_of
from simulation.pool import spread


class SeedResult(NamedTuple):
    """The result of one seed."""

    seed: int
    log: str
    names: tuple[str, ...]
    text: str
    operations: int


@click.command("simulate-objects")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--seeds", type=click.IntRange(min=1), help="Run so many seeds, from --seed on.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes for --seeds; one a core.")
@click.option("--keep-going", is_flag=True, help="Do not stop at the first seed that fails.")
@click.option("--shrink", is_flag=True, help="Make the first failing seed as small as can be.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for tools.")
@optional_click_options(FLAGS)
def simulate_objects(
    *,
    seed: int,
    seeds: int | None,
    jobs: int | None,
    keep_going: bool,
    shrink: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run a log on a virtual object store and a virtual clock, and judge its history.

    The log is ours, or S3-Queue as it was published, or repaired. Options that are not given are drawn from
    the seed. Exit status: 0 sound, 1 something was wrong, 254 bad arguments, 255 crashed.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if seeds:
        numbers = range(seed, seed + seeds)
        results = run_seeds(numbers, given, jobs or os.cpu_count() or 1, keep_going)
        click.echo(json.dumps(as_object(results)) if as_json else summary(results, given))
        failing = next((each.seed for each in results if each.names), None)
    else:
        report = judge.simulate(Scenario.draw(seed, given))
        click.echo(json.dumps(report_object(report)) if as_json else report_text(report))
        failing = seed if report.failures else None
    if shrink and failing is not None:
        show_smallest(Scenario.draw(failing, given), err=as_json)
    sys.exit(EXIT_SOUND if failing is None else EXIT_FAILED)


def run_seed(given: Mapping[str, Any], seed: int) -> SeedResult:
    """Run one seed, in whatever process."""
    report = judge.simulate(Scenario.draw(seed, given))
    text = report.failures[0].text[:500] if report.failures else ""
    return SeedResult(seed, report.scenario.log, tuple(report.names), text, report.operations)


def run_seeds(
    seeds: range, given: Mapping[str, Any], jobs: int, keep_going: bool
) -> list[SeedResult]:
    """The results in order of seeds; all of them, or up to the first that fails."""
    found: list[SeedResult] = []
    with click.progressbar(length=len(seeds), label="simulating", file=sys.stderr) as bar:
        results = spread(partial(run_seed, dict(given)), seeds, min(jobs, len(seeds)))
        for result in results:
            found.append(result)
            bar.update(1)
            if result.names and not keep_going:
                break
        results.close()
    return sorted(found)


def summary(results: list[SeedResult], given: Mapping[str, Any]) -> str:
    """Each seed that failed, how to run it again, and how many there are."""
    failed = [each for each in results if each.names]
    lines = [
        f"✘ seed {each.seed}, {each.log}: {', '.join(each.names)}\n  {each.text}\n"
        f"  replay: {command_of(each.seed, given)}"
        for each in failed
    ]
    names = Counter(each.names[0] for each in failed)
    found = ", ".join(f"{count} {name}" for name, count in names.most_common())
    operations = sum(each.operations for each in results)
    lines.append(
        f"{len(failed)} of {len(results)} seeds failed{f' ({found})' if found else ''}; "
        f"{operations} operations"
    )
    return "\n".join(lines)


def as_object(results: list[SeedResult]) -> dict[str, Any]:
    """The results of a range, for tools."""
    return {
        "seeds": len(results),
        "failed": [each._asdict() for each in results if each.names],
        "logs": Counter(each.log for each in results),
        "operations": sum(each.operations for each in results),
    }


def report_text(report: judge.Report) -> str:
    """One run, for people."""
    lines = [f"seed {report.scenario.seed}; given or drawn:", f"  {report.scenario.command()}"]
    for failure in report.failures:
        lines += [f"✘ {failure.name}", f"  {failure.text}"]
    if not report.failures:
        lines.append("✔ sound: no anomaly, and every message was read at the end")
    lines.append(
        f"{report.operations} operations, {sum(report.usage.requests.values())} requests in "
        f"{report.virtual_s:.1f} virtual s, {report.cpu_s:.2f} s of CPU"
    )
    return "\n".join([*lines, f"digest: {report.digest}"])


def report_object(report: judge.Report) -> dict[str, Any]:
    """One run, for tools."""
    return {
        "seed": report.scenario.seed,
        "options": report.scenario.options(),
        "failures": [{"name": each.name, "text": each.text} for each in report.failures],
        "operations": report.operations,
        "requests": report.usage.requests,
        "virtual_s": report.virtual_s,
        "replay": report.scenario.command(),
        "digest": report.digest,
    }


def show_smallest(scenario: Scenario, *, err: bool) -> None:
    """Shrink a failing scenario, and print its requests."""
    began_s = time.monotonic()
    small = smallest(judge.simulate(scenario), log=lambda line: click.echo(f"  {line}", err=err))
    for failure in small.failures:
        click.echo(f"\n✘ {failure.name}\n  {failure.text}", err=err)
    click.echo("", err=err)
    for line in events_of(small.journal):
        click.echo(line, err=err)
    click.echo(f"\nshrunk in {time.monotonic() - began_s:.0f} s", err=err)
    click.echo(f"replay: {small.scenario.command()}", err=err)
