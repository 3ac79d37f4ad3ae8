"""Every schedule of a few programs beside a bucket: what is found, what passes."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from leaderless.store.port import Version
from simulation.commands.explore import explore
from simulation.exploration.campaign import explored, systems_of
from simulation.exploration.setting import Setting
from simulation.logs import LEADERLESS, PUBLISHED, REPAIRED
from simulation.port import Port
from simulation.s3_queue.published import Topic
from simulation.s3_queue.repaired import RepairedTopic
from tests.mutants.cases import MUTANTS

pytestmark = pytest.mark.simulation

SOUND = (LEADERLESS, REPAIRED)
OVERWRITTEN = Setting(PUBLISHED, programs=True, before=2, sends=1, compactions=1)
APPENDED_TWICE = Setting(PUBLISHED, programs=True, sends=1, lost=1, repeats=True)
PUTS_FAILED = Setting(PUBLISHED, programs=True, lost=2)
MERGED = Setting(LEADERLESS, programs=True, files=True, before=12, sends=0, compactions=1)


def invoke(*words: str) -> Result:
    return CliRunner().invoke(explore, ("--programs", *words))


# ---------------------------------------------------------------- what must be found


@pytest.mark.parametrize(
    ("setting", "name"),
    [(OVERWRITTEN, "unseen"), (APPENDED_TWICE, "duplicate"), (PUTS_FAILED, "unseen")],
)
def test_the_weaknesses_of_the_published_protocol_are_found(setting: Setting, name: str) -> None:
    failed = explored(setting).failed
    assert failed is not None
    assert failed.name == name


def test_an_index_without_tombstones_loses_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `specs/TwoStepAssign` says of its configuration `create-without-tombstone`."""
    setting = Setting(REPAIRED, programs=True, sends=3, compactions=1)
    monkeypatch.setattr(RepairedTopic, "_delete_below", Topic._delete_below)
    failed = explored(setting).failed
    assert failed is not None
    assert failed.name in ("unseen", "Progress")


def test_a_bucket_that_ignores_the_condition_loses_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def overwrite(store: Port, key: str, value: bytes, _: Version) -> Version:
        return await store.write(key, value)

    monkeypatch.setattr(Port, "compare_and_set", overwrite)
    assert explored(Setting(programs=True, before=1)).failed is not None


# ---------------------------------------------------------------- what must pass


@pytest.mark.parametrize("log", SOUND)
@pytest.mark.parametrize(
    "what",
    [
        {"sends": 3},
        {"polls": 1},
        {"lost": 1},
        {"delayed": 1},
        {"crashes": 1},
        {"late": 1, "sends": 1},
        {"sends": 1, "before": 2, "compactions": 1},
    ],
    ids=str,
)
def test_a_sound_log_is_sound_in_every_schedule(log: str, what: dict[str, int]) -> None:
    search = explored(Setting(log, programs=True, **what))  # type: ignore[arg-type]
    assert search.failed is None
    assert search.done
    assert len(search.ends) > (1 if log == LEADERLESS and "late" in what else 0)


def test_an_error_of_the_code_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_store: Port, _key: str, value: bytes, _version: Version) -> Version:
        raise AssertionError(value)

    monkeypatch.setattr(Port, "compare_and_set", broken)
    failed = explored(Setting(PUBLISHED, programs=True, sends=1)).failed
    assert failed is not None
    assert failed.name == "crash"


# ---------------------------------------------------------------- nodes beside programs

MIXED = Setting(programs=True, nodes=1)
TALK = Setting(programs=True, hand_over=True)


@pytest.mark.parametrize(
    "setting",
    [
        *(MIXED, replace(MIXED, lost=1), replace(MIXED, crashes=1)),
        replace(MIXED, sends=3, nodes=2, hand_over=True),
        *(TALK, replace(TALK, sends=3), replace(TALK, lost=1), replace(TALK, duplicates=1)),
        *(replace(TALK, delayed=1), replace(TALK, crashes=1, duplicates=1)),
        pytest.param(replace(TALK, late=1), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_processes_of_a_log_are_sound_in_every_schedule(setting: Setting) -> None:
    search = explored(setting)
    assert search.failed is None
    assert search.done
    assert len(search.ends) > 1


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
    ],
)
def test_a_mutant_dies_where_processes_share_a_log(name: str, setting: Setting, law: str) -> None:
    with MUTANTS[name].alive():
        failed = explored(setting).failed
    assert failed is not None
    assert failed.name == law


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


def test_a_failure_is_told_and_can_be_played_again(tmp_path: Path) -> None:
    words = ["--log", PUBLISHED, "--before", "2", "--sends", "1", "--compactions", "1"]
    done = invoke(*words, "--out", str(tmp_path))
    assert done.exit_code == 1
    assert re.search(r"p0 sends     bucket  put key=k/index/0+2 ", done.output)
    [kept] = tmp_path.glob("*.json")
    assert "bucket" in kept.with_suffix(".svg").read_text()
    again = invoke("--replay", str(kept))
    assert again.exit_code == 1
    assert "✘ unseen" in again.output


def test_a_search_for_tools() -> None:
    done = invoke("--sends", "2", "--json")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["done"], told["failure"]) == (0, True, None)
    assert told["ends"] == len(explored(Setting(programs=True)).ends)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--sends", "0"], "nothing happens"),
        (["--repeats"], "forbids"),
        (["--log", "paper"], "paper"),
        (["--replay", __file__], "holds no schedule"),
        (["--strategy", "cas"], "cas is no log of programs"),
        (["--partitions", "1"], "--partitions is an option of nodes: leave --programs out"),
        (["--log", REPAIRED, "--nodes", "1"], "s3-queue-repaired has no --nodes"),
    ],
)
def test_bad_arguments_are_refused(words: list[str], says: str) -> None:
    done = invoke(*words)
    assert done.exit_code == 2
    assert says in done.output


def test_a_schedule_that_is_nested_too_deeply_is_none(tmp_path: Path) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000)
    done = invoke("--replay", str(deep))
    assert (done.exit_code, "holds no schedule" in done.output) == (2, True)


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
