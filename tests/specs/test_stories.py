"""The pages of docs/evidence/models tell TLC's counterexamples, and name tests that exist."""

import re
from pathlib import Path

import pytest

from specs.check import differences
from specs.stories import BEGIN, DOCS, END, STORIES, Story
from specs.tlc import Outcome

ROOT = DOCS.parent
EACH = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.page)


@EACH
def test_a_page_has_the_events_and_the_picture_of_its_story(story: Story) -> None:
    page = (DOCS / "evidence" / "models" / f"{story.page}.md").read_text()
    assert page.split(BEGIN)[1].split(END)[0].strip().splitlines() == story.lines()
    assert story.picture.read_text() == story.svg()
    assert all(step["says"] for step in story.steps[1:])
    # Whether TLC still goes this way is for `make specs` to say.
    assert [*differences(story.checked, Outcome(story.checked.expect, None))] == [
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
