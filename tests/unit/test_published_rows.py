"""The rows about the published protocol: numbered, decided, counted; each test that they name exists."""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.datadriven.runner import cases_of

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "leaderless-log-protocol"
PAGES = {"protocols": "ABCD", "s3-queue": "E", "conformance": "FGHI", "this one": "JK"}
ROW = re.compile(
    r"^\| ([A-K])(\d+) \| (.+) \| (.+) \| (has|(?:more|differs): .+) \|$", re.MULTILINE
)
CASE = re.compile(r"`((?:\d |C\d|The real)[^`]+)`")


class Row(NamedTuple):
    part: str
    number: int
    here: str
    state: str


def file_of(page: str) -> Path:
    return FOLDER / ("README.md" if page == "this one" else f"{page}.md")


def rows_of(page: str) -> list[Row]:
    found = ROW.findall(file_of(page).read_text())
    return [
        Row(part, int(number), here, state.partition(":")[0])
        for part, number, _, here, state in found
    ]


@pytest.mark.parametrize("page", PAGES)
def test_each_row_is_numbered_in_turn_and_decided(page: str) -> None:
    rows = rows_of(page)
    begun = re.findall(r"^\| [A-K]\d+ \|", file_of(page).read_text(), flags=re.MULTILINE)
    assert len(rows) == len(begun), "a row lacks a cell, or a state with its reason"
    for part in PAGES[page]:
        numbers = [row.number for row in rows if row.part == part]
        assert numbers == [*range(1, len(numbers) + 1)]
    assert {row.part for row in rows} == {*PAGES[page]}


def test_the_rows_are_counted() -> None:
    counted = FOLDER.joinpath("README.md").read_text()
    for page in PAGES:
        states = Counter(row.state for row in rows_of(page))
        figures = (states.total(), *(states[each] for each in ("has", "more", "differs")))
        assert f"| {page} | {' | '.join(map(str, figures))} |" in counted


def test_the_rows_name_every_case_and_no_other() -> None:
    named = {case for row in rows_of("conformance") for case in CASE.findall(row.here)}
    assert named == {*cases_of(ROOT / "tests" / "contract" / "matrix.txt")}


def test_a_row_that_another_page_names_is_there() -> None:
    there = {f"{row.part}{row.number}" for page in PAGES for row in rows_of(page)}
    for page in PAGES:
        for row in rows_of(page):
            assert {*re.findall(r"\b[A-K]\d+\b", CASE.sub("", row.here))} <= there
