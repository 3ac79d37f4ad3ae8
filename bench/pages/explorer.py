"""Searches and stories as one page that needs no server: what may happen next, and what it changes.

A book is a graph of states; a story is a graph with one way through it. States repeat each other a lot: so each
distinct card, pane, verdict and sentence stands once in a table of the document, and is named by its place.
"""

import json
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

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


def _place(table: dict[T, int], value: T) -> int:
    """Where a value stands in a table of distinct ones."""
    return table.setdefault(value, len(table))


def document(books: Sequence[Book]) -> dict[str, Any]:
    """The books as one JSON document."""
    cards, panes, verdicts = dict[Card, int](), dict[tuple[int, ...], int](), dict[Any, int]()
    happenings, signals = dict[Happening, int](), dict[tuple[str, ...], int]()

    def state(shown: Shown) -> list[int]:
        its = [_place(panes, tuple(_place(cards, card) for card in pane)) for pane in shown.panes]
        return [*its, _place(verdicts, shown.verdicts), int(shown.end)]

    def events(edges: Sequence[Edge]) -> list[int]:
        return [
            number
            for edge in edges
            for number in (
                _place(happenings, edge.happening),
                edge.target,
                _place(signals, edge.signals),
            )
        ]

    told = [
        {
            **{name: getattr(book, name) for name in Book._fields[:6]},
            "states": [*map(state, book.states)],
            "edges": [None if edges is None else events(edges) for edges in book.edges],
        }
        for book in books
    ]
    tables: dict[str, dict[Any, int]] = {
        "cards": cards,
        "paneTable": panes,
        "verdicts": verdicts,
        "happenings": happenings,
        "signals": signals,
    }
    return {"books": told, **{name: [*table] for name, table in tables.items()}}


def write_explorer(file: Path, books: Sequence[Book]) -> None:
    """Write the page of these books, complete in itself."""
    content = json.dumps(document(books), ensure_ascii=False, separators=(",", ":"))
    safe = content.replace("<", "\\u003c")  # it stands inside a script element
    its = page("explorer.html.j2", served=False, script=asset("explorer.js"), document=safe)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(its, encoding="utf-8")
