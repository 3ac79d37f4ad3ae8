"""The second checker: it agrees with the manifest, and it can fail. `make specs` checks the larger models."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from specs.manifest import PASS, load
from specs.second import __main__ as second
from specs.second.configurations import has_second_model, second_model
from specs.second.explorer import Exploration

ALL = {c.title: c for c in load().configurations if c.size == "small" and has_second_model(c)}
QUICK = ["LeaderlessLog/st", "TaskClaiming/", "HeadLog/d", "HeadLog/o"]
PASSING = ALL["LeaderlessLog/stale-counter-weak"]


@pytest.mark.parametrize("title", [t for t in ALL if any(text in t for text in QUICK)])
def test_both_checkers_agree(title: str) -> None:
    found = second.check(ALL[title])
    assert found.complete
    assert second.disagreements(ALL[title], found) == []


def test_every_second_model_passes_somewhere_and_fails_somewhere() -> None:
    verdicts: dict[str, set[bool]] = {}
    for configuration in ALL.values():
        verdicts.setdefault(configuration.model, set()).add(configuration.expect == PASS)
    assert verdicts.keys() == {"HeadLog", "LeaderlessLog", "TaskClaiming"}
    assert all(found == {True, False} for found in verdicts.values())


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (Exploration(7, broken_law="TypeOK"), ["TLC: pass; here: violation of TypeOK"]),
        (Exploration(391), ["TLC: 392 distinct states; here: 391"]),
        (Exploration(20_001, complete=False), []),  # it says nothing
        (Exploration(392), []),
    ],
)
def test_another_verdict_or_another_count_is_a_disagreement(
    found: Exploration, told: list[str]
) -> None:
    assert second.disagreements(PASSING, found) == told


@pytest.mark.parametrize(
    ("states", "words", "status", "said"),
    [
        (1, [], 1, "0 of 1 configurations agree"),
        (392, ["--most", "500"], 0, "1 of 1 configurations agree"),
        (50, ["--most", "100"], 0, "1 have more than 100 states"),
    ],
)
def test_a_disagreement_is_an_exit_status(
    states: int, words: list[str], status: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = replace(PASSING, distinct_states=states)
    monkeypatch.setattr(second, "second_model", lambda _: second_model(PASSING))
    monkeypatch.setattr(second, "load", lambda: replace(load(), configurations=(wrong,)))
    result = CliRunner().invoke(second.main, words)
    assert result.exit_code == status, result.output
    assert said in result.output
