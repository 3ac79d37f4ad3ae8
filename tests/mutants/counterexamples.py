"""Counterexamples of models as books of the explorer's page: each step in words, with all variables."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from bench.pages.explorer import Book, Card, Edge, Happening, Shown, Verdict
from specs.counterexample import parse, write
from specs.manifest import VIOLATION
from specs.stories import Event, Story

GROUP = "Counterexamples of models"
PANES = ("Variables", "Messages on their way")


def model_book(story: Story) -> Book:
    """The shortest way to the broken law of a story."""
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
