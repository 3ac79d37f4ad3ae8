"""The chapters of docs/learn: each node that fails does so, with the words that the page has."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from bench.commands.test import test as command
from bench.options import TestOptions, from_flags
from tests.scripted import ROOT, node_of
from tests.toy_log import VirtualRun, verdict_of

CHAPTERS = sorted((ROOT / "docs" / "learn").glob("[1-9]-*.md"))
BLOCK = re.compile(r"```\n(.*?)```", re.DOTALL)


def lines_of(chapter: Path) -> list[str]:
    """The page, with commands on one line."""
    return re.sub(r" \\\n\s*", " ", chapter.read_text()).splitlines()


def failing_run(chapter: Path) -> VirtualRun:
    """The first command of a chapter, on the virtual clock."""
    line = next(each for each in lines_of(chapter) if each.startswith("    ./maelstrom test "))
    arguments = shlex.split(line)[2:]
    context = command.make_context("test", [*arguments, "--seed", "1"])
    chosen: TestOptions = from_flags(context.params)
    options = {each: getattr(chosen, each) for each in TestOptions.__dataclass_fields__}
    return VirtualRun(make=node_of(ROOT / chosen.bin), **options)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_the_bench_says_of_the_failing_node_what_the_chapter_says(chapter: Path) -> None:
    said = verdict_of(failing_run(chapter))
    (words,) = BLOCK.findall(chapter.read_text())
    for line in words.strip().splitlines():
        pattern = ".*".join(map(re.escape, line.split("...")))
        assert re.search(pattern, said), f"{line!r} is not in\n{said}"


def test_each_chapter_leads_to_the_next() -> None:
    last = ROOT / "docs" / "learn" / "teaching.md"
    for chapter, following in pairwise([*CHAPTERS, last]):
        assert "Next: [" in chapter.read_text()
        assert f"]({following.name})" in chapter.read_text()
