"""Searches and stories as one page that needs no server: what may happen next, and what it changes.

A book is a graph of states; a story is a graph with one way through it. States repeat each other a lot: so each
distinct card, pane, verdict and sentence stands once in a table of the document, and is named by its place.
"""

import json
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from bench.pages.render import asset, page

T = TypeVar("T", bound=Hashable)


class Card(NamedTuple):
    """Something that a reader can point at: a register, a node, a client, a message; its facts, named."""

    title: str
    facts: tuple[tuple[str, str], ...] = ()


class Verdict(NamedTuple):
    """What the model says of a state: a law, whether it holds there, and what was seen."""

    law: str
    holds: bool
    text: str = ""


class Shown(NamedTuple):
    """A state as it is shown: the cards of each pane, and the verdicts. `end`: nothing follows."""

    panes: tuple[tuple[Card, ...], ...]
    verdicts: tuple[Verdict, ...] = ()
    end: bool = False


class Happening(NamedTuple):
    """A sentence, more about it, and whether it is a fault."""

    sentence: str
    detail: str = ""
    fault: bool = False


class Edge(NamedTuple):
    """An event of a state. `signals`: what it did to messages, as `+n0>n1 share` when one is sent.

    The sign is `+` for sent, `-` for arrived, `x` for lost, `!` for the death of who would send it.
    """

    happening: Happening
    target: int
    signals: tuple[str, ...] = ()


class Book(NamedTuple):
    """A graph of states, which begins with the first. `edges` of a state are None where the search was cut.

    `about`: sentences for readers; `command`: what makes it again; `covered`: what was searched and what not.
    """

    group: str
    title: str
    about: str
    command: str
    covered: str
    panes: tuple[str, ...]
    states: Sequence[Shown]
    edges: Sequence[Sequence[Edge] | None]


class Table(Generic[T]):
    """Distinct values, each with its place."""

    def __init__(self) -> None:
        self.places: dict[T, int] = {}

    def place(self, value: T) -> int:
        """Where the value stands."""
        return self.places.setdefault(value, len(self.places))


def document(books: Sequence[Book]) -> dict[str, Any]:
    """The books as one JSON document."""
    cards, panes, verdicts = Table[Card](), Table[tuple[int, ...]](), Table[Hashable]()
    happenings, signals = Table[Happening](), Table[tuple[str, ...]]()

    def state(shown: Shown) -> list[int]:
        its = [panes.place(tuple(map(cards.place, pane))) for pane in shown.panes]
        return [*its, verdicts.place(shown.verdicts), int(shown.end)]

    def events(edges: Sequence[Edge] | None) -> list[int] | None:
        if edges is None:
            return None
        found = ((happenings.place(e.happening), e.target, signals.place(e.signals)) for e in edges)
        return [number for edge in found for number in edge]

    told = [
        {
            **{name: getattr(book, name) for name in Book._fields[:6]},
            "states": [*map(state, book.states)],
            "edges": [*map(events, book.edges)],
        }
        for book in books
    ]
    tables: dict[str, Table[Any]] = {
        "cards": cards,
        "paneTable": panes,
        "verdicts": verdicts,
        "happenings": happenings,
        "signals": signals,
    }
    return {"books": told, **{name: [*table.places] for name, table in tables.items()}}


def explorer_page(books: Sequence[Book]) -> str:
    """The page with these books, complete in itself."""
    content = json.dumps(document(books), ensure_ascii=False, separators=(",", ":"))
    safe = content.replace("<", "\\u003c")  # it stands inside a script element
    return page("explorer.html.j2", served=False, script=asset("explorer.js"), document=safe)


def write_explorer(file: Path, books: Sequence[Book]) -> None:
    """Write the page of these books."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(explorer_page(books), encoding="utf-8")
