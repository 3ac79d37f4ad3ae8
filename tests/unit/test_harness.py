"""What all measurements share: options from a signature, turns, pages, processes of their own."""

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import click
import pytest
from click.testing import CliRunner

from performance import harness
from performance.harness import alone, in_turn, replace_section, replace_tables, spread, write_page


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


def test_turns_go_to_and_fro() -> None:
    seen: list[str] = []

    def work(name: str) -> int:
        seen.append(name)
        return len(seen)

    works = {name: partial(work, name) for name in "ab"}
    assert in_turn(works, 3) == {"a": [1, 4, 5], "b": [2, 3, 6]}
    assert "".join(seen) == "abbaab"
    assert spread([3.0, 1.0, 2.0], ".0f") == "2 (1 to 3)"


def test_a_step_has_a_process_of_its_own_with_its_memory() -> None:
    found = alone(json.loads, '{"least": 1}')
    assert found["least"] == 1
    assert 5 < found["peak_mb"] < 2_000
    assert found["cpu_s"] > 0
    assert alone(json.loads, '{"cpu_s": 0}')["cpu_s"] == 0  # a step may say it better
    with pytest.raises(subprocess.CalledProcessError):
        alone(json.loads, "nonsense")


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
