"""`./maelstrom glomers` with runs that are told, not made."""

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest
from click.testing import CliRunner, Result

from bench.commands.glomers import glomers
from bench.sweep import making
from bench.sweep.plan import Job
from runs import sweeps
from runs.sweeps import INVALID, VALID, Row

NODE = Path(__file__).parents[2] / "workloads/examples/g_counter.py"
Perform = Callable[[Job, Path, object], Row]


@pytest.fixture
def graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Grade by challenge 4; `verdict_of` says how a run ends, by its check and its seed."""
    monkeypatch.chdir(tmp_path)

    def grade(verdict_of: Callable[[str, int], str], *words: str) -> Result:
        def perform(job: Job, _parent: Path, _tick: object) -> Row:
            verdict = verdict_of(job.cell.title, job.repetition)
            found: dict[str, float | None] = {
                "valid": float(verdict == VALID),
                "server_messages_per_op": 2.0,
            }
            return Row(
                *(job.sweep, dict(job.cell.axes), job.repetition, job.engine, "run", verdict),
                seconds=1.5,
                figures=found,
            )

        monkeypatch.setattr(making, "perform", perform)
        return CliRunner().invoke(glomers, ["4", "--bin", str(NODE), *words])

    return grade


def only_after_kills(check: str, _seed: int) -> str:
    return INVALID if check == "after a kill" else VALID


def test_a_pass_says_what_lies_beyond_and_how_to_repeat_it(graded: Callable[..., Result]) -> None:
    done = graded(only_after_kills, "--seeds", "2", "--junit", "a.xml", "--", "--wait", "1 s")
    assert done.exit_code == 0
    *_, line = done.output.splitlines()
    assert line == (
        "4 passes; right at 100 ms a hop; a node shows a wrong sum at the end after a kill."
    )
    (repeat,) = [line for line in done.output.splitlines() if line.startswith("    repeat")]
    assert "--seed glomers-4 " in repeat
    assert repeat.endswith("-- --wait '1 s'")
    assert len(sweeps.read(Path("results/glomers-4"))) == 6
    (suite,) = ElementTree.parse("a.xml").getroot()
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["6", "0", "0", "2"]
    assert {each.get("message") for each in suite.iter("skipped")} == {
        "a node shows a wrong sum at the end after a kill"
    }


def test_a_failure_on_every_seed_ends_it(graded: Callable[..., Result]) -> None:
    done = graded(lambda *_: INVALID, "--seeds", "2", "--junit", "a.xml")
    assert done.exit_code == 1
    assert done.output.splitlines()[-1] == "4 fails: a node shows a wrong sum at the end."
    assert len(sweeps.read(Path("results/glomers-4"))) == 2, "nothing beyond was run"
    (suite,) = ElementTree.parse("a.xml").getroot()
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["6", "2", "0", "4"]


def test_luck_is_a_failure(graded: Callable[..., Result]) -> None:
    done = graded(lambda _check, seed: INVALID if seed == 2 else VALID)
    assert done.exit_code == 1
    assert "4 passes by luck: right on 2 of 3 seeds" in done.output


def test_each_grading_begins_anew_and_keeps_the_one_before(graded: Callable[..., Result]) -> None:
    assert graded(lambda *_: INVALID).exit_code == 1
    assert graded(only_after_kills).exit_code == 0
    folders = sorted(each.name for each in Path("results").iterdir())
    assert len(folders) == 2
    assert folders[0] == "glomers-4"
    assert folders[1].startswith("glomers-4-2")


def test_a_grading_that_is_stopped_is_no_pass(graded: Callable[..., Result]) -> None:
    def stopped(check: str, seed: int) -> str:
        if seed == 2:
            raise KeyboardInterrupt
        return VALID

    done = graded(stopped, "--junit", "a.xml")
    assert done.exit_code == 255
    assert "4 is unknown: not every run was made." in done.output
    assert "Stopped early" in done.output
    (suite,) = ElementTree.parse("a.xml").getroot()
    assert (suite.get("errors"), suite.get("skipped")) == ("2", "6")


@pytest.mark.parametrize("words", [["7", "--bin", str(NODE)], ["4", "--bin", "nothing"], ["4"]])
def test_what_cannot_be_graded_is_refused(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        glomers.main(words, standalone_mode=False)
