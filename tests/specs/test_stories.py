"""The pages of docs/evidence/models tell TLC's counterexamples, and name tests that exist."""

import re
from dataclasses import replace
from itertools import accumulate
from operator import or_
from pathlib import Path

import pytest

from specs.check import differences
from specs.stories import BEGIN, DOCS, END, STORIES, Story
from specs.tlc import Outcome, State

ROOT = DOCS.parent
EACH = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.page)


@EACH
def test_a_page_has_the_events_and_the_picture_of_its_story(story: Story) -> None:
    page = (DOCS / "evidence" / "models" / f"{story.page}.md").read_text()
    assert page.split(BEGIN)[1].split(END)[0].strip().splitlines() == story.lines()
    assert story.picture.read_text() == story.svg()
    assert all(step["says"] for step in story.steps[1:])


@EACH
def test_another_way_than_that_of_the_page_is_a_difference(story: Story) -> None:
    """Which way TLC goes is a part of `make specs`."""
    after = accumulate((step["changes"] for step in story.steps), or_)
    states = [State(0, step["action"], each) for step, each in zip(story.steps, after, strict=True)]
    outcome = Outcome(story.checked.expect, None, tuple(states))
    assert [*differences(story.checked, outcome)] == []
    shorter = replace(outcome, states=outcome.states[1:])
    assert [*differences(story.checked, shorter)] == [
        "TLC goes another way than the page tells: run python -m specs.stories"
    ]


@pytest.mark.parametrize(
    "page", sorted((DOCS / "evidence" / "models").glob("*.md")), ids=lambda p: p.stem
)
def test_the_tests_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    sources = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for path in re.findall(r"`(tests/\S+\.py)`", text):
        assert (ROOT / path).is_file()
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in sources
