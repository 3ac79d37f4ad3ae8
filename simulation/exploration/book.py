"""A search as a book of the explorer's page: its graph, in words."""

from collections.abc import Sequence

from bench.pages.explorer import Book, Edge, Shown
from simulation.exploration.campaign import systems_of
from simulation.exploration.graph import EVENTS_MAX, Arrow, Graph, walked
from simulation.exploration.search import Event, Search
from simulation.exploration.setting import Setting
from simulation.exploration.shown import Look, Looks
from simulation.exploration.telling import Failure, shortened
from simulation.nodes import StrategyMaker

SEARCHES = "Searches"


def book_of(
    setting: Setting,
    make: StrategyMaker | None = None,
    *,
    along: Sequence[Event] = (),
    events_max: int = EVENTS_MAX,
    group: str = SEARCHES,
    title: str = "",
    about: str = "",
) -> Book:
    """Everything that may happen in a setting, up to a bound on the events that are played.

    `along`: a schedule that is in the book in any case, such as one that fails.
    """
    looks = Looks(setting)
    graph = walked(systems_of(setting, make), looks, events_max, along=along)
    covered = f"All that may happen: {len(graph.states)} states, {graph.events} events."
    if graph.cut:
        covered = (
            f"Cut after {graph.events} events: of {len(graph.states)} states, the {graph.cut} that are"
            " furthest from the beginning have no events here."
        )
    return bound(
        setting,
        looks,
        graph,
        (group, title or setting.command().partition("explore ")[2], about, covered),
    )


def book_of_search(setting: Setting, search: Search) -> Book:
    """The book of a setting, with the schedule that a search found to fail, made short."""
    if not search.failed:
        return book_of(setting)
    return book_of(setting, along=shortened(Failure(setting, search.failed)).failed.schedule)


def bound(
    setting: Setting, looks: Looks, graph: Graph[Look], words: tuple[str, str, str, str]
) -> Book:
    """The book of a graph; `words`: its group, title, what it is about, and what it covers."""
    group, title, about, covered = words
    states = [
        Shown(seen.state.panes, looks.verdicts(seen.failed, end=seen.end), seen.end)
        for seen in graph.states
    ]

    def edge(number: int, arrow: Arrow) -> Edge:
        before, after = graph.states[number].state, graph.states[arrow.target].state
        signals = tuple(looks.signals(arrow.event, before, after))
        return Edge(looks.happening(arrow.event, before), arrow.target, signals)

    edges = [
        None if arrows is None else [edge(number, arrow) for arrow in arrows]
        for number, arrows in enumerate(graph.arrows)
    ]
    return Book(group, title, about, setting.command(), covered, looks.panes, states, edges)
