"""Counterexamples as numbered events and Lamport diagrams, for docs/models.

The second checker finds the shortest way to a broken law. A module for each model says each step of it in
words and as messages. `python -m specs.stories` writes the pages and pictures.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from runs.plots.lamport import lamport_svg
from specs.manifest import load
from specs.second.configurations import second_model
from specs.second.explorer import Model, explore
from specs.stories import (
    bookkeeper,
    leaderless_log,
    task_claiming,
    two_step_assign,
    unclean_election,
)
from specs.stories.diagram import Diagram

DOCS = Path(__file__).parents[2] / "docs"
BEGIN, END = "<!-- events -->", "<!-- end of events -->"  # around the events in a page
MOST_STATES = 1_000_000
S = TypeVar("S", bound=Hashable)
Teller = Callable[[str, Any, Any, Diagram], str]  # step, before, after, diagram -> a sentence


@dataclass(frozen=True)
class Story:
    """A broken configuration, the page that tells it, and how its steps are told."""

    configuration: str
    page: str
    title: str
    tell: Teller

    @property
    def picture(self) -> Path:
        """Where its diagram is."""
        return DOCS / "images" / f"model-{self.page}.svg"


STORIES = (
    Story(
        "BookKeeper/reads-do-not-fence",
        "bookkeeper",
        "An entry is lost in recovery",
        bookkeeper.tell,
    ),
    Story(
        "UncleanElection/latest-offset",
        "unclean-election",
        "The replica with the latest offset lacks a committed message",
        unclean_election.tell,
    ),
    Story(
        "TwoStepAssign/published-in-turn",
        "two-step-assign",
        "A stale pending entry overwrites a compacted one",
        two_step_assign.tell,
    ),
    Story(
        "TaskClaiming/session-expires-early",
        "task-claiming",
        "A slow worker loses its session and goes on",
        task_claiming.tell,
    ),
    Story(
        "LeaderlessLog/published-overlap",
        "leaderless-log",
        "A range ends inside a batch, and two entries cover one message",
        leaderless_log.tell,
    ),
)


def steps_of(story: Story) -> list[tuple[str, Any]]:
    """The shortest way to the broken law, with the same names from the first state to the last."""
    configuration = next(c for c in load().configurations if c.title == story.configuration)
    model = second_model(configuration)
    found = explore(model, configuration.invariants, MOST_STATES)
    return _with_one_naming(model, found.path)


def _with_one_naming(model: Model[S], path: tuple[tuple[str, S], ...]) -> list[tuple[str, S]]:
    """A path of representatives as a path of states: a representative may have other names."""
    _, first = path[0]
    state = next(s for s in model.initial() if model.representative(s) == first)
    told = [("Init", state)]
    for step, representative in path[1:]:
        state = next(
            after
            for name, after in model.steps(state)
            if name == step and model.representative(after) == representative
        )
        told.append((step, state))
    return told


def write(story: Story) -> tuple[list[str], str]:
    """The numbered events of a story and its diagram, an SVG document."""
    told = steps_of(story)
    diagram = Diagram()
    sentences = [
        story.tell(step, before, after, diagram) for (_, before), (step, after) in pairwise(told)
    ]
    lines = [f"{number}. {s[0].upper()}{s[1:]}" for number, s in enumerate(sentences, 1)]
    return lines, lamport_svg(diagram.events, story.title)
