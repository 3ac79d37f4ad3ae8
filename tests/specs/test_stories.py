"""The pages of docs/evidence/models tell TLC's counterexamples, and name tests that exist."""

import re
from pathlib import Path

import pytest

from specs.stories import BEGIN, DOCS, END, STORIES, Story, found

ROOT = DOCS.parent
EACH = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.page)


@EACH
def test_a_page_has_the_events_and_the_picture_of_its_story(story: Story) -> None:
    page = (DOCS / "evidence" / "models" / f"{story.page}.md").read_text()
    assert page.split(BEGIN)[1].split(END)[0].strip().splitlines() == story.lines()
    assert story.picture.read_text() == story.svg()
    assert all(step["says"] for step in story.steps[1:])


@EACH
@pytest.mark.tlc
def test_tlc_still_goes_this_way(story: Story) -> None:
    kept = [{"action": step["action"], "changes": step["changes"]} for step in story.steps]
    assert found(story) == kept


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
