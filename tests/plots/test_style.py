"""One table of colours: complete, readable on white and on dark, and the only place that writes any."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from docs import pictures
from performance.pages import SLOPES
from runs.faults import KINDS
from runs.operations import SHARES
from runs.plots import style
from runs.traffic import LINKS
from specs.stories import STORIES

ROOT = Path(__file__).parents[2]
ROOMS = (
    "analysis",
    "bench",
    "docs",
    "leaderless",
    "performance",
    "runs",
    "simulation",
    "specs",
    "workloads",
)
COLOUR = re.compile(r"(?<!&)#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3,4})\b")
DARK = "#1d2024"  # the pages' darkest ground behind a picture
TABLES: dict[str, Mapping[Any, str]] = {
    "outcomes": style.OUTCOMES,
    "faults": style.FAULTS,
    "arrows": style.ARROWS,
    "causes": style.CAUSES,
    "quantiles": style.QUANTILES,
    "strategies": style.STRATEGIES,
    "series": dict(enumerate(style.SERIES)),
}


def sources(*suffixes: str) -> list[Path]:
    found = [file for room in ROOMS for file in (ROOT / room).rglob("*") if file.is_file()]
    return [file for file in found if file.suffix in suffixes]


def test_no_colour_is_written_outside_the_table() -> None:
    there = {
        str(file.relative_to(ROOT)): COLOUR.findall(file.read_text(encoding="utf-8"))
        for file in sources(".py", ".j2", ".js", "")
        if file != ROOT / "runs/plots/style.py" and not file.name.endswith(".pyc")
    }
    assert {file: colours for file, colours in there.items() if colours} == {}


def test_style_sheets_have_no_colour_of_the_table() -> None:
    known = {colour for table in TABLES.values() for colour in table.values()}
    (sheet,) = sources(".css")
    assert known.isdisjoint(COLOUR.findall(sheet.read_text(encoding="utf-8")))


def test_every_picture_of_the_documents_is_made_by_a_program_and_shown() -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        name
        for file in documents
        for name in re.findall(r"\]\((?:\S*/)?images/([\w.-]+)\)", file.read_text(encoding="utf-8"))
    }
    drawn = {name for _, names in pictures.PICTURES.values() for name in names}
    drawn |= {f"performance-{slope.name}.svg" for slope in SLOPES}
    drawn |= {story.picture.name for story in STORIES}
    notebooks = {file.stem for file in (ROOT / "analysis/notebooks").glob("*.ipynb")}
    assert drawn <= shown <= drawn | {f"notebook-{name}.png" for name in notebooks}
    assert {file.name for file in (ROOT / "docs" / "images").iterdir()} == shown


def test_every_fault_has_a_colour_of_its_own() -> None:
    assert set(style.FAULTS) == set(KINDS)
    assert len({*style.FAULTS.values(), style.fault_colour("of-jepsen")}) == len(KINDS) + 1


def test_links_and_quantiles_of_runs_have_colours() -> None:
    assert set(style.LINKS) == set(LINKS)
    assert [*style.QUANTILES] == [*SHARES, "max"]
    assert set(style.ARROW_MEANINGS) == set(style.ARROWS)


@pytest.mark.parametrize("table", TABLES)
def test_colours_of_a_table_differ_and_read_on_white_and_on_dark(table: str) -> None:
    colours = [*TABLES[table].values()]
    assert len(set(colours)) == len(colours)
    for colour in colours:
        assert min(contrast(colour, style.PAPER), contrast(colour, DARK)) >= 3, colour


def contrast(one: str, other: str) -> float:
    """[WCAG 2.2, contrast ratio]"""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """[WCAG 2.2, relative luminance]"""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_tint_lies_between_the_colour_and_white() -> None:
    assert style.tint("#204060", 1) == "#204060"
    assert style.tint("#204060", 0) == style.PAPER
    assert style.tint("#000000", 0.5) == "#808080"


def test_known_strategies_come_first_and_keep_their_colours() -> None:
    assert style.strategies(["10", "mine", "9", "cas", "leaderless", "cas"]) == [
        "leaderless",
        "cas",
        "9",
        "10",
        "mine",
    ]
    alone, together = style.strategy_colours(["cas"]), style.strategy_colours(["mine", "cas"])
    assert alone["cas"] == together["cas"] != together["mine"]


def test_groups_stand_in_natural_order() -> None:
    assert sorted(["10", "cas", "9", "1.5"], key=style.natural) == ["1.5", "9", "10", "cas"]
