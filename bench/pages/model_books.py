"""Counterexamples of models as books of the explorer's page: each step in words, with all variables."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from bench.pages.explorer import Book, Card, Edge, Happening, Shown, Verdict
from specs.manifest import Configuration, load
from specs.second.configurations import second_model
from specs.stories import STORIES, Story, steps_of
from specs.stories.diagram import Diagram, Event, name_of

GROUP = "Counterexamples of models"
PANES = ("Variables", "Messages on their way")


def model_books(stories: Sequence[Story] = STORIES) -> list[Book]:
    """The shortest way to the broken law of each story; one of them takes a minute."""
    return [_book(story) for story in stories]


def _book(story: Story) -> Book:
    configuration = next(c for c in load().configurations if c.title == story.configuration)
    laws = second_model(configuration).laws()
    judges = {name: laws[name] for name in configuration.invariants}
    told, diagram = steps_of(story), Diagram()
    states = [_shown(told[0][1], [], judges, configuration)]
    edges: list[list[Edge]] = []
    for (_, before), (step, after) in pairwise(told):
        known = len(diagram.events)
        sentence = story.tell(step, before, after, diagram)
        signals = tuple(map(_signal, diagram.events[known:]))
        edges.append([Edge(Happening(sentence, step), len(states), signals)])
        states.append(_shown(after, diagram.events, judges, configuration))
    about = f"{configuration.about[:1].upper()}{configuration.about[1:]}."
    title = f"{configuration.model}: {story.title[:1].lower()}{story.title[1:]}"
    covered = (
        f"The shortest way to the broken law: {len(edges)} steps (docs/models/{story.page}.md)."
    )
    return Book(GROUP, title, about, "", covered, PANES, states, [*edges, []])


def _shown(
    state: Any, events: Sequence[Event], judges: Mapping[str, Any], configuration: Configuration
) -> Shown:
    verdicts = tuple(Verdict(name, holds(state)) for name, holds in judges.items())
    end = not all(verdict.holds for verdict in verdicts)
    return Shown((tuple(_cards(state, configuration.model)), _under_way(events)), verdicts, end)


def _cards(state: Any, model: str) -> Iterator[Card]:
    """A card for each part of a state, and one for all that has no parts."""
    plain: list[tuple[str, str]] = []
    cards: list[Card] = []
    for name, value in state._asdict().items():
        if hasattr(value, "_asdict"):
            cards.append(Card(name, _facts(value)))
        elif isinstance(value, tuple) and value and hasattr(value[0], "_asdict"):
            kind = name.removesuffix("s")
            cards += [
                Card(f"{name_of(kind, number)} ({number})", _facts(each))
                for number, each in enumerate(value)
            ]
        else:
            plain.append((name.replace("_", " "), _text(value)))
    yield Card(model, tuple(plain))
    yield from cards


def _facts(part: Any) -> tuple[tuple[str, str], ...]:
    return tuple((name.replace("_", " "), _text(its)) for name, its in part._asdict().items())


def _text(value: Any) -> str:
    return json.dumps(_listed(value), ensure_ascii=False, default=str).replace('"', "")


def _listed(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(map(_listed, value), key=str)
    return [_listed(each) for each in value] if isinstance(value, tuple) else value


def _signal(event: Event) -> str:
    message = event["message"]
    what = str(message["body"]["type"]).replace(" ", "_")
    sign = "+" if event["type"] == "send" else "-"
    return f"{sign}{message['src']}>{message['dest']} {what} {message['id']}"


def _under_way(events: Sequence[Event]) -> tuple[Card, ...]:
    """The messages that were sent, and have not arrived."""
    arrived = {event["message"]["id"] for event in events if event["type"] == "recv"}
    sent = [event["message"] for event in events if event["type"] == "send"]
    return tuple(_message(each) for each in sent if each["id"] not in arrived)


def _message(message: Mapping[str, Any]) -> Card:
    body = message["body"]
    facts = tuple((name, _text(value)) for name, value in body.items() if name != "type")
    return Card(f"{message['src']} → {message['dest']}: {body['type']}", facts)
