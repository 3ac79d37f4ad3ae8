"""What all measurements share: help and pages."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from performance import virtual
from performance.harness import replace_section, replace_tables, write_page


def test_the_help_of_a_program_is_the_docstring_of_its_module() -> None:
    asked = CliRunner().invoke(virtual.main, ["--help"])
    assert "  python -m performance.virtual [NAME...] [--seeds 4]" in asked.output
    assert "[default: 4]" in asked.output
    assert "is not one of" in CliRunner().invoke(virtual.main, ["c"]).output


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        (
            "before\n<!-- one -->\nold\n<!-- end of one -->\nafter\n",
            lambda page: replace_section(page, "one", ["new", "newer"]),
            "before\n<!-- one -->\nnew\nnewer\n<!-- end of one -->\nafter\n",
        ),
        (
            "# Title\n\nBy `python -m performance.it --seeds 1`.\n\n## Old\n\n## Older\n",
            lambda page: replace_tables(page, "python -m performance.it", ["## New", "", "| a |"]),
            "# Title\n\nBy `python -m performance.it`.\n\n## New\n\n| a |\n",
        ),
        (
            "old\n",
            lambda page: write_page(page, "Title", "\n    a command\n\n"),
            "# Title\n\nGenerated, never edited. [How it is measured, and what it means]"
            "(../performance.md).\n\n    a command\n",
        ),
    ],
    ids=["section", "tables", "page"],
)
def test_what_is_generated_is_replaced_and_nothing_else(
    tmp_path: Path, before: str, change: Callable[[Path], None], after: str
) -> None:
    page = tmp_path / "page.md"
    page.write_text(before)
    change(page)
    assert page.read_text() == after


def test_a_page_without_the_section_is_refused(tmp_path: Path) -> None:
    write_page(tmp_path / "new" / "page.md", "Title", "")
    with pytest.raises(ValueError, match="no section two"):
        replace_section(tmp_path / "new" / "page.md", "two", [])
