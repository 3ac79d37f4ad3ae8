"""Every schedule of small clusters of the real core: the search does what the core does, and misses nothing."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands.explore import explore
from leaderless.core.headlog.compaction import CLAIM
from simulation.exploration import telling
from simulation.exploration.campaign import Campaign, OtherSearch, explored, run
from simulation.exploration.cluster import ExploredCluster
from simulation.exploration.copies import CopiedCluster, Nodes
from simulation.exploration.events import Event, independent
from simulation.exploration.schedule import WAIT_LEASE
from simulation.exploration.search import Failing, Search
from simulation.exploration.setting import Setting
from simulation.exploration.telling import Failure
from simulation.watch import NS

TROUBLED = Setting(
    commits=1, fence=1, crashes=1, lost=1, late=2, duplicates=1, partitions=1, hand_over=True
)
COMPACTED = Setting(before=3, compaction=True, hand_over=True, crashes=1, late=1)
LONG_WALKS = (TROUBLED, COMPACTED)
WALKED = [
    Setting(),
    TROUBLED,
    COMPACTED,
    Setting("cas", nodes=3, sends=3, crashes=1, late=1),
    Setting("prefetch-sealed", crashes=1, lost=1, late=1, duplicates=1),
    Setting("leader", crashes=1, lost=1, late=1, partitions=1),
]
SEEDS = range(2)
SMALLER = replace(TROUBLED, sends=1, polls=0, late=1)


@pytest.mark.parametrize("setting", WALKED, ids=str)
def test_copies_do_what_the_simulated_cluster_does(setting: Setting) -> None:
    nodes = Nodes(setting)
    for seed in SEEDS:
        cluster, copied = ExploredCluster(setting), CopiedCluster(nodes)
        chosen = random.Random(seed)
        while enabled := copied.enabled():
            event = chosen.choice(enabled)
            assert cluster.enabled() == copied.enabled()
            assert cluster.step(event) == copied.step(event)
            assert cluster.digest() == copied.digest(), event
            copied = copied.copier()()


@pytest.mark.parametrize(
    "setting",
    [pytest.param(each, marks=[pytest.mark.slow] * (each in LONG_WALKS)) for each in WALKED]
    + [SMALLER],
    ids=str,
)
def test_independent_events_commute(setting: Setting) -> None:
    """In each state of random schedules: both orders lead to the same state, and touch the same."""
    nodes = Nodes(setting)
    pairs = 0
    for seed in SEEDS:
        cluster = CopiedCluster(nodes)
        chosen = random.Random(seed)
        while enabled := cluster.enabled():
            pairs += commuting(cluster)
            cluster.step(chosen.choice(enabled))
    assert pairs > 10


def commuting(cluster: CopiedCluster) -> int:
    """How many pairs of enabled events are independent; each of them commutes."""
    copier, pairs = cluster.copier(), 0
    after = {event: copier() for event in cluster.enabled()}
    touched = {event: dict(copy.step(event)) for event, copy in after.items()}
    copiers = {event: copy.copier() for event, copy in after.items()}
    for one in after:
        for other in after:
            if one < other and independent(touched[one], touched[other]):
                first, second = copiers[one](), copiers[other]()
                assert first.step(other) == touched[other], (one, other)
                assert second.step(one) == touched[one], (one, other)
                assert first.digest() == second.digest(), (one, other)
                pairs += 1
    return pairs


SMALL = [
    Setting("cas", sends=2, polls=0),
    Setting("cas", sends=1, polls=1),
    Setting("leader", sends=2, polls=1, crashes=1),
    Setting("leaderless", sends=1, polls=1),
]


@pytest.mark.parametrize("setting", SMALL, ids=str)
def test_reductions_reach_all_ends_of_brute_force(setting: Setting) -> None:
    ends, nodes = [], Nodes(setting)
    for search in (Search(False, False), Search(False), Search(merging=False), Search()):
        search.run(lambda: Silent(nodes), lambda: False)
        ends.append(search.ends)
    assert len(ends[0]) > 1
    assert ends[1:] == [ends[0]] * 3


class Silent(CopiedCluster):
    """Judges no end: this is about which ends are reached."""

    def judge(self) -> None:
        """Nothing is wrong."""


WEAK = {
    Setting("prefetch", sends=3): "int-poll-skip",
    Setting("prefetch", crashes=1): "Convergence",
    Setting("prefetch", lost=1): "Convergence",
    Setting("leader", crashes=1): "unseen",
    Setting("leader", partitions=1): "Convergence",
}


@pytest.mark.parametrize("setting", WEAK, ids=str)
def test_weak_strategies_fail(setting: Setting) -> None:
    failed = explored(setting).failed
    assert failed is not None
    assert failed.name == WEAK[setting]
    story, again = telling.replayed(setting, failed.schedule)
    assert again == failed
    assert story.events


@pytest.mark.parametrize(
    "setting",
    [
        Setting("cas"),
        Setting("leaderless", sends=1, crashes=1),
        Setting("leaderless", polls=0, hand_over=True),
        Setting("prefetch-sealed", sends=1),
    ],
    ids=str,
)
def test_sound_in_every_schedule(setting: Setting) -> None:
    campaign = explored(setting)
    assert campaign.failed is None
    assert campaign.done
    assert campaign.ends > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting",
    [
        Setting("cas", crashes=1),
        Setting("cas", polls=0, lost=1, duplicates=1),
        Setting("leaderless"),
        Setting("leaderless", crashes=1),
        Setting("leaderless", lost=1),
        Setting("leaderless", polls=0, late=1),
        Setting("prefetch-sealed"),
    ],
    ids=str,
)
def test_sound_in_every_schedule_with_faults(setting: Setting) -> None:
    campaign = explored(setting)
    assert campaign.failed is None
    assert campaign.done


def test_a_seed_changes_the_order_and_no_end() -> None:
    whole = explored(Setting("cas", sends=1))
    drawn = [explored(Setting("cas", sends=1), seed=seed) for seed in range(2)]
    assert [each.ends for each in drawn] == [whole.ends] * 2
    assert [*drawn[0].parts[0].states] != [*drawn[1].parts[0].states]


@pytest.mark.parametrize("kind", ["simulated", "copied"])
def test_on_the_oracles_clock_no_lease_is_shorter(kind: str) -> None:
    """It once stood still while the events after a wait went on: a claim seemed to be taken too early."""
    setting = Setting("cas", sends=1)
    copied = kind == "copied"
    cluster = CopiedCluster(Nodes(setting)) if copied else ExploredCluster(setting)
    for _ in range(10):
        cluster.tick()
    began_ns, seconds = cluster.watch.now_ns(), cluster.seconds
    cluster.set_time(seconds + 4.0)
    cluster.tick()
    assert cluster.watch.now_ns() - began_ns > 4.0 * NS


def test_a_claim_may_stand_still_for_a_lease() -> None:
    """Time passes for so long only while nobody waits for an answer."""
    cluster = ExploredCluster(Setting(nodes=1, before=2, sends=2, polls=0, late=1, compaction=True))
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
    assert setting.size < large.size
    assert failed.name == found.name
    assert len(failed.schedule) <= len(found.schedule)
    _, again = telling.replayed(setting, failed.schedule)
    assert again is not None
    assert again.name == found.name


def test_a_schedule_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot happen there"):
        telling.replayed(Setting("cas"), [Event("deliver", "n7>n8 nothing 1")])


def test_a_search_is_kept_in_a_file_and_goes_on_from_it(tmp_path: Path) -> None:
    whole = explored(Setting("cas"))
    file, stopped = tmp_path / "search", 0
    while True:
        campaign = Campaign(Setting("cas"), Search()).resumed(file)
        run(campaign, cpu_s_max=0.05, file=file)
        if campaign.done:
            break
        stopped += 1
    assert stopped > 0
    assert (campaign.states, campaign.ends) == (whole.states, whole.ends)
    with pytest.raises(OtherSearch):
        Campaign(Setting("leader"), Search()).resumed(file)


def test_processes_share_a_search() -> None:
    small = Setting("cas", sends=1)
    alone = explored(small)
    campaign = Campaign(small, Search())
    run(campaign, jobs=2)
    assert campaign.done
    assert len(campaign.parts) > 1
    assert campaign.ends == alone.ends


def test_the_command_finds_tells_and_replays(tmp_path: Path) -> None:
    words = ["--strategy", "prefetch", "--sends", "3", "--out", str(tmp_path)]
    found = CliRunner().invoke(explore, words)
    assert found.exit_code == 1, found.output
    assert "int-poll-skip" in found.output
    assert "n0 sends     lin-kv  cas key=reserved/k" in found.output
    (schedule,) = tmp_path.glob("*.json")
    assert schedule.with_suffix(".svg").read_text().startswith("<svg")
    again = CliRunner().invoke(explore, ["--replay", str(schedule)])
    assert again.exit_code == 1
    assert "int-poll-skip" in again.output


def test_the_command_says_what_was_searched_and_what_was_cut() -> None:
    sound = CliRunner().invoke(explore, ["--strategy", "cas", "--json"])
    assert sound.exit_code == 0
    counts = json.loads(sound.stdout)
    assert counts["done"]
    assert counts["states"] > counts["ends"] > 1
    cut = CliRunner().invoke(explore, ["--strategy", "cas", "--delays", "1"])
    assert "with at most 1 delays" in cut.output
    stopped = CliRunner().invoke(explore, ["--strategy", "cas", "--cpu", "0.001"])
    assert stopped.exit_code == 2
    assert "stopped" in stopped.output
    assert CliRunner().invoke(explore, ["--strategy", "cas", "--fence", "1"]).exit_code == 2


def test_a_failing_event_names_what_broke() -> None:
    """The test of the test: a register that loses its value between two events."""
    cluster = ExploredCluster(Setting("cas", sends=1))
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
