"""Every schedule of a few programs beside a bucket: what is found; `test_exploration.py` has what passes."""

import json
from dataclasses import replace
from unittest.mock import Mock

import pytest
from click.testing import CliRunner, Result

from simulation.commands.explore import explore
from simulation.exploration.campaign import explored, systems_of
from simulation.exploration.setting import Setting
from simulation.logs import LEADERLESS, PUBLISHED, REPAIRED
from simulation.port import Port
from simulation.s3_queue.published import Topic
from simulation.s3_queue.repaired import RepairedTopic
from tests.mutants.cases import MUTANTS
from tests.simulation.exploring import failure_of

pytestmark = pytest.mark.simulation

OVERWRITTEN = Setting(PUBLISHED, programs=True, before=2, sends=1, compactions=1)
MERGED = Setting(LEADERLESS, programs=True, files=True, before=12, sends=0, compactions=1)


def invoke(*words: str) -> Result:
    return CliRunner().invoke(explore, ("--programs", *words))


# ---------------------------------------------------------------- what must be found


def test_an_index_without_tombstones_loses_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `specs/TwoStepAssign` says of its configuration `create-without-tombstone`."""
    monkeypatch.setattr(RepairedTopic, "_delete_below", Topic._delete_below)
    setting = Setting(REPAIRED, programs=True, sends=3, compactions=1)
    assert failure_of(setting) in ("unseen", "Progress")


def test_a_bucket_that_ignores_the_condition_loses_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    overwrite = lambda store, key, value, _: store.write(key, value)  # noqa: E731
    monkeypatch.setattr(Port, "compare_and_set", overwrite)
    assert failure_of(Setting(programs=True, before=1))


def test_an_error_of_the_code_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Port, "compare_and_set", Mock(side_effect=AssertionError))
    assert failure_of(Setting(PUBLISHED, programs=True, sends=1)) == "crash"


# ---------------------------------------------------------------- nodes beside programs

MIXED = Setting(programs=True, nodes=1)
TALK = Setting(programs=True, hand_over=True)
CONDITIONAL = replace(TALK, conditions=True, before=5)


@pytest.mark.parametrize(
    ("name", "setting", "law"),
    [
        ("blind-put", MIXED, "HeadNeverReturns"),
        ("unknown-is-success", replace(MIXED, lost=1), "RefinesHeadLog"),
        ("answer-is-commit", replace(TALK, lost=1), "AckedExactlyOnce"),
        ("dedup-skipped", replace(TALK, duplicates=1), "AckedExactlyOnce"),
        ("new-id-after-hand-over", replace(TALK, lost=1), "RefinesHeadLog"),
        ("answered-before-its-commit", TALK, "Progress"),
        ("name-used-twice", TALK, "RefinesHeadLog"),
        ("expected-end-forgotten", CONDITIONAL, "ConditionKept"),
        ("lower-token-taken", replace(CONDITIONAL, sends=3), "RefinesHeadLog"),
    ],
)
def test_a_mutant_dies_where_processes_share_a_log(name: str, setting: Setting, law: str) -> None:
    with MUTANTS[name].alive():
        assert failure_of(setting) == law


@pytest.mark.parametrize(
    ("setting", "events"),
    [
        (
            replace(MIXED, nodes=2, sends=3, hand_over=True),
            {"deliver n0>n1", "carry n0>bucket", "carry p2>bucket", "ask c1", "ask c3"},
        ),
        (replace(TALK, duplicates=1, lost=1), {"deliver p1>p0", "double p1>p0", "lose p0>p1"}),
    ],
)
def test_a_message_between_processes_on_a_bucket_is_an_event(
    setting: Setting, events: set[str]
) -> None:
    system, seen = systems_of(setting)(), set[str]()
    while enabled := system.enabled():
        seen |= {f"{event.kind} {event.what.split()[0]}" for event in enabled if event.what}
        system.step(enabled[0])
    assert events <= seen


# ---------------------------------------------------------------- the command


def test_a_search_for_tools() -> None:
    done = invoke("--sends", "2", "--json")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["done"], told["failure"]) == (0, True, None)
    assert told["ends"] == len(explored(Setting(programs=True)).ends)


def test_the_command_of_a_setting_gives_the_setting() -> None:
    words = OVERWRITTEN.command().split()[2:]
    told = json.loads(invoke(*words, "--cpu", "0.001", "--json").stdout)
    assert Setting(**told["setting"]) == OVERWRITTEN


@pytest.mark.parametrize(
    "setting",
    [
        replace(MERGED, polls=1, crashes=1),
        pytest.param(replace(MERGED, sends=1), marks=pytest.mark.slow),
        pytest.param(replace(MERGED, lost=1), marks=pytest.mark.slow),
    ],
)
def test_files_are_merged_beside_whatever_happens(setting: Setting) -> None:
    search = explored(setting)
    assert search.done
    assert search.failed is None
    with MUTANTS["merge-deletes-first"].alive():
        failed = explored(setting).failed
    assert failed is not None
    assert failed.name == "FilesKept"
