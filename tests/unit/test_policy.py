"""The pace as one value, how long it is worth to wait for company, and who is company."""

from dataclasses import fields
from math import inf

import pytest

from leaderless.core.headlog.policy import GATHERS_MAX, CommitPolicy, linger_s
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


def test_a_commit_waits_while_the_peers_of_the_last_one_come_back_and_no_longer() -> None:
    clock = Clock()
    policy = CommitPolicy(clock, "a", ("b", "c", "d"), Pace(gathers=0.4))
    policy.store_took(0.02)
    policy.attempt_committed(4, 4, of_peers=3)
    ends = [policy.gathers_until]
    for _ in range(2):
        clock.now += 0.007
        policy.peer_came()
        ends.append(policy.gathers_until)
    assert ends[0] < ends[1] < ends[2]
    assert ends[2] <= GATHERS_MAX * 0.02
    policy.peer_came()
    assert policy.gathers_until < clock.now  # all have come


def test_a_peer_that_has_not_helped_has_time_to_greet() -> None:
    policy = CommitPolicy(Clock(), "a", ("b", "c"), Pace(greeting_s=0.5))
    greetings_s = [policy.greeting_s("b")]
    policy.peer_answered("b", inf)
    policy.peer_helped("b", helped=True)
    greetings_s += map(policy.greeting_s, "bc")
    policy.peer_is_late("b")
    greetings_s.append(policy.greeting_s("b"))
    assert greetings_s == [0.5, 0.0, 0.5, 0.5]
    assert policy.hedge_s == PACE.hedge_s_min  # what took a greeting was not measured


def test_no_greeting_takes_longer_than_a_batch_waits_at_most() -> None:
    policy = CommitPolicy(Clock(), "a", ("b",), Pace(greeting_s=9.0))
    assert policy.hedge_s + policy.greeting_s("b") == PACE.hedge_s_max


# ---------------------------------------------------------------- estimates
