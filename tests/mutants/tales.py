"""Graphs and books of one schedule, and the shortest way to a failure: for docs/explorer.html."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from bench.pages.explorer import Book
from simulation.exploration.book import bound
from simulation.exploration.campaign import systems_of
from simulation.exploration.graph import Arrow, Graph, Make, Seen, seen_of
from simulation.exploration.search import Event, Failing, System, exactly
from simulation.exploration.setting import Setting
from simulation.exploration.shown import Looks
from simulation.nodes import StrategyMaker

S = TypeVar("S")


def way_to_failure(graph: Graph[S]) -> list[Event] | None:
    """The shortest way from the first state to one that fails."""
    came: dict[int, tuple[int, Event] | None] = {0: None}
    for number, arrows in enumerate(graph.arrows):
        for event, target in arrows or ():
            came.setdefault(target, (number, event))
    failed = next((number for number, seen in enumerate(graph.states) if seen.failed), None)
    if failed is None:
        return None
    way: list[Event] = []
    while before := came[failed]:
        failed, event = before
        way.append(event)
    return way[::-1]


def line(make: Make, look: Callable[[System], S], schedule: Sequence[Event]) -> Graph[S]:
    """The states on the way of one schedule. Raises `ValueError` for what cannot happen."""
    graph: Graph[S] = Graph()
    system, failed = make(), None
    try:
        for number, event in enumerate(exactly(system, schedule), 1):
            graph.states.append(Seen(look(system), None, end=False))
            graph.arrows.append([Arrow(event, number)])
    except Failing as failing:
        failed = failing
    graph.states.append(seen_of(system, look, failed))
    graph.arrows.append([])
    graph.events = len(graph.states) - 1
    return graph


def tale_of(
    setting: Setting,
    schedule: Sequence[Event],
    make: StrategyMaker | None = None,
    *,
    group: str,
    title: str,
    about: str,
) -> Book:
    """One schedule of a setting, event by event. Raises `ValueError` for what cannot happen."""
    looks = Looks(setting)
    graph = line(systems_of(setting, make), looks, schedule)
    return bound(
        setting, looks, graph, (group, title, about, f"One schedule of {graph.events} events.")
    )
