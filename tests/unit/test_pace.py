"""The pace as one value, and what the pacer makes of facts."""

from dataclasses import fields
from typing import Any

import pytest

from leaderless.core.headlog.pacer import Pacer
from leaderless.core.pace import Pace
from leaderless.core.strategy import Clock

PACE = Pace()


@pytest.mark.parametrize(
    "wrong",
    [
        {"store_timeout_s": 0.0},
        {"rest_every": 0},
        {"batch_linger_s": 0.1},
        {"commit_linger_s": 0.05},
        {"patience_s_min": 2.0},
        {"suspect_s_max": 0.5},
        {"patience_means": 0.5},
        {"suspect_patiences": 0},
        {"hedge_deviations": 0},
        {"timeout_growth": 1.0},
        {"error_pause_s": 2.0},
        {"error_patience_s": 0.001},
        {"store_attempts": 0},
        {"failures_max": 0},
        {"reading_share": 1.5},
        {"in_step_deviation": -0.1},
        {"offsets_linger_s": -1.0},
        {"revived_after_leases": 0.5},
    ],
)
def test_a_relation_that_does_not_hold_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="pace: "):
        Pace(**wrong)


def test_every_field_says_what_it_costs() -> None:
    assert Pace.__doc__
    for field in fields(Pace):
        assert f"`{field.name}`" in Pace.__doc__, field.name


def test_a_lease_outlives_a_silent_call_and_a_store_far_away() -> None:
    assert Pace(store_timeout_s=2.0).lease_s > 3 * 2.0
    assert Pace(store_timeout_s=0.02).lease_s >= PACE.timeout_unmeasured_max_s


def new_pacer(took_s: float = 0.001, times: int = 50) -> tuple[Pacer, Clock]:
    clock = Clock()
    pacer = Pacer(clock, "n0", ("n0", "n1", "n2"), PACE)
    for _ in range(times):
        pacer.store_took(took_s)
    return pacer, clock


def test_patience_follows_the_round_trips_within_bounds() -> None:
    fast, _ = new_pacer(0.000_1)
    slow, _ = new_pacer(5.0)
    assert fast.patience_s == PACE.patience_store_calls * PACE.patience_s_min
    assert slow.patience_s == PACE.patience_store_calls * PACE.patience_s_max


def contended(pacer: Pacer, clock: Clock) -> None:
    """n2 and then n1 commit often, with large batches, and the view is old."""
    pacer.confirmed(0.0)
    for number in range(100):
        clock.now = number / 100
        pacer.others_committed(1, 4)
        pacer.head_is_by("n2" if number < 50 else "n1")


def test_here_or_to_whom() -> None:
    pacer, clock = new_pacer()
    assert pacer.target() is None
    contended(pacer, clock)
    assert pacer.target() == "n1"
    pacer.peer_was_silent("n1")
    assert (pacer.target(), pacer.suspects) == ("n2", ["n1"])
    pacer.peer_answered("n1", 0.002)
    assert (pacer.target(), pacer.suspects) == ("n1", [])
    pacer.peer_answered("n2", 0.002)
    pacer.peer_helped("n2", helped=True)
    assert pacer.target() == "n2"
    pacer.head_is_by("n0")
    assert pacer.target() is None


def test_a_node_that_may_not_combine_commits_here() -> None:
    clock = Clock()
    pacer = Pacer(clock, "n0", ("n0", "n1"), PACE, combine=False)
    contended(pacer, clock)
    assert pacer.target() is None


def test_a_peer_that_is_late_is_passed_over_until_it_answers() -> None:
    pacer, clock = new_pacer()
    contended(pacer, clock)
    assert 0.02 < pacer.hedge_s <= pacer.patience_s
    assert pacer.target() == "n1"
    pacer.peer_is_late("n1")
    assert pacer.target() == "n2"
    pacer.peer_answered("n1", 0.002)
    assert pacer.target() == "n1"


def test_a_batch_waits_longer_than_most_answers_take() -> None:
    pacer, _ = new_pacer(0.2)
    for took_s in (0.3, 0.5) * 20:
        pacer.peer_answered("n1", took_s)
    assert 0.5 < pacer.hedge_s <= pacer.patience_s


def test_a_suspect_is_asked_once_when_its_time_has_come() -> None:
    pacer, clock = new_pacer()
    pacer.peer_was_silent("n1")
    assert pacer.to_probe() == []
    clock.now = PACE.suspect_s_max
    assert pacer.to_probe() == ["n1"]
    assert pacer.to_probe() == []


@pytest.mark.parametrize("varies", [False, True])
def test_nodes_in_step_rest_more_often(varies: bool) -> None:
    """Between others' commits, where round trips take about the same time, and where they vary."""
    pacer, clock = new_pacer()
    contended(pacer, clock)
    for number in range(50):
        pacer.store_took(0.2 if varies and number % 2 else 0.1)
    rests = []
    for _ in range(PACE.rest_every):
        pacer.attempt_committed(1, waiting=1)
        rests.append(pacer.rest_s() > 0)
    assert sum(rests) == (1 if varies else PACE.rest_every // PACE.rest_every_contended)


def test_batches_go_alone_after_unknown_outcomes_until_a_row_got_through() -> None:
    pacer, _ = new_pacer()
    for _ in range(PACE.isolated_after):
        assert not pacer.isolates
        pacer.attempt_failed()
        pacer.attempt_unknown()
    assert pacer.isolates
    pacer.attempt_failed()
    pacer.attempt_committed(1, waiting=2)
    assert pacer.isolates
    pacer.attempt_committed(1, waiting=2)
    assert not pacer.isolates
