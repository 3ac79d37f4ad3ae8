"""Every schedule of a few nodes or programs: the search does what the core does, and misses nothing."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from leaderless.core.headlog.compaction import CLAIM
from leaderless.core.machine import Answers
from simulation.commands.explore import explore
from simulation.exploration import telling
from simulation.exploration.campaign import explored, systems_of
from simulation.exploration.cluster import WAIT_LEASE, ExploredCluster
from simulation.exploration.explored import Explored
from simulation.exploration.processes import Processes
from simulation.exploration.search import Event, Failing, Search
from simulation.exploration.setting import Setting
from simulation.exploration.telling import Failure
from simulation.logs import LEADERLESS, LOGS, PUBLISHED, REPAIRED
from simulation.watch import NS
from tests.simulation.exploring import failure_of

TROUBLED = Setting(
    commits=1, fence=1, crashes=1, lost=1, late=2, duplicates=1, partitions=1, hand_over=True
)
COMPACTED = Setting(before=3, compaction=True, hand_over=True, crashes=1, late=1)
TROUBLED_PROGRAMS = Setting(
    programs=True, polls=1, compactions=1, before=2, lost=1, delayed=1, crashes=1, late=1
)
WALKED = [
    Setting(),
    TROUBLED,
    COMPACTED,
    Setting("cas", nodes=3, sends=3, crashes=1, late=1),
    Setting("prefetch-sealed", crashes=1, lost=1, late=1, duplicates=1),
    Setting("leader", crashes=1, lost=1, late=1, partitions=1),
    *(replace(TROUBLED_PROGRAMS, strategy=log) for log in LOGS),
    replace(TROUBLED_PROGRAMS, nodes=2, sends=3, hand_over=True, compactions=0),
    replace(TROUBLED_PROGRAMS, hand_over=True, duplicates=1, compactions=0),
]
SEEDS = range(2)
OVERWRITTEN = Setting(PUBLISHED, programs=True, before=2, sends=1, compactions=1)
MIXED = Setting(programs=True, nodes=1)
TALK = Setting(programs=True, hand_over=True)
CONDITIONAL = replace(TALK, conditions=True, before=5)


@pytest.mark.parametrize("setting", WALKED, ids=str)
def test_copies_do_what_a_system_does_that_knows_nothing(setting: Setting) -> None:
    new = systems_of(setting)
    for seed in SEEDS:
        system, copied = systems_of(setting)(), new()
        chosen = random.Random(seed)
        while enabled := copied.enabled():
            event = chosen.choice(enabled)
            assert system.enabled() == copied.enabled()
            system.step(event)
            copied.step(event)
            assert system.digest() == copied.digest(), event
            copied = copied.copier()()


SMALL = [
    Setting("cas", sends=2, polls=0),
    Setting("cas", sends=1, polls=1),
    Setting("leader", sends=2, polls=1, crashes=1),
    Setting("leaderless", sends=1, polls=1),
    Setting(programs=True, polls=1),
    Setting(programs=True, lost=1, sends=1, polls=1),
    Setting(programs=True, sends=1, polls=1, late=1),
    Setting(programs=True, sends=1, crashes=1, lost=1, late=1),
    Setting(PUBLISHED, programs=True, sends=1, delayed=1, polls=1),
    Setting(REPAIRED, programs=True, sends=1, polls=1),
    Setting(programs=True, nodes=1),
    Setting(programs=True, hand_over=True),
]


@pytest.mark.parametrize("setting", SMALL, ids=str)
def test_merged_states_reach_all_ends_of_brute_force(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Explored, "judge", lambda _: None)  # this is about which ends are reached
    searches, new = (Search(merging=False), Search()), systems_of(setting)
    for search in searches:
        search.run(new, lambda: False)
    assert len(searches[0].ends) > 1
    assert searches[0].ends == searches[1].ends


WEAK = {
    Setting("prefetch", sends=3): "int-poll-skip",
    Setting("prefetch", crashes=1): "Convergence",
    Setting("prefetch", lost=1): "Convergence",
    Setting("leader", crashes=1): "unseen",
    Setting("leader", partitions=1): "Convergence",
    OVERWRITTEN: "unseen",
    Setting(PUBLISHED, programs=True, sends=1, lost=1, repeats=True): "duplicate",
    Setting(PUBLISHED, programs=True, lost=2): "unseen",
}


@pytest.mark.parametrize("setting", WEAK, ids=str)
def test_weak_strategies_fail(setting: Setting) -> None:
    failed = explored(setting).failed
    assert failed is not None
    assert failed.name == WEAK[setting]
    _, story, again = telling.replayed(setting, failed.schedule)
    assert again == failed
    assert story.events


OF_PROGRAMS: list[dict[str, Any]] = [
    *({"sends": 3}, {"polls": 1}, {"lost": 1}, {"delayed": 1}, {"crashes": 1}),
    *({"late": 1, "sends": 1}, {"sends": 1, "before": 2, "compactions": 1}),
]


@pytest.mark.parametrize(
    "setting",
    [
        Setting("cas"),
        Setting("leaderless", sends=1, crashes=1),
        Setting("leaderless", sends=1, lost=1),
        Setting("leaderless", polls=0, lost=1),
        Setting("leaderless", polls=0, hand_over=True),
        Setting("prefetch-sealed", sends=1),
        Setting("prefetch-sealed", polls=0),
        *(
            Setting(log, programs=True, **what)
            for log in (LEADERLESS, REPAIRED)
            for what in OF_PROGRAMS
        ),
        *(MIXED, replace(MIXED, lost=1), replace(MIXED, crashes=1)),
        replace(MIXED, sends=3, nodes=2, hand_over=True),
        *(TALK, replace(TALK, sends=3), replace(TALK, lost=1), replace(TALK, duplicates=1)),
        *(replace(TALK, delayed=1), replace(TALK, crashes=1, duplicates=1)),
        *(replace(CONDITIONAL, lost=1, duplicates=1), replace(CONDITIONAL, sends=3)),
    ],
    ids=str,
)
def test_sound_in_every_schedule(setting: Setting) -> None:
    search = explored(setting)
    assert (search.failed, search.done) == (None, True)
    assert len(search.ends) > 1


LARGE = [
    Setting("cas", crashes=1),
    Setting("cas", polls=0, lost=1, duplicates=1),
    Setting("leaderless", polls=0, crashes=1),
    Setting("leaderless", sends=1, late=1),
    replace(TALK, late=1),
    *(replace(CONDITIONAL, late=1), replace(CONDITIONAL, sends=3, lost=1)),
]
LARGER = [Setting("leaderless", crashes=1), Setting("leaderless", polls=0, late=1)]


@pytest.mark.parametrize(
    "setting",
    [
        *(pytest.param(each, marks=pytest.mark.slow) for each in LARGE),
        *(pytest.param(each, marks=pytest.mark.seeds) for each in LARGER),
    ],
    ids=str,
)
def test_sound_in_every_schedule_with_faults(setting: Setting) -> None:
    search = explored(setting)
    assert (search.failed, search.done) == (None, True)


def test_a_seed_changes_the_order_and_no_end() -> None:
    setting = Setting("cas", sends=1)
    searches = [Search(seed=seed) for seed in range(2)]
    for search in searches:
        search.run(systems_of(setting), partial(next, iter([False] * 20), True))
    assert searches[0].states != searches[1].states
    for search in searches:
        search.run(systems_of(setting), lambda: False)
    assert [search.ends for search in searches] == [explored(setting).ends] * 2


def test_on_the_oracles_clock_no_lease_is_shorter() -> None:
    """It once stood still while the events after a wait went on: a claim seemed to be taken too early."""
    cluster = ExploredCluster(Processes(Setting("cas", sends=1)))
    for _ in range(10):
        cluster.tick()
    began_ns, seconds = cluster.watch.now_ns(), cluster.seconds
    cluster.set_time(seconds + 4.0)
    cluster.tick()
    assert cluster.watch.now_ns() - began_ns > 4.0 * NS


def test_a_claim_may_stand_still_for_a_lease() -> None:
    """Time passes for so long only while nobody waits for an answer."""
    cluster = ExploredCluster(
        Processes(Setting(nodes=1, before=2, sends=2, polls=0, late=1, compaction=True))
    )
    lease = [
        (bool(cluster.watch.unanswered), CLAIM in cluster.store.cells)
        for _ in walk_first(cluster)
        if WAIT_LEASE in cluster.enabled()
    ]
    assert lease
    assert set(lease) == {(False, True)}


def test_the_smallest_failure_is_small() -> None:
    large = Setting("prefetch", nodes=3, sends=3, polls=1)
    found = explored(large).failed
    assert found is not None
    setting, failed = telling.smallest(Failure(large, found), cpu_s=0.1)
    assert setting.nodes + setting.sends + setting.polls < 7
    assert failed.name == found.name
    assert len(failed.schedule) <= len(found.schedule)
    *_, again = telling.replayed(setting, failed.schedule)
    assert again is not None
    assert again.name == found.name


def test_a_schedule_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot happen there"):
        telling.replayed(Setting("cas"), [Event("deliver", "n7>n8 nothing 1")])


@pytest.mark.parametrize(
    ("words", "told", "law"),
    [
        (
            "--strategy prefetch --sends 3",
            "n0 sends     lin-kv  cas key=reserved/k",
            "int-poll-skip",
        ),
        (OVERWRITTEN.command(), "p0 sends     bucket  put key=k/index/000", "unseen"),
    ],
)
def test_the_command_finds_tells_and_replays(
    tmp_path: Path, words: str, told: str, law: str
) -> None:
    more = words.removeprefix("./maelstrom explore ").split()
    found = CliRunner().invoke(explore, [*more, "--out", str(tmp_path)])
    assert (found.exit_code, told in found.output, law in found.output) == (1, True, True)
    (schedule,) = tmp_path.glob("*.json")
    assert schedule.with_suffix(".svg").read_text().startswith("<svg")
    again = CliRunner().invoke(explore, ["--replay", str(schedule)])
    assert (again.exit_code, f"✘ {law}" in again.output) == (1, True)


def said(*words: str) -> tuple[int, list[str]]:
    """The exit status of a search, and the lines of its verdict."""
    done = CliRunner().invoke(explore, words)
    return done.exit_code, done.stdout.splitlines()


def test_the_command_says_in_a_sentence_what_was_covered_and_what_was_not() -> None:
    status, (covered, left_out, _) = said("--sends", "1", "--crashes", "1")
    assert status == 0
    assert re.fullmatch(
        r"✔ sound within these bounds: all schedules of 2 nodes, 1 send, 1 poll, 1 crash: [0-9 ]+ states,"
        r" \d+ schedules, every step held to HeadLog, every end judged",
        covered,
    )
    assert left_out.startswith("not covered: more of these, earlier messages, commits, fences,")
    _, (covered, *_) = said("--strategy", "cas", "--sends", "1")
    assert "HeadLog" not in covered


def test_a_wrong_design_is_sound_only_within_bounds_that_are_too_small_to_show_it() -> None:
    status, (covered, left_out, _) = said("--strategy", "prefetch")
    assert status == 0
    assert covered.startswith(
        "✔ sound within these bounds: all schedules of 2 nodes, 2 sends, 1 poll:"
    )
    assert left_out.startswith("not covered: more of these, ")
    assert said("--strategy", "prefetch", "--sends", "3")[0] == 1


def test_what_was_cut_is_complete_for_its_bound_and_what_was_stopped_is_unfinished() -> None:
    _, (cut, *_) = said("--strategy", "cas", "--delays", "1")
    assert "1 poll with at most 1 delay, complete for this bound only (" in cut
    _, (uncut, *_) = said("--strategy", "cas", "--sends", "1", "--delays", "9")
    assert uncut.startswith(
        "✔ sound within these bounds: all schedules of 2 nodes, 1 send, 1 poll: "
    )
    status, (stopped, *_) = said("--strategy", "cas", "--cpu", "0.001")
    assert status == 2
    assert stopped.startswith("unfinished: ")
    assert "✔" not in stopped
    assert said("--strategy", "cas", "--fence", "1")[0] == 2


def test_a_bound_on_delays_grows_to_the_whole_search() -> None:
    setting = Setting("cas", sends=1)
    whole = explored(setting)
    bounded = [explored(setting, delays=delays) for delays in range(4)]
    assert [each.counts.delayed > 0 for each in bounded] == [True, True, True, False]
    for less, more in pairwise(bounded):
        assert less.states < more.states
    assert bounded[-1].ends == whole.ends
    assert bounded[-1].states == whole.states


GAVE_UP = [
    *("ask c1", "deliver n0>lin-kv read 1000001", "deliver lin-kv>n0 error 1000001"),
    *("deliver n0>lin-kv cas 1000002", "wait late", "ring n0", "deliver lin-kv>n0 cas_ok 1000002"),
    *("deliver n0>lin-kv read 1000003", "wait late", "ring n0"),
    *(
        "deliver lin-kv>n0 read_ok 1000003",
        "deliver n0>lin-kv read 1000004",
        "wait late",
        "ring n0",
    ),
    *("deliver lin-kv>n0 read_ok 1000004", "deliver n0>lin-kv read 1000005", "wait 1"),
    "deliver lin-kv>n0 read_ok 1000005",
]


def test_a_node_that_stood_still_owes_nothing_to_a_client_that_is_gone() -> None:
    """It once was told to make progress: the second in which the client left passed it by."""
    cluster = ExploredCluster(Processes(Setting(nodes=1, sends=1, polls=0, late=4)))
    for text in GAVE_UP:
        cluster.step(Event(*text.split(" ", 1)))
    assert cluster.history.ops[-1].type == "info"
    while enabled := cluster.enabled():
        cluster.step(enabled[0])
    cluster.judge()


def test_a_node_that_was_awake_owes_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of the test: a node that never answers is found in the same setting."""
    monkeypatch.setattr(Answers, "allow", lambda *_: False)
    assert failure_of(Setting(nodes=1, sends=1, polls=0, late=1)) == "Progress"


def test_a_failing_event_names_what_broke() -> None:
    """The test of the test: a register that loses its value between two events."""
    cluster = ExploredCluster(Processes(Setting("cas", sends=1)))
    for event in walk_first(cluster):
        if event.kind == "end":
            cluster.store.cells.clear()
            with pytest.raises(Failing) as failing:
                cluster.judge()
            assert failing.value.name in ("PollFresh", "unseen", "lost-write")
            return
    pytest.fail("the schedule has no end")


def walk_first(cluster: ExploredCluster) -> Iterator[Event]:
    """The schedule that always takes the first enabled event."""
    while enabled := cluster.enabled():
        cluster.step(enabled[0])
        yield enabled[0]
