"""`./maelstrom explore`: every schedule of a small cluster."""

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from bench.flags import click_options
from simulation.exploration import telling
from simulation.exploration.campaign import Campaign, OtherSearch, run
from simulation.exploration.events import Event
from simulation.exploration.search import Search
from simulation.exploration.setting import FLAGS, Setting
from simulation.exploration.telling import Failure
from simulation.story import Story, text_of

EXIT_SOUND, EXIT_FAILED, EXIT_STOPPED = 0, 1, 2


@click.command()
@click_options(FLAGS, {name: getattr(Setting(), name) for name in FLAGS})
@click.option(
    "--delays",
    type=click.IntRange(0, 60_000),
    help="Cut: deviate at most so often from the first event.",
)
@click.option(
    "--sleep/--no-sleep", "sleeping", default=True, help="Leave out orders of independent events."
)
@click.option(
    "--merge/--no-merge", "merging", default=True, help="Leave out states that were reached before."
)
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes.")
@click.option(
    "--cpu",
    "cpu_s_max",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop after about so much CPU time.",
)
@click.option(
    "--resume",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep the progress in this file, and go on from it.",
)
@click.option(
    "--replay",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Play a kept schedule, and tell what happens.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results/explore"),
    show_default=True,
    help="The folder for a failing schedule and its picture.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for tools.")
def explore(
    *,
    delays: int | None,
    sleeping: bool,
    merging: bool,
    jobs: int,
    cpu_s_max: float | None,
    file: Path | None,
    replay: Path | None,
    out: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Search all schedules of a small cluster of the real nodes, and judge each step and each end.

    A schedule is an order of requests, deliveries, timers and faults. The first that fails is made small, told,
    and kept. Exit status: 0 all sound, 1 something was wrong, 2 stopped before the end, 254 bad arguments, 255
    crashed or interrupted.
    """
    console = Console(stderr=as_json, highlight=False, soft_wrap=True, emoji=False)
    if replay:
        sys.exit(_replay(replay, console))
    setting = Setting(**options)
    if problem := setting.problem:
        raise click.UsageError(problem)
    campaign = Campaign(setting, Search(sleeping, merging, delays))
    try:
        campaign = campaign.resumed(file)
    except OtherSearch as other:
        raise click.UsageError(str(other)) from None
    progress = Console(stderr=True, highlight=False)
    try:
        run(
            campaign,
            jobs=jobs,
            cpu_s_max=cpu_s_max,
            file=file,
            report=lambda now: progress.print(_progress(now), markup=False),
        )
    except KeyboardInterrupt:
        console.print(_progress(campaign), markup=False)
        raise
    finally:
        campaign.save(file)
    if as_json:
        click.echo(json.dumps(as_object(campaign)))
    else:
        console.print(verdict(campaign), markup=False)
    if campaign.failed:
        _report(Failure(setting, campaign.failed), out, console)
        sys.exit(EXIT_FAILED)
    sys.exit(EXIT_SOUND if campaign.done else EXIT_STOPPED)


def _progress(campaign: Campaign) -> str:
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


def _report(failure: Failure, out: Path, console: Console) -> None:
    """Make a failure small, tell it, keep it."""
    failure = telling.smallest(failure)
    setting, failed = failure
    console.print(f"\n✘ {failed.name}\n  {failed.text}", style="bold red", markup=False)
    console.print(f"the smallest setting that fails so: {setting.command()}\n", markup=False)
    file = out / f"{setting.strategy}-{failed.name}.json"
    telling.write(file, failure)
    story, _ = telling.replayed(setting, failed.schedule)
    _tell(story, failed.schedule, console)
    _draw(file.with_suffix(".svg"), story, f"{setting.strategy}: {failed.name}")
    console.print(f"\npicture: {file.with_suffix('.svg')}", markup=False)
    console.print(f"replay: ./maelstrom explore --replay {file}", markup=False)


def _replay(file: Path, console: Console) -> int:
    try:
        setting, schedule = telling.read(file)
        story, failed = telling.replayed(setting, schedule)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    _tell(story, schedule, console)
    console.print(f"\n✘ {failed.name}\n  {failed.text}" if failed else "\n✔ sound", markup=False)
    return EXIT_FAILED if failed else EXIT_SOUND


def _tell(story: Story, schedule: Any, console: Console) -> None:
    for line in telling.sentences([Event(*each) for each in schedule]):
        console.print(line, markup=False)
    console.print()
    for line in text_of(story):
        console.print(line, markup=False, style="bold red" if line.startswith(">>") else None)


def _draw(picture: Path, story: Story, title: str) -> None:
    from plots.lamport import Bold, lamport_svg  # takes long to import

    decisive = {} if story.decisive is None else {story.decisive: None}
    drawing = lamport_svg(story.events, title, Bold("the message that decides", decisive))
    picture.write_text(drawing, encoding="utf-8")
