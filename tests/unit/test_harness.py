"""What all measurements share: options from a signature, turns, pages, processes of their own."""

import json
import subprocess
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


def test_the_section_of_a_page_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- one -->\nold\n<!-- end of one -->\nafter\n")
    replace_section(page, "one", ["new", "newer"])
    assert page.read_text() == "before\n<!-- one -->\nnew\nnewer\n<!-- end of one -->\nafter\n"
    with pytest.raises(ValueError, match="no section two"):
        replace_section(page, "two", [])


def test_tables_are_replaced_below_the_prose_which_names_the_command(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\nBy `python -m performance.it --seeds 1`.\n\n## Old\n\n## Older\n")
    replace_tables(page, "python -m performance.it --seeds 9", ["## New", "", "| a |"])
    wanted = "# Title\n\nBy `python -m performance.it --seeds 9`.\n\n## New\n\n| a |\n"
    assert page.read_text() == wanted


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    page = tmp_path / "performance" / "strategies.md"
    write_page(page, "Strategies", "old\n")
    write_page(page, "Strategies", "\nnew\n\n")
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("# Strategies", "new")
    assert "old" not in lines
