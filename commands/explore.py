"""`./maelstrom explore`: every schedule of a small cluster."""

import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from bench.flags import click_options
from commands.exploring import EXIT_FAILED, EXIT_SOUND, Wanted, search, search_options
from simulation.exploration import telling
from simulation.exploration.events import Event
from simulation.exploration.setting import FLAGS, Setting
from simulation.exploration.telling import Failure
from simulation.story import Story, text_of


@click.command()
@click_options(FLAGS, {name: getattr(Setting(), name) for name in FLAGS})
@search_options
def explore(wanted: Wanted, **options: Any) -> None:
    """Search all schedules of a small cluster of the real nodes, and judge each step and each end.

    A schedule is an order of requests, deliveries, timers and faults. The first that fails is made small, told,
    and kept, with a picture. Exit status: 0 all sound, 1 something was wrong, 2 stopped before the end, 254 bad
    arguments, 255 crashed or interrupted.
    """
    if wanted.replay:
        sys.exit(_replay(wanted.replay, wanted.console))
    sys.exit(search(Setting(**options), wanted, _report))


def _report(failure: Failure[Setting], out: Path, console: Console) -> None:
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
        setting, schedule = telling.read(file, Setting)
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
