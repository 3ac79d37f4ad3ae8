"""The pace as one value, what the policy makes of facts, and the estimates that it goes by."""

from dataclasses import fields

import pytest

from leaderless.core.estimates import Company, Rate
from leaderless.core.headlog.policy import (
    ISOLATED_AFTER,
    REST_EVERY_CONTENDED,
    CommitPolicy,
    linger_s,
)
from leaderless.core.pace import FAR_S, Pace
from leaderless.core.strategy import Clock

PACE = Pace()


def test_every_field_says_what_it_costs() -> None:
    assert Pace.__doc__
    for field in fields(Pace):
        assert f"`{field.name}`" in Pace.__doc__, field.name


def test_a_lease_outlives_a_silent_call_and_a_store_far_away() -> None:
    assert Pace(store_timeout_s=2.0).lease_s > 3 * 2.0
    assert Pace(store_timeout_s=0.02).lease_s >= FAR_S


def new_policy(took_s: float = 0.001, times: int = 50) -> tuple[CommitPolicy, Clock]:
    clock = Clock()
    policy = CommitPolicy(clock, "n0", ("n0", "n1", "n2"), PACE)
    for _ in range(times):
        policy.store_took(took_s)
    return policy, clock


def contended(policy: CommitPolicy, clock: Clock) -> None:
    """n2 and then n1 commit often, with large batches, and the view is old."""
    policy.confirmed(0.0)
    for number in range(100):
        clock.now = number / 100
        policy.others_committed(1)
        policy.head_is_by("n2" if number < 50 else "n1")


def test_here_or_to_whom() -> None:
    policy, clock = new_policy()
    assert policy.target() is None
    contended(policy, clock)
    assert policy.target() == "n1"
    policy.peer_is_late("n1")
    assert (policy.target(), policy.late) == ("n2", ["n1"])
    policy.peer_answered("n1", 0.002)
    assert (policy.target(), policy.late) == ("n1", [])
    policy.peer_answered("n2", 0.002)
    policy.peer_helped("n2", helped=True)
    assert policy.target() == "n2"
    policy.head_is_by("n0")
    assert policy.target() is None


def test_a_node_that_may_not_combine_commits_here() -> None:
    clock = Clock()
    policy = CommitPolicy(clock, "n0", ("n0", "n1"), PACE, combine=False)
    contended(policy, clock)
    assert policy.target() is None


def test_a_batch_waits_longer_than_most_answers_take() -> None:
    policy, _ = new_policy(0.2)
    assert policy.hedge_s == pytest.approx(4 * 0.2)
    for took_s in (0.3, 0.5) * 20:
        policy.peer_answered("n1", took_s)
    assert 0.5 < policy.hedge_s < 1.0


def test_a_batch_goes_another_way_while_its_client_still_waits() -> None:
    """A node that stood still measured 5 s, and then waited as long for a peer that had left for good."""
    policy, _ = new_policy(5.0, times=1)
    assert policy.hedge_s < PACE.error_patience_s / 2


def test_near_peers_are_not_late_before_a_busy_processor_answers() -> None:
    policy, _ = new_policy(0.000_1)
    policy.peer_answered("n1", 0.000_3)
    assert policy.hedge_s == PACE.hedge_s_min


def test_a_late_peer_is_asked_once_when_its_time_has_come() -> None:
    policy, clock = new_policy()
    policy.peer_is_late("n1")
    assert policy.to_probe() == []
    clock.now = PACE.hedge_s_min
    assert policy.to_probe() == ["n1"]
    assert policy.to_probe() == []
    policy.peer_is_late("n1")  # again
    assert policy.to_probe() == []
    clock.now += PACE.hedge_s_min
    assert policy.to_probe() == ["n1"]


@pytest.mark.parametrize(
    ("others", "spread_s", "every"),
    [(0, 0.0, PACE.rest_every), (1, 0.0, REST_EVERY_CONTENDED), (1, 0.0008, PACE.rest_every)],
)
def test_a_node_rests_more_often_where_others_commit_in_step(
    others: int, spread_s: float, every: int
) -> None:
    policy, clock = new_policy()
    for number in range(50):
        policy.store_took(0.001 + (-1) ** number * spread_s)
    policy.others_committed(0)
    clock.now += 1.0
    policy.others_committed(others)
    rests = 0
    for _ in range(100):
        policy.attempt_committed(1, waiting=1)
        rests += policy.rest_s() > 0
    assert rests == 100 // every


@pytest.mark.parametrize(
    ("rate", "expected"), [(0.0, 0.0), (20.0, 0.0), (1000.0, 0.0025), (1e9, 0.0)]
)
def test_the_wait_for_company_is_the_economic_order_quantity(rate: float, expected: float) -> None:
    assert linger_s(PACE, rate) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("worth_s", [0.0, 1e-9, 1.0, 1e6])
def test_no_price_makes_anybody_wait_for_long(worth_s: float) -> None:
    pace = Pace(message_worth_s=worth_s)
    for rate in (0.0, 1.0, 1e3, 1e9):
        assert 0.0 <= linger_s(pace, rate) <= pace.linger_s_max


def test_batches_go_alone_after_unknown_outcomes_until_a_row_got_through() -> None:
    policy, _ = new_policy()
    for _ in range(ISOLATED_AFTER):
        assert not policy.isolates
        policy.attempt_failed()
        policy.attempt_unknown()
    assert policy.isolates
    policy.attempt_failed()
    policy.attempt_committed(1, waiting=2)
    assert policy.isolates
    policy.attempt_committed(1, waiting=2)
    assert not policy.isolates


# ---------------------------------------------------------------- estimates


def test_a_rate_forgets() -> None:
    rate = Rate()
    for at in range(20):
        rate.happened(10, float(at))
    assert rate.per_second(19.0) == pytest.approx(15.8, rel=0.05)  # 10 at once each second
    assert rate.per_second(40.0) < 0.01


def test_a_rate_that_was_never_observed_is_none() -> None:
    assert Rate().per_second(5.0) == 0.0


def test_the_first_events_are_not_taken_for_a_flood() -> None:
    rate = Rate()
    rate.happened(0, 0.0)
    rate.happened(1, 0.5)
    assert rate.per_second(0.5) < 3


def company(clients: int, wait_s: float) -> Company:
    """Clients that send again as soon as they are answered; each answer takes so long."""
    found = Company()
    for number in range(1_000):
        for client in range(clients):
            found.arrived(number * wait_s + client * wait_s / 10)
        found.idle((number + 0.9) * wait_s)
    return found


def test_a_lone_fast_client_is_alone() -> None:
    assert company(1, 0.002).per_second(2.0) == 0.0


def test_others_count_by_the_time_in_which_somebody_waits() -> None:
    assert company(3, 0.002).per_second(2.0) == pytest.approx(2 / (0.9 * 0.002), rel=0.01)


def test_company_that_left_is_forgotten() -> None:
    found = company(3, 0.002)
    for number in range(5_000):
        found.arrived(2.0 + number * 0.002)
        found.idle(2.001 + number * 0.002)
    assert found.per_second(12.0) < 1
