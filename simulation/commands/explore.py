"""`./maelstrom explore`: every schedule of a small cluster, or of a few programs on an object store."""

import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import click

from bench.flags import POSITIVE, Flag, click_options, flags_of, optional_click_options
from bench.pages.explorer import write_explorer
from bench.terminal import Console
from runs.facts import spaced
from simulation.exploration import telling
from simulation.exploration.book import book_of_search
from simulation.exploration.campaign import run
from simulation.exploration.search import Search
from simulation.exploration.setting import COMMAND, Setting, counted
from simulation.exploration.telling import Failure
from simulation.reporting import draw, show

EXIT_SOUND, EXIT_FAILED, EXIT_STOPPED = 0, 1, 2
FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to search, and where to tell."""

    delays: Annotated[
        int | None,
        Flag("Cut: deviate at most so often from the first event.", click.IntRange(0, 60_000)),
    ] = None
    cpu_s: Annotated[float | None, Flag("Stop after about so much CPU time.", POSITIVE)] = None
    replay: Annotated[
        Path | None,
        Flag(
            "Play a kept schedule, and tell what happens.",
            click.Path(path_type=Path, dir_okay=False, exists=True),
        ),
    ] = None
    out: Annotated[
        Path,
        Flag("The folder for a failing schedule.", click.Path(path_type=Path, file_okay=False)),
    ] = Path("results/explore")
    page: Annotated[
        Path | None,
        Flag("Write what may happen as a page on which one chooses the next event.", FILE),
    ] = None
    json: Annotated[bool, Flag("Print one JSON object, for tools.")] = False

    @property
    def console(self) -> Console:
        """Where people read; stdout is for the JSON object, if one is wanted."""
        return Console(stderr=self.json, highlight=False, soft_wrap=True, emoji=False)


FLAGS = {
    name: replace(flag, help=f"{flag.help} [default: {getattr(Setting(), name)}]")
    for name, flag in flags_of(Setting).items()
}


@click.command()
@optional_click_options(FLAGS)
@click_options(flags_of(Wanted), asdict(Wanted()))
def explore(**options: Any) -> None:
    """Search all schedules of a small cluster of the real nodes, and judge each step and each end.

    A schedule is an order of requests, deliveries, timers and faults. With --programs: an order in which the
    requests of a few programs on an object store are carried out; the log is ours, or S3-Queue as it was
    published, or repaired.

    The first schedule that fails is made small, told, and kept, with a picture. Exit status: 0 all sound, 1
    something was wrong, 2 stopped before the end, 254 bad arguments, 255 crashed or interrupted.
    """
    wanted = Wanted(**{name: options.pop(name) for name in flags_of(Wanted)})
    if wanted.replay:
        sys.exit(_replay(wanted.replay, wanted.console))
    setting = Setting(**{name: value for name, value in options.items() if value is not None})
    sys.exit(_search(setting, wanted))


def _search(setting: Setting, wanted: Wanted) -> int:
    """Search a setting, print the verdict, report a failure; returns the exit status.

    Progress goes to stderr. Raises `click.UsageError` for what cannot be searched.
    """
    if problem := setting.problem:
        raise click.UsageError(problem)
    search, console = Search(delays=wanted.delays), wanted.console
    progress = Console(stderr=True, highlight=False)
    run(
        setting,
        search,
        cpu_s_max=wanted.cpu_s,
        report=lambda: progress.print(progress_of(search), markup=False),
    )
    if wanted.json:
        click.echo(json.dumps(as_object(setting, search)))
    else:
        console.print(verdict(setting, search), markup=False)
    if search.failed:
        _report(Failure(setting, search.failed), wanted.out, console)
    if wanted.page:
        write_explorer(wanted.page, [book_of_search(setting, search)])
        console.print(f"page: {wanted.page}", markup=False)
    if search.failed:
        return EXIT_FAILED
    return EXIT_SOUND if search.done else EXIT_STOPPED


def progress_of(search: Search) -> str:
    """How far a search is, in a line."""
    counts, share = search.counts, search.fraction
    about = f", about {counts.events / share:.0f} in all" if 0 < share < 1 else ""
    return (
        f"{share:.1%} done: {counts.schedules} schedules, {counts.events} events{about},"
        f" {search.cpu_s:.0f} s of CPU"
    )


def verdict(setting: Setting, search: Search) -> str:
    """What was found, what was covered, and what was not: the first word is the verdict."""
    counts = search.counts
    held = f"every step held to {setting.held_to}, " if setting.held_to else ""
    sized = f"{spaced(len(search.states))} states, {spaced(counts.schedules)} schedules"
    if search.failed:
        said = f"✘ fails: a schedule of {setting.covered}; {sized} until then"
    elif not search.done:
        said = (
            f"unfinished: {search.fraction:.1%} of all schedules of {setting.covered}: {sized},"
            f" {held}sound so far; nothing is said of the rest"
        )
    else:
        said = (
            f"✔ sound within these bounds: all schedules of {setting.covered}{_within(search)}: {sized},"
            f" {held}every end judged"
        )
    return (
        f"{said}\nnot covered: more of these, {setting.left_out}\n"
        f"{spaced(len(search.ends))} ends judged, {spaced(counts.events)} events,"
        f" {spaced(counts.merged)} merged,"
        f" {search.cpu_s:.1f} s of CPU"
    )


def _within(search: Search) -> str:
    """The bound on delays, if it cut anything."""
    delays, cut = search.delays, search.counts.delayed
    if delays is None or not cut:
        return ""
    bound = f"with at most {counted(delays, 'delay')}, complete for this bound only"
    return f" {bound} ({spaced(cut)} branches cut)"


def as_object(setting: Setting, search: Search) -> dict[str, Any]:
    """The same for tools."""
    failed = search.failed
    return {
        "setting": setting.as_object(),
        "verdict": verdict(setting, search),
        "done": search.done,
        "fraction": search.fraction,
        "states": len(search.states),
        "ends": len(search.ends),
        **asdict(search.counts),
        "cpu_s": search.cpu_s,
        "failure": failed and {"name": failed.name, "text": failed.text},
    }


def _report(failure: Failure, out: Path, console: Console) -> None:
    """Make a failure small, tell it, keep it."""
    failure = telling.smallest(failure)
    chosen, failed = failure
    console.print(f"\n✘ {failed.name}\n  {failed.text}", style="bold red", markup=False)
    console.print(f"the smallest setting that fails so: {chosen.command()}\n", markup=False)
    file = out / f"{chosen.strategy}-{failed.name}.json"
    telling.write(file, failure)
    told = telling.replayed(chosen, failed.schedule)
    show(told.lines, console)
    picture = file.with_suffix(".svg")
    draw(picture, told.story, f"{chosen.strategy}: {failed.name}")
    console.print(f"\npicture: {picture}", markup=False)
    console.print(f"\nreplay: {COMMAND} --replay {file}", markup=False)


def _replay(file: Path, console: Console) -> int:
    try:
        told = telling.replayed(*telling.read(file))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    show(told.lines, console)
    failed = told.failed
    said = f"✘ {failed.name}\n  {failed.text}" if failed else "✔ sound: this one schedule"
    console.print(f"\n{said}", markup=False)
    return EXIT_FAILED if failed else EXIT_SOUND
