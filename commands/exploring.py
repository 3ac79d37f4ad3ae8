"""What `explore` and `explore-objects` share: the options of a search, its progress, its verdict."""

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console

from simulation.exploration.campaign import Campaign, OtherSearch, run
from simulation.exploration.search import Search
from simulation.exploration.systems import AnySetting
from simulation.exploration.telling import Failure, S

EXIT_SOUND, EXIT_FAILED, EXIT_STOPPED = 0, 1, 2
Command = Callable[..., Any]

_OPTIONS = (
    click.option(
        "--delays",
        type=click.IntRange(0, 60_000),
        help="Cut: deviate at most so often from the first event.",
    ),
    click.option(
        "--sleep/--no-sleep",
        "sleeping",
        default=True,
        help="Leave out orders of independent events.",
    ),
    click.option(
        "--merge/--no-merge",
        "merging",
        default=True,
        help="Leave out states that were reached before.",
    ),
    click.option(
        "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes."
    ),
    click.option(
        "--cpu",
        "cpu_s_max",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Stop after about so much CPU time.",
    ),
    click.option(
        "--resume",
        "file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Keep the progress in this file, and go on from it.",
    ),
    click.option(
        "--replay",
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        help="Play a kept schedule, and tell what happens.",
    ),
    click.option(
        "--out",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("results/explore"),
        show_default=True,
        help="The folder for a failing schedule.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for tools."),
)


class Wanted(NamedTuple):
    """How to search, and where to tell: see the options."""

    delays: int | None
    sleeping: bool
    merging: bool
    jobs: int
    cpu_s_max: float | None
    file: Path | None
    replay: Path | None
    out: Path
    as_json: bool

    @property
    def console(self) -> Console:
        """Where people read; stdout is for the JSON object, if one is wanted."""
        return Console(stderr=self.as_json, highlight=False, soft_wrap=True, emoji=False)


def search_options(command: Command) -> Command:
    """Give a command the options of a search; it gets them as one `Wanted`, and its own options."""

    @wraps(command)
    def with_wanted(**options: Any) -> Any:
        wanted = Wanted(**{name: options.pop(name) for name in Wanted._fields})
        return command(wanted, **options)

    found: Command = with_wanted
    for option in reversed(_OPTIONS):
        found = option(found)
    return found


def search(
    setting: S, wanted: Wanted, report: Callable[[Failure[S], Path, Console], object]
) -> int:
    """Search a setting, print the verdict, report a failure; returns the exit status."""
    campaign, console = searched(setting, wanted), wanted.console
    if wanted.as_json:
        click.echo(json.dumps(as_object(campaign)))
    else:
        console.print(verdict(campaign), markup=False)
    if campaign.failed:
        report(Failure(setting, campaign.failed), wanted.out, console)
    return exit_status(campaign)


def searched(setting: AnySetting, wanted: Wanted) -> Campaign:
    """Search a setting, with progress on stderr. Raises `click.UsageError` for what cannot be searched."""
    if problem := setting.problem:
        raise click.UsageError(problem)
    campaign = Campaign(setting, Search(wanted.sleeping, wanted.merging, wanted.delays))
    try:
        campaign = campaign.resumed(wanted.file)
    except OtherSearch as other:
        raise click.UsageError(str(other)) from None
    progress = Console(stderr=True, highlight=False)
    try:
        run(
            campaign,
            jobs=wanted.jobs,
            cpu_s_max=wanted.cpu_s_max,
            file=wanted.file,
            report=lambda now: progress.print(progress_of(now), markup=False),
        )
    except KeyboardInterrupt:
        progress.print(progress_of(campaign), markup=False)
        raise
    finally:
        campaign.save(wanted.file)
    return campaign


def exit_status(campaign: Campaign) -> int:
    """0 all sound, 1 something was wrong, 2 stopped before the end."""
    if campaign.failed:
        return EXIT_FAILED
    return EXIT_SOUND if campaign.done else EXIT_STOPPED


def progress_of(campaign: Campaign) -> str:
    """How far a search is, in a line."""
    counts, share = campaign.counts, campaign.fraction
    about = f", about {counts.events / share:.0f} in all" if 0 < share < 1 else ""
    return (
        f"{share:.1%} done: {counts.schedules} schedules, {counts.events} events{about},"
        f" {campaign.cpu_s:.0f} s of CPU"
    )


def verdict(campaign: Campaign) -> str:
    """What was found, and what was left out."""
    counts, search = campaign.counts, campaign.search
    if campaign.failed:
        head = "✘ a schedule fails"
    elif campaign.done and search.delays is None:
        head = "✔ sound in every schedule"
    elif campaign.done:
        cut = f"at most {search.delays} delays; {counts.delayed} branches were cut"
        head = f"✔ sound in every schedule with {cut}"
    else:
        head = f"stopped: {campaign.fraction:.1%} done, and sound so far"
    return (
        f"{head}\n{counts.schedules} schedules played to their end, {campaign.ends} ends judged,"
        f" {campaign.states} states, {counts.events} events, {counts.blocked} branches asleep,"
        f" {counts.merged} merged, {campaign.cpu_s:.1f} s of CPU"
    )


def as_object(campaign: Campaign) -> dict[str, Any]:
    """The same for tools."""
    counts, failed = campaign.counts, campaign.failed
    return {
        "setting": campaign.setting.as_object(),
        "done": campaign.done,
        "fraction": campaign.fraction,
        "states": campaign.states,
        "ends": campaign.ends,
        **{name: getattr(counts, name) for name in counts.__slots__},
        "cpu_s": campaign.cpu_s,
        "failure": failed and {"name": failed.name, "text": failed.text},
    }
