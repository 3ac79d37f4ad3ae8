"""Every schedule of a few processes on a bucket: what is found, what passes, nothing is missed."""

import json
from contextlib import closing
from itertools import combinations
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result

from leaderless.store.port import Version
from simulation.commands.explore import explore
from simulation.exploration.bucket import ExploredBucket
from simulation.exploration.campaign import Campaign, explored, run
from simulation.exploration.events import Event, Footprint, independent
from simulation.exploration.search import Search
from simulation.exploration.setting import Setting
from simulation.programs import LEADERLESS, PUBLISHED, REPAIRED, Port
from simulation.s3_queue.published import Topic
from simulation.s3_queue.repaired import RepairedTopic

pytestmark = pytest.mark.simulation

SOUND = (LEADERLESS, REPAIRED)
OVERWRITTEN = Setting(PUBLISHED, programs=True, before=2, sends=1, compactions=1)
APPENDED_TWICE = Setting(PUBLISHED, programs=True, sends=1, lost=1, repeats=True)


def invoke(*words: str) -> Result:
    return CliRunner().invoke(explore, ("--programs", *words))


def at(setting: Setting, schedule: list[Event]) -> tuple[ExploredBucket, Footprint]:
    """A new system after a schedule, and what its last event touched."""
    system = ExploredBucket(setting)
    touched: Footprint = {}
    for event in schedule:
        touched = system.step(event)
    return system, touched


def enabled_after(setting: Setting, schedule: list[Event]) -> list[Event]:
    """What may happen after a schedule."""
    with closing(at(setting, schedule)[0]) as system:
        return [*system.enabled()]


# ---------------------------------------------------------------- what must be found


@pytest.mark.parametrize(
    ("setting", "name"), [(OVERWRITTEN, "lost-write"), (APPENDED_TWICE, "duplicate")]
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
    assert failed.name in ("lost-write", "Progress")


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
    campaign = explored(Setting(log, programs=True, **what))  # type: ignore[arg-type]
    assert campaign.failed is None
    assert campaign.done
    assert campaign.ends > (1 if log == LEADERLESS and "late" in what else 0)


# ---------------------------------------------------------------- nothing is missed


@pytest.mark.parametrize(
    "setting",
    [
        Setting(programs=True, polls=1),
        Setting(programs=True, lost=1, sends=1, polls=1),
        Setting(PUBLISHED, programs=True, sends=1, delayed=1, polls=1),
        Setting(REPAIRED, programs=True, sends=1, polls=1),
    ],
    ids=Setting.command,
)
def test_each_reduction_reaches_the_ends_of_brute_force(setting: Setting) -> None:
    ends = []
    for sleeping, merging in ((False, False), (True, False), (False, True), (True, True)):
        campaign = Campaign(setting, Search(sleeping, merging))
        run(campaign, cpu_s_max=60)
        assert campaign.done
        ends.append(set().union(*(part.ends for part in campaign.parts)))
    assert ends == [ends[0]] * 4
    assert len(ends[0]) > 1


@pytest.mark.parametrize("log", [LEADERLESS, PUBLISHED, REPAIRED])
def test_independent_events_commute(log: str) -> None:
    """Each pair that is enabled in the states of random schedules, in both orders."""
    setting = Setting(
        log, programs=True, polls=1, compactions=1, before=2, lost=1, delayed=1, crashes=1
    )
    random, compared = Random(f"commute {log}"), 0
    schedule: list[Event] = []
    while enabled := enabled_after(setting, schedule):
        for one, other in combinations(random.sample(enabled, min(6, len(enabled))), 2):
            compared += commutes(setting, schedule, one, other)
        schedule.append(random.choice(enabled))
    assert compared > 10


def commutes(setting: Setting, schedule: list[Event], one: Event, other: Event) -> bool:
    """Whether two events are independent; then both orders must lead to the same state."""
    (first, its), (second, others) = (at(setting, [*schedule, each]) for each in (one, other))
    free = independent(its, others)
    if free:
        for system, event in ((first, other), (second, one)):
            assert event in system.enabled()
            system.step(event)
        assert first.digest() == second.digest(), f"{one}, {other} after {schedule}"
    first.close()
    second.close()
    return free


def test_the_same_schedule_leads_to_the_same_state() -> None:
    setting = Setting(REPAIRED, programs=True, before=1, compactions=1)
    digests = []
    for _ in range(2):
        system = ExploredBucket(setting)
        while enabled := system.enabled():
            system.step(enabled[-1])
        digests.append(system.digest())
        system.close()
    assert digests[0] == digests[1]


def test_an_error_of_the_code_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_store: Port, _key: str, value: bytes, _version: Version) -> Version:
        raise AssertionError(value)

    monkeypatch.setattr(Port, "compare_and_set", broken)
    failed = explored(Setting(PUBLISHED, programs=True, sends=1)).failed
    assert failed is not None
    assert failed.name == "crash"


# ---------------------------------------------------------------- the command


def test_a_failure_is_told_and_can_be_played_again(tmp_path: Path) -> None:
    words = ["--log", PUBLISHED, "--before", "2", "--sends", "1", "--compactions", "1"]
    done = invoke(*words, "--out", str(tmp_path))
    assert done.exit_code == 1
    assert "over COMPACTED" in done.output
    [kept] = tmp_path.iterdir()
    again = invoke("--replay", str(kept))
    assert again.exit_code == 1
    assert "✘ lost-write" in again.output


def test_a_search_for_tools_in_two_processes() -> None:
    done = invoke("--sends", "2", "--json", "--jobs", "2")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["done"], told["failure"]) == (0, True, None)
    assert told["ends"] == explored(Setting(programs=True)).ends


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--sends", "0"], "nothing happens"),
        (["--repeats"], "forbids"),
        (["--log", "paper"], "paper"),
        (["--replay", __file__], "holds no schedule"),
        (["--strategy", "cas"], "cas is no log of programs"),
        (["--partitions", "1"], "--partitions is an option of nodes: leave --programs out"),
    ],
)
def test_bad_arguments_are_refused(words: list[str], says: str) -> None:
    done = invoke(*words)
    assert done.exit_code == 2
    assert says in done.output


def test_the_command_of_a_setting_gives_the_setting() -> None:
    words = OVERWRITTEN.command().split()[2:]
    told = json.loads(invoke(*words, "--cpu", "0.001", "--json").stdout)
    assert Setting(**told["setting"]) == OVERWRITTEN
