"""The second checker: it agrees with the manifest, and it can fail. `make specs` checks the larger models."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from specs.manifest import PASS, load
from specs.second import __main__ as second
from specs.second.configurations import has_second_model
from specs.second.explorer import Exploration, explore
from specs.second.prefetch import Prefetch

ALL = {c.title: c for c in load().configurations if c.size == "small" and has_second_model(c)}
QUICK = ["TwoStepAssign/", "Prefetch/", "/responsive", "/epochs-skip", "/any-entry", "/one-acknowl"]
QUICK += ["HeadLog/s", "HeadLog/d", "HeadLog/o"]


@pytest.mark.parametrize("title", [t for t in ALL if any(text in t for text in QUICK)])
def test_both_checkers_agree(title: str) -> None:
    found = second.check(ALL[title])
    assert found.complete
    assert second.disagreements(ALL[title], found) == []


def test_every_second_model_passes_somewhere_and_fails_somewhere() -> None:
    verdicts: dict[str, set[bool]] = {}
    for configuration in ALL.values():
        verdicts.setdefault(configuration.model, set()).add(configuration.expect == PASS)
    assert verdicts
    assert all(found == {True, False} for found in verdicts.values())


def test_another_verdict_or_another_count_is_a_disagreement() -> None:
    passing = ALL["Prefetch/sealed-ranges"]
    broken = Exploration[object](7, broken_law="OrderedReads")
    assert "OrderedReads" in second.disagreements(passing, broken)[0]
    assert "593" in second.disagreements(passing, Exploration(593))[0]


def test_an_incomplete_search_says_nothing() -> None:
    unfinished = Exploration[object](20_001, complete=False)
    assert second.disagreements(ALL["Prefetch/sealed-ranges"], unfinished) == []
    result = CliRunner().invoke(second.main, ["--only", "sealed-ranges", "--most", "100"])
    assert result.exit_code == 0
    assert "0 of 0 configurations agree" in result.output
    assert "1 have more than 100 states" in result.output


def test_the_way_to_a_broken_law_is_the_shortest() -> None:
    found = explore(Prefetch(2, 1, 2, 3, shown_at_once=True), ["OrderedReads"], 1000)
    assert [step for step, _ in found.path] == [
        "Init",
        "Reserve",
        "Reserve",
        "Fill",
        "Poll",
        "Fill",
    ]


def test_a_disagreement_is_an_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(ALL["Prefetch/sealed-ranges"], distinct_states=1)
    monkeypatch.setattr(second, "second_model", lambda _: Prefetch(2, 1, 2, 3))
    monkeypatch.setattr(second, "load", lambda: replace(load(), configurations=(wrong,)))
    result = CliRunner().invoke(second.main, [])
    assert result.exit_code == 1
    assert "0 of 1 configurations agree" in result.output
