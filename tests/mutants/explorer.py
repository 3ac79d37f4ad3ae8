"""Write docs/explorer.html: small searches, kept stories, and a short failure of each mutant.

The failures of mutants are kept in `schedules.json` and played again. With --search they are searched for
first: half an hour for all of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click

from bench.pages.explorer import Book, Edge, Happening, write_explorer
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.core.strategy import Context, Strategy
from simulation.exploration.book import book_of
from simulation.exploration.campaign import explored, systems_of
from simulation.exploration.graph import walked
from simulation.exploration.search import Event, Failed
from simulation.exploration.setting import Setting
from simulation.exploration.telling import Failure, followed, played, shortened
from simulation.logs import PUBLISHED
from simulation.nodes import StrategyMaker
from specs.stories import STORIES as MODELS
from tests.mutants.cases import MUTANTS
from tests.mutants.counterexamples import model_book
from tests.mutants.explored import ALL, CPU_S_MAX, SETTINGS, Kept, keep, kept, look_for
from tests.mutants.mutant import Mutant
from tests.mutants.tales import tale_of, way_to_failure

PAGE = Path(__file__).parents[2] / "docs" / "explorer.html"
STORIES, FAILURES = "Stories of the code", "Mutants: one rule is broken, and this shows it"
EVENTS_MAX = 12_000  # of the search for a shortest failure
SEARCH_EVENTS = 6_000  # of a search on the page
STEPS_MAX = 200  # of a story that never ends

HOLE = Setting(strategy="prefetch", sends=3)
OVERWRITTEN = Setting(PUBLISHED, programs=True, before=2, sends=1, compactions=1)
MIXED_LIMITS = Setting(sends=3, polls=0, compaction=True)
SEARCHES: tuple[tuple[Setting, str, str], ...] = (
    (
        Setting(),
        "Two nodes, two messages, a poll",
        "Choose any order: no law is broken. Both nodes may try to replace the head; only one can.",
    ),
    (
        Setting(sends=1, polls=0, lost=1),
        "One message, and one loss",
        "Any message between a node and the store may be lost. Unknown is never failure: the node asks again.",
    ),
    (
        Setting(sends=1, polls=0, crashes=1),
        "One message, and one death",
        "A node may die at any moment. What it had acknowledged is in the log.",
    ),
    (
        Setting(strategy="cas", polls=0),
        "The plain design: a compare-and-set for each send",
        "One register a key holds its whole log. Who loses the race reads it again.",
    ),
    (
        HOLE,
        "Prefetch: three messages, a poll; some orders fail",
        "Each node reserves sixteen offsets ahead. Can you find the order in which a reader misses a message?",
    ),
    (
        OVERWRITTEN,
        "S3-Queue as published: one producer, one compactor; some orders fail",
        "Two messages are there. When must the producer be slow, so that one of them is lost?",
    ),
)


def searches() -> Iterator[Book]:
    """Settings that are small enough to be searched, with the way to a failure if there is one."""
    for setting, title, about in SEARCHES:
        failed = explored(setting, cpu_s_max=CPU_S_MAX).failed
        along = short(setting, failed) if failed else []
        yield book_of(setting, along=along, events_max=SEARCH_EVENTS, title=title, about=about)


def stories() -> Iterator[Book]:
    """The kept stories of the code."""
    yield _story(
        HOLE,
        "Prefetch: a hole that is filled behind a reader",
        "Each node reserves sixteen offsets ahead, and shows its messages at once. A reader that has got offset"
        " 16 has passed offset 1, at which a message appears later.",
    )
    yield _story(
        OVERWRITTEN,
        "S3-Queue as published: a lost write",
        "A producer that is slow puts its index entry over the one that the compactor wrote meanwhile. What the"
        " compacted entry listed is lost.",
    )
    with MUTANTS["limits-of-the-reader"].alive():
        yield _story(
            MIXED_LIMITS,
            "Mixed limits: each node seals by its own",
            "The log must say when a tail is full. Here each node goes by a limit of its own: n0 takes a tail"
            " of one entry for full, and n1 one of two. What a segment holds then depends on who wrote it.",
            mixed,
        )


def mixed(context: Context) -> Strategy:
    """A node whose tail is full when it holds as many entries as the node's number and one more."""
    options, node = context.options, context.identity.node
    shape = options.shape
    assert shape is not None, "a setting gives its nodes a shape"
    own = replace(shape, seal_entries=1 + int(node.removeprefix("n")))
    return LeaderlessLog(context._replace(options=options._replace(shape=own)))


def _story(setting: Setting, title: str, about: str, make: StrategyMaker | None = None) -> Book:
    """A short failure of a setting."""
    failed = explored(setting, make, CPU_S_MAX).failed
    assert failed, f"{setting.command()} does not fail"
    schedule = short(setting, failed, make)
    return abridged(tale_of(setting, schedule, make, group=STORIES, title=title, about=about))


def shortest(setting: Setting, make: StrategyMaker | None = None) -> list[Event] | None:
    """The events of the shortest schedule that fails, if a search near the beginning reaches it.

    Of schedules of this length, one that deviates little from the first enabled event.
    """
    graph = walked(systems_of(setting, make), lambda _: None, EVENTS_MAX, stop=True)
    way = way_to_failure(graph)
    if way is None:
        return None
    failing = next(seen.failed for seen in graph.states if seen.failed)
    natural = short(setting, Failed(failing.name, failing.text, tuple(way)), make)
    return natural if len(natural) <= len(way) else way


def short(setting: Setting, failed: Failed, make: StrategyMaker | None = None) -> list[Event]:
    """A schedule that fails by the same name, of which no event can be left out."""
    failure: Failure = shortened(Failure(setting, failed), make)
    return [*failure.failed.schedule]


def found(name: str) -> Kept | None:
    """Search for the shortest failure of a mutant; None if none is found in its settings."""
    broken: Mutant = ALL[name]
    for setting in SETTINGS[name]:
        with broken.alive():
            way = shortest(setting)
            failure = _kept(setting, way) if way else None
        if failure and played(setting, failure.schedule).failed is None:  # with the right core
            return failure
    died = look_for(name)
    if died is None:
        return None
    with broken.alive():
        return _kept(died.setting, short(died.setting, Failed(died.law, "", died.schedule)))


def _kept(setting: Setting, schedule: Sequence[Event]) -> Kept:
    """A schedule of the mutant that is alive, with the law that it breaks."""
    failed = followed(systems_of(setting)(), schedule)
    assert failed, f"the schedule does not fail: {setting.command()}"
    return Kept(failed.name, setting, tuple(schedule))


def mutant(name: str, failure: Kept) -> Book:
    """The failure of a mutant, event by event."""
    broken: Mutant = ALL[name]
    about = f"The rule that is broken: {broken.rule}."
    title = f"{name}: {failure.law}"
    with broken.alive():
        book = tale_of(failure.setting, failure.schedule, group=FAILURES, title=title, about=about)
    return abridged(book)


def abridged(book: Book) -> Book:
    """The first steps of a story that goes on and on, and its last state."""
    left_out = len(book.states) - 1 - STEPS_MAX
    if left_out <= 0:
        return book
    states = [*book.states[: STEPS_MAX + 1], book.states[-1]]
    rest = Edge(Happening(f"and so it goes on, for {left_out} more events"), STEPS_MAX + 1)
    return book._replace(states=states, edges=[*book.edges[:STEPS_MAX], [rest], []])


@click.command(help=__doc__)
@click.argument("names", nargs=-1, type=click.Choice([*SETTINGS]))
@click.option("--search", is_flag=True, help="Search for the failures of NAMES, or of all mutants.")
@click.option("--out", type=click.Path(path_type=Path), default=PAGE, show_default=True)
def main(names: tuple[str, ...], search: bool, out: Path) -> None:
    failures = kept()
    for number, name in enumerate((names or SETTINGS) if search else (), 1):
        failures.pop(name, None)
        if failure := found(name):
            failures[name] = failure
        text = f"{failure.law} after {len(failure.schedule)} events" if failure else "survives"
        click.echo(f"{number}. {name}: {text}", err=True)
        keep(failures)
    mutants = [mutant(name, failures[name]) for name in SETTINGS if name in failures]
    write_explorer(out, [*searches(), *stories(), *map(model_book, MODELS), *mutants])
    click.echo(f"{out}: {out.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
