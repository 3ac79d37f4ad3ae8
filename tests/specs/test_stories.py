"""The pages of docs/models tell what the models do, and name tests that exist."""

import re
from pathlib import Path

import pytest

from specs.stories import BEGIN, DOCS, END, STORIES, Story, write

ROOT = DOCS.parent
LONG = {"unclean-election"}  # a minute of search


def _told(story: Story) -> list[str]:
    text = (DOCS / "models" / f"{story.page}.md").read_text()
    return text.split(BEGIN)[1].split(END)[0].strip().splitlines()


@pytest.mark.parametrize(
    "story",
    [pytest.param(s, marks=[pytest.mark.slow] * (s.page in LONG), id=s.page) for s in STORIES],
)
def test_a_page_has_the_events_and_the_picture_of_its_model(story: Story) -> None:
    lines, svg = write(story)
    assert _told(story) == lines
    assert story.picture.read_text() == svg


@pytest.mark.parametrize("page", sorted((DOCS / "models").glob("*.md")), ids=lambda p: p.stem)
def test_the_tests_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    sources = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for path in re.findall(r"`(tests/\S+\.py)`", text):
        assert (ROOT / path).is_file()
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in sources
