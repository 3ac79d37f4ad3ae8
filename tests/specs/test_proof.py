"""The proofs say what the models say, and can fail. `make proofs` proves all of it."""

import re

import pytest
import z3
from click.testing import CliRunner

from specs.head_log.small import Small
from specs.manifest import Configuration, load
from specs.proof import checks, obligations
from specs.proof.__main__ import main, summary
from specs.proof.checks import check_broken, check_part, check_walk
from specs.proof.language import Language, Model, Step
from specs.proof.models import (
    MODELS,
    broken,
    not_seen,
    small_configurations,
    wrong_configurations,
)
from specs.proof.walks import found_by_tlc, value

ALL = {c.title: c for c in load().configurations}
SECTION = re.compile(r"(?:\(\* |\\\* )(?:Decisions|The law, and).*?\n(.*?)\n-{9}", re.DOTALL)


def decisions(configuration: Configuration) -> set[str]:
    """The operators that stand in the model's section of decisions."""
    module = next(c.module for c in ALL.values() if c.model == configuration.model and not c.broken)
    text = module.with_name(f"{configuration.model}.tla").read_text()
    return {*re.findall(r"^(\w+)(?:\([^)]*\))? ==", "".join(SECTION.findall(text)), re.MULTILINE)}


@pytest.mark.parametrize("name", MODELS)
def test_every_decision_of_the_model_is_one_of_the_proof(name: str) -> None:
    wrong = [c for c in wrong_configurations(name) if "Fair" not in c.specification]
    replaced = {operator for c in wrong for operator in c.replace}
    named = {name for pair in MODELS[name].wrong for name in pair}
    assert decisions(wrong[0]) | replaced <= named | MODELS[name].definitions.keys()
    assert all(broken(c) for c in wrong if not not_seen(c))


def test_every_action_has_a_name_that_the_model_has() -> None:
    for name in MODELS:
        module = ALL[small_configurations(name)[0].title].module
        text = "".join(each.read_text() for each in module.parent.glob("*.tla"))
        own = {"Try", "Learnt", "Told", "Lost", "Named"}  # halves of a step, messages, callers
        assert {each for each in MODELS[name].actions if f"\n{each}" not in text} <= own


@pytest.mark.tlc
def test_what_tlc_finds_is_what_was_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    found = check_walk(ALL["DurableCommits/restart"], 5)
    assert (found.wrong, int(found.told.split()[0]) > 50) == ((), True)
    other = MODELS["Vacuum"].patched({"NextEpoch": lambda s: s.epoch + 2})
    monkeypatch.setitem(MODELS, "Vacuum", other)
    found = check_walk(ALL["Vacuum/two-objects"], 5)
    assert found.wrong == ("Vacuum/two-objects: Raise is no step of the proof's model",)


@pytest.mark.tlc
def test_what_tlc_finds_is_what_python_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    content = ALL["HeadLog/content"]
    found = [*found_by_tlc(content, 3)]
    monkeypatch.setattr(checks, "found_by_tlc", lambda *_: found)
    assert check_walk(content, 3).wrong == ()
    for decision, wrong, said in (
        ("next_epoch", lambda *_: 0, ()),  # no fence here
        ("has_outcome", lambda *_: True, ("TLC has no such Acked",)),
        ("hand_over", lambda *_: (), ("Python has no such HandOver",)),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(Small, decision, wrong)
            assert check_walk(content, 3).wrong == tuple(f"{content.title}: {s}" for s in said)
    other = MODELS["HeadLog"].patched({"FirstOffset": lambda s, slot, offset: offset + 1})
    monkeypatch.setitem(MODELS, "HeadLog", other)
    assert (
        f"{content.title}: Commit is no step of the proof's model" in check_walk(content, 3).wrong
    )


def test_a_value_is_read_as_tlc_writes_it() -> None:
    text = '( n1 :> [held |-> None, seen |-> {"a", <<1, -2>>}] @@\n n2 :> <<>> )'
    held = {"held": "None", "seen": frozenset({"a", (1, -2)})}
    assert value(text) == {"n1": held, "n2": ()}
    with pytest.raises(ValueError, match="not a value"):
        value("[a |-> ?]")


@pytest.mark.parametrize(("name", "part"), [("Vacuum", "Commit"), ("HeadLog", "Claim")])
def test_a_part_is_proved_by_both_solvers(name: str, part: str) -> None:
    found = check_part(name, part)
    assert found.wrong == ()
    assert {answer.z3 for _, answer in found.answers} == {obligations.PROVED}
    assert obligations.PROVED in {answer.cvc5 for _, answer in found.answers}


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("HeadLog/epoch-kept", "Fence breaks HeadNeverReturns\n    chosen: o = head"),
        ("Vacuum/any-epoch", "Delete breaks NoneTooLate, then Commit breaks DataReadable"),
        ("HeadLog/worker-stalls", "not seen: liveness"),
    ],
)
def test_a_wrong_decision_breaks_the_law_that_the_manifest_names(title: str, said: str) -> None:
    found = check_broken(ALL[title])
    assert (found.wrong, found.told[: len(said)]) == ((), said)


def counting(most: int) -> Model:
    """A counter that goes up to 2 in steps of one, and a law of it."""
    language = Language(n="Node", i=int)
    state = language.symbols(count="i")

    return Model(
        language=language,
        facts={},
        state=state,
        definitions={},
        initial=lambda s: s.count == 0,
        actions={"Up": lambda s: Step(s.count < 2, {"count": s.count + 1})},
        laws={"Bounded": lambda s: z3.And(s.count >= 0, s.count <= most)},
    )


def test_what_is_not_proved_is_told_with_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "good", counting(2))
    monkeypatch.setitem(MODELS, "bad", counting(1))
    assert check_part("good", "Up").wrong == ()
    found = check_part("bad", "Up")
    assert found.wrong == ("Up/Bounded: false\n    chosen: nothing\n    count: 1\n    count': 2",)
    assert next(summary([found])).startswith("bad: 0 of 1 obligations proved")


def test_solvers_that_disagree_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(obligations, "_ask_cvc5", lambda *_: obligations.REFUTED)
    found = check_part("Vacuum", "Stop", "DataReadable")
    wrong = check_part("Vacuum", "Commit", "DataReadable").wrong
    assert found.answers == ()  # nothing of the law changes
    assert wrong == ("Commit/DataReadable: z3 says proved, cvc5 refuted",)


def test_the_command_runs_one_law_or_one_wrong_decision() -> None:
    told = CliRunner().invoke(main, ["--only", "Vacuum", "--law", "NoneTooLate", "--jobs", "1"])
    assert told.exit_code == 0, told.output
    assert "obligations proved by z3" in told.output
    told = CliRunner().invoke(main, ["--only", "Vacuum", "--broken", "learns-late", "--jobs", "1"])
    assert "known': appender1 -> " in told.output
    assert CliRunner().invoke(main, ["--broken", "no-such"]).exit_code == 2
