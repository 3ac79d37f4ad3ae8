"""`./maelstrom explore`: every schedule of a small cluster, or of a few programs on an object store."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console

from bench.flags import flags_of, optional_click_options
from simulation.commands.exploring import EXIT_FAILED, EXIT_SOUND, Wanted, search, search_options
from simulation.exploration import telling
from simulation.exploration.bucket import ExploredBucket
from simulation.exploration.events import Event
from simulation.exploration.requests import events_of
from simulation.exploration.search import Failed
from simulation.exploration.setting import COMMAND, Setting
from simulation.exploration.telling import Failure
from simulation.reporting import draw, show
from simulation.story import Story, text_of

FLAGS = {
    name: replace(flag, help=f"{flag.help} [default: {getattr(Setting(), name)}]")
    for name, flag in flags_of(Setting).items()
}


@click.command()
@optional_click_options(FLAGS)
@search_options
def explore(wanted: Wanted, **options: Any) -> None:
    """Search all schedules of a small cluster of the real nodes, and judge each step and each end.

    A schedule is an order of requests, deliveries, timers and faults. With --programs: an order in which the
    requests of a few programs on an object store are carried out; the log is ours, or S3-Queue as it was
    published, or repaired.

    The first schedule that fails is made small, told, and kept, with a picture. Exit status: 0 all sound, 1
    something was wrong, 2 stopped before the end, 254 bad arguments, 255 crashed or interrupted.
    """
    if wanted.replay:
        sys.exit(_replay(wanted.replay, wanted.console))
    setting = Setting(**{name: value for name, value in options.items() if value is not None})
    sys.exit(search(setting, wanted, _report))


class Told(NamedTuple):
    """A schedule that was played: as lines, with its messages, and what failed."""

    lines: list[str]
    story: Story
    failed: Failed | None


def _report(failure: Failure, out: Path, console: Console) -> None:
    """Make a failure small, tell it, keep it."""
    failure = telling.smallest(failure)
    chosen, failed = failure
    console.print(f"\n✘ {failed.name}\n  {failed.text}", style="bold red", markup=False)
    console.print(f"the smallest setting that fails so: {chosen.command()}\n", markup=False)
    file = out / f"{chosen.strategy}-{failed.name}.json"
    telling.write(file, failure)
    told = _told(chosen, failed.schedule)
    show(told.lines, console)
    picture = file.with_suffix(".svg")
    draw(picture, told.story, f"{chosen.strategy}: {failed.name}")
    console.print(f"\npicture: {picture}", markup=False)
    console.print(f"\nreplay: {COMMAND} --replay {file}", markup=False)


def _replay(file: Path, console: Console) -> int:
    try:
        told = _told(*telling.read(file))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    show(told.lines, console)
    failed = told.failed
    said = f"✘ {failed.name}\n  {failed.text}" if failed else "✔ sound: this one schedule"
    console.print(f"\n{said}", markup=False)
    return EXIT_FAILED if failed else EXIT_SOUND


def _told(chosen: Setting, schedule: Sequence[Event]) -> Told:
    """Play a schedule. Raises `ValueError` for what cannot happen."""
    system, story, failed = telling.replayed(chosen, schedule)
    lines = [*telling.sentences(schedule), "", *text_of(story)]
    if isinstance(system, ExploredBucket):
        lines += ["", *[*events_of(system.store.journal)][system.begins_at :]]
    return Told(lines, story, failed)
