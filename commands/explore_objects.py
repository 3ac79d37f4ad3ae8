"""`./maelstrom explore-objects`: every schedule of a few processes on an object store."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from bench.flags import click_options
from commands.exploring import EXIT_FAILED, EXIT_SOUND, Wanted, search, search_options
from simulation.exploration import telling
from simulation.exploration.bucket import ExploredBucket
from simulation.exploration.bucket_setting import FLAGS, BucketSetting
from simulation.exploration.events import Event
from simulation.exploration.search import Failed
from simulation.exploration.telling import Failure
from simulation.objects.story import events_of


@click.command("explore-objects")
@click_options(FLAGS, {name: getattr(BucketSetting(), name) for name in FLAGS})
@search_options
def explore_objects(wanted: Wanted, **options: Any) -> None:
    """Search all schedules of a few processes on an object store, and judge each end.

    A schedule is an order in which requests are carried out, with faults. The log is ours, or S3-Queue as it
    was published, or repaired. The first schedule that fails is made small, told, and kept. Exit status: 0 all
    sound, 1 something was wrong, 2 stopped before the end, 254 bad arguments, 255 crashed or interrupted.
    """
    if wanted.replay:
        sys.exit(_replay(wanted.replay, wanted.console))
    sys.exit(search(BucketSetting(**options), wanted, _report))


def _report(failure: Failure[BucketSetting], out: Path, console: Console) -> None:
    """Make a failure small, tell it, keep it."""
    setting, failed = telling.smallest(failure)
    file = out / f"{setting.log}-{failed.name}.json"
    telling.write(file, Failure(setting, failed))
    console.print(f"the smallest setting that fails so: {setting.command()}\n", markup=False)
    _tell(setting, failed.schedule, console)
    console.print(f"\nreplay: ./maelstrom explore-objects --replay {file}", markup=False)


def _replay(file: Path, console: Console) -> int:
    try:
        setting, schedule = telling.read(file, BucketSetting)
        failed = _tell(setting, schedule, console)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return EXIT_FAILED if failed else EXIT_SOUND


def _tell(setting: BucketSetting, schedule: Sequence[Event], console: Console) -> Failed | None:
    """Play a schedule, and print its requests, and what failed."""
    system = ExploredBucket(setting)
    failed = telling.followed(system, schedule)
    for line in [*events_of(system.journal)][system.begins_at :]:
        console.print(line, markup=False)
    system.close()
    text = f"\n✘ {failed.name}\n  {failed.text}" if failed else "\n✔ sound"
    console.print(text, markup=False)
    return failed
