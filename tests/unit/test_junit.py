"""JUnit XML for continuous integration."""

from pathlib import Path
from xml.etree import ElementTree

import click
import pytest

from bench.sweep import table
from bench.sweep.table import Case
from runs.sweeps import Row


def written(file: Path, *cases: Case) -> ElementTree.Element:
    table.write_junit(file, "night", cases)
    (suite,) = ElementTree.parse(file).getroot()
    return suite


@pytest.mark.parametrize(
    ("verdict", "expect", "problem"),
    [
        ("valid", "valid", None),
        ("invalid", "valid", "failure"),
        ("invalid", "invalid", None),
        ("valid", "invalid", "failure"),
        ("invalid", "any", None),
        ("unknown", "any", "error"),
        ("unknown", "valid", "error"),
        ("crashed", "valid", "error"),
    ],
)
def test_unknown_is_never_failure_and_nothing_unexpected_passes(
    verdict: str, expect: str, problem: str | None
) -> None:
    row = Row("night", {}, verdict=verdict, expect=expect)
    assert table.case_of("a", row, "said").problem == problem


def test_a_run_that_was_not_made_does_not_pass() -> None:
    assert table.case_of("a", None, "").problem == "error"


def test_a_file_counts_its_cases_and_tells_what_went_wrong(tmp_path: Path) -> None:
    lost = Row("night", {}, verdict="invalid", anomalies=["unseen"], seconds=2.5)
    suite = written(
        tmp_path / "new/night.xml",
        table.case_of("kill", lost, "✘ INVALID\nTo repeat it: ./maelstrom test"),
        Case("calm", 1.25),
        Case("late", problem=table.SKIPPED, message="beyond"),
        Case("never", problem=table.ERROR),
    )
    counts = ("tests", "failures", "errors", "skipped", "time")
    assert [suite.get(name) for name in counts] == ["4", "1", "1", "1", "3.75"]
    (failure,) = suite.findall("testcase[@name='kill']/failure")
    assert failure.get("message") == "invalid: unseen"
    assert failure.text
    assert failure.text.endswith("To repeat it: ./maelstrom test")
    assert not list(suite.findall("testcase[@name='calm']/*"))


def test_what_a_node_printed_cannot_break_the_file(tmp_path: Path) -> None:
    said = "\x1b[31m<&\"'\0\udc80\ufffe\N{GRINNING FACE}\ttab"
    suite = written(tmp_path / "a.xml", Case(said, problem=table.ERROR, message=said, details=said))
    (error,) = suite.findall("testcase/error")
    assert error.text == "�[31m<&\"'���\N{GRINNING FACE}\ttab"


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(click.FileError):
        table.write_junit(tmp_path / "file/a.xml", "night", [])
