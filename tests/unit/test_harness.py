"""What all measurements share: options from a signature, pages."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import click
import pytest
from click.testing import CliRunner

from performance import harness
from performance.harness import replace_section, replace_tables, write_page


@harness.program
def shown(
    names: Annotated[tuple[str, ...], click.Choice(["a", "b"])] = (),
    *,
    seeds: int = 2,
    real_s: float = 0.5,
    only: Annotated[list[str], click.STRING] = ["x"],  # noqa: B006 - not changed
    busy: bool = False,
    docs: harness.APage = None,
) -> None:
    click.echo(repr((names, seeds, real_s, [*only], busy, docs)))


def test_a_signature_is_a_command_line() -> None:
    words = ["a", "b", "--seeds", "3", "--real", "1", "--only", "y", "--only", "z", "--busy"]
    asked = CliRunner().invoke(shown, [*words, "--docs", "docs"])
    assert asked.output == f"(('a', 'b'), 3, 1.0, ['y', 'z'], True, {Path('docs')!r})\n"
    assert CliRunner().invoke(shown, []).output == "((), 2, 0.5, ['x'], False, None)\n"
    assert "'c' is not one of" in CliRunner().invoke(shown, ["c"]).output
    assert "options from a signature" in CliRunner().invoke(shown, ["--help"]).output


def test_an_argument_without_a_default_must_be_there() -> None:
    def copied(source: Annotated[Path, click.Path(path_type=Path)]) -> None:
        click.echo(source.name)

    command = harness.program(copied)
    assert CliRunner().invoke(command, ["x/y"]).output == "y\n"
    assert "Missing argument" in CliRunner().invoke(command, []).output


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
