"""The kit for other implementations: the second one and ours pass, and each broken copy fails in its row."""

import sys
import tomllib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any

import anyio
import pytest

from leaderless.cli import main
from leaderless.conformance.golden import cases
from leaderless.conformance.programs import playing
from leaderless.conformance.rows import ROWS, rules_of
from tests.scripted import ROOT

pytestmark = pytest.mark.process
EXAMPLES = ROOT / "workloads/examples"
MUTANTS = tomllib.loads((Path(__file__).parent / "second_mutants.toml").read_text())["mutant"]
OURS = f"{sys.executable} -m leaderless.conformance.example"


def second(folder: Path = EXAMPLES) -> str:
    return f"{sys.executable} {folder}/second_program.py"


async def results(
    program: str, store: str, rules: Sequence[str], golden: Sequence[Any] = ()
) -> dict[str, tuple[str, str]]:
    """How the rows of these rules end; none: all rows."""
    async with playing(program, store, 30.0) as player:
        return {
            row.rules: await player.row(row, golden)
            for row in ROWS
            if not rules or rules_of(row) & {*rules}
        }


@pytest.mark.parametrize(
    ("program", "store", "rules", "passes"),
    [
        (second(), "sqlite", ["R16", "R30"], 2),
        (second(), "s3", ["R3", "R16", "R42"], 3),
        pytest.param(second(), "s3", [], 15, marks=pytest.mark.seeds),
        (OURS, "s3", ["R1", "R34", "R63"], 3),
        (OURS, "sqlite", ["R2"], 1),
    ],
)
def test_implementations_pass(program: str, store: str, rules: list[str], passes: int) -> None:
    found = anyio.run(results, program, store, rules)
    assert [said for said in found.values() if said[0] == "FAILED"] == []
    assert sum(result == "ok" for result, _ in found.values()) == passes


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant["name"])
def test_a_broken_copy_fails_in_its_row(tmp_path: Path, mutant: dict[str, str]) -> None:
    folder = copytree(EXAMPLES, tmp_path / "copy")
    file = folder / mutant.get("file", "second_log.py")
    text = file.read_text()
    assert text.count(mutant["old"]) == 1, "point it to where the rule is now"
    file.write_text(text.replace(mutant["old"], mutant["new"]))
    store = mutant.get("store", "s3")
    [(result, story)] = anyio.run(results, second(folder), store, [mutant["rule"]]).values()
    assert result == "FAILED"
    assert mutant["says"] in story


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("api.log._condition = lambda *_: ({}, {})", "append_if must be refused"),
        ("core.headlog.conditions.CLOSED = -2", "ClosedForEver: key 'l' is closed, and grows"),
    ],
)
def test_a_library_that_forgets_conditions_fails_in_their_row(broken: str, says: str) -> None:
    module = f"leaderless.{broken.partition(' ')[0].rpartition('.')[0]}"
    code = f"import anyio, {module}; from leaderless.conformance.example import main"
    program = f'{sys.executable} -c "{code}; leaderless.{broken}; anyio.run(main)"'
    [(result, story)] = anyio.run(results, program, "sqlite", ["R63"]).values()
    assert result == "FAILED"
    assert says in story


@pytest.mark.parametrize(("value", "result"), [(1, "ok"), (1.0, "FAILED")])
@pytest.mark.parametrize("store", ["s3", "sqlite"])
def test_a_golden_log_is_read_as_it_says(store: str, value: float, result: str) -> None:
    [case] = [each for each in cases() if each.name == "sealing/0"]
    case = case._replace(rules=["R12"], reads={"eu": [[0, value]]})
    [found] = anyio.run(partial(results, golden=[case]), second(), store, ["R12"]).values()
    assert found[0] == result


def test_the_command_tells_rows_and_what_failed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys; sys.exit('it has no disk')")
    arguments = ["conformance", "--program", f"{sys.executable} {program}", "--only"]
    assert main([*arguments, "R57"]) == 1
    assert "FAILED     R57" in (said := capsys.readouterr().out)
    assert "the program ended by itself; its stderr: it has no disk" in said
    assert main([*arguments, "R29"]) == 0
    assert "not tried  R29" in capsys.readouterr().out
    assert main([*arguments, "R99"]) == 1
    assert main(["conformance", "--program", "no-such-program"]) == 1
    assert "no program" in capsys.readouterr().err


def test_rows_are_those_of_the_specification() -> None:
    rows = (ROOT / "docs/SPEC.md").read_text().partition("## 17.")[2].splitlines()
    said = [line.split("|")[1].strip() for line in rows if line.startswith("| R")]
    assert [row.rules for row in ROWS] == said
