"""Searches and stories as one page that needs no server: what may happen next, and what it changes.

A book is a graph of states; a story is a graph with one way through it. States repeat each other a lot: so each
distinct card, pane, verdict and sentence stands once in a table of the document, and is named by its place.

Counterexamples of models are books, too: each step in words, with all variables.
"""

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from bench.pages.render import asset, page
from specs.counterexample import parse, write
from specs.manifest import VIOLATION
from specs.stories import STORIES, Event, Story

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


# ---------------------------------------------------------------- counterexamples of models


GROUP = "Counterexamples of models"
PANES = ("Variables", "Messages on their way")


def model_books(stories: Sequence[Story] = STORIES) -> list[Book]:
    """The shortest way to the broken law of each story."""
    return [_book(story) for story in stories]


def _book(story: Story) -> Book:
    checked, last = story.checked, len(story.steps) - 1
    law = checked.expect.removeprefix(VIOLATION)
    variables: dict[str, str] = {}
    states: list[Shown] = []
    edges: list[list[Edge]] = []
    events = story.events()
    for number, step in enumerate(story.steps):
        variables |= step["changes"]
        panes = (
            tuple(_cards(variables, checked.model, story.names)),
            _under_way([*chain(*events[: number + 1])]),
        )
        broken = number == last
        states.append(Shown(panes, (Verdict(law, not broken),), broken))
        if number:
            # TLC has no name for what it finds in a set that grows.
            happening = Happening(step["says"], step["action"].replace("Next", ""))
            edges.append([Edge(happening, number, tuple(map(_signal, events[number])))])
    about = f"{checked.about[:1].upper()}{checked.about[1:]}."
    title = f"{checked.model}: {story.title[:1].lower()}{story.title[1:]}"
    covered = (
        f"The shortest way to the broken law: {last} steps (docs/evidence/models/{story.page}.md)."
    )
    return Book(GROUP, title, about, "", covered, PANES, states, [*edges, []])


def _cards(variables: Mapping[str, str], model: str, names: Mapping[str, str]) -> Iterator[Card]:
    """A card for what has no parts, and one for each part: with what a function has of it, or a record."""
    parts: dict[str, list[tuple[str, str]]] = {model: []}
    for name, text in variables.items():
        value = parse(text)
        if isinstance(value, str):
            parts[model].append((name, value.replace('"', "")))
            continue
        for key, item in value.items():
            is_field = key[0] == "."
            part, fact = (name, key[1:]) if is_field else (key[1:-1], name)
            fields = {"": item} if is_field or isinstance(item, str) else item
            facts = [(fact + field, write(its).replace('"', "")) for field, its in fields.items()]
            parts.setdefault(part, []).extend(facts)
    for part, facts in parts.items():
        title = f"{names[part]} ({part})" if part in names else part
        yield Card(title, tuple(facts))


def _signal(event: Event) -> str:
    message = event["message"]
    what = str(message["body"]["type"]).replace(" ", "_")
    sign = "+" if event["type"] == "send" else "-"
    return f"{sign}{message['src']}>{message['dest']} {what} {message['id']}"


def _under_way(events: Sequence[Event]) -> tuple[Card, ...]:
    """The messages that were sent, and have not arrived."""
    arrived = {event["message"]["id"] for event in events if event["type"] == "recv"}
    sent = (event["message"] for event in events if event["type"] == "send")
    return tuple(
        Card(
            f"{each['src']} → {each['dest']}: {each['body']['type']}",
            tuple(
                (name, json.dumps(value).strip('"'))
                for name, value in each["body"].items()
                if name != "type"
            ),
        )
        for each in sent
        if each["id"] not in arrived
    )
