"""The choices between messages and time: each limit case that a person would decide alike."""

import pytest

from leaderless.core.estimates import Rate
from leaderless.core.headlog.economics import (
    Company,
    Contention,
    another_lane_pays,
    committing_is_cheaper,
    linger_s,
    reading_ahead_pays,
)
from leaderless.core.pace import Pace

PACE = Pace()
LINGER_S = PACE.commit_linger_s
CALM = Contention(rate=0.0, batches=0.0, age_s=10.0)
BUSY = Contention(rate=500.0, batches=4.0, age_s=1.0)


def new_rate() -> Rate:
    return Rate(PACE.rate_memory_s, PACE.rate_observed_s_min)


def test_a_rate_forgets() -> None:
    rate = new_rate()
    for at in range(20):
        rate.happened(10, float(at))
    assert rate.per_second(19.0) == pytest.approx(15.8, rel=0.05)  # 10 at once each second
    assert rate.per_second(40.0) < 0.01


def test_a_rate_that_was_never_observed_is_none() -> None:
    assert new_rate().per_second(5.0) == 0.0


def test_the_first_events_are_not_taken_for_a_flood() -> None:
    rate = new_rate()
    rate.happened(0, 0.0)
    rate.happened(1, 0.5)
    assert rate.per_second(0.5) < 3


def test_alone_a_node_commits_for_itself() -> None:
    assert committing_is_cheaper(PACE, CALM, store_s=0.001, hand_over_s=0.002)
    assert not reading_ahead_pays(PACE, CALM, store_s=1.0)


def test_among_many_it_hands_over() -> None:
    assert not committing_is_cheaper(PACE, BUSY, store_s=0.001, hand_over_s=0.002)
    assert committing_is_cheaper(PACE, BUSY, store_s=0.001, hand_over_s=10.0)


def test_reading_ahead_is_for_conflicts_far_away() -> None:
    assert reading_ahead_pays(PACE, BUSY, store_s=0.1)
    assert not reading_ahead_pays(PACE, BUSY, store_s=0.001)


def test_another_lane_is_for_many_who_wait_long() -> None:
    assert another_lane_pays(PACE, waiting=10, hand_over_s=0.1)
    assert not another_lane_pays(PACE, waiting=1, hand_over_s=0.001)


@pytest.mark.parametrize(
    ("arrival_rate", "round_trip_s", "expected"),
    [(0.0, 0.001, 0.0), (1.0, 0.001, 0.0), (500.0, 0.001, LINGER_S), (1e6, 0.001, 0.0)],
)
def test_lingering_pays_where_company_comes_and_not_everybody_waits(
    arrival_rate: float, round_trip_s: float, expected: float
) -> None:
    assert linger_s(PACE, arrival_rate, round_trip_s, LINGER_S) == expected


def at_500_a_second() -> Company:
    company = Company(PACE, LINGER_S)
    for number in range(1_000):
        company.arrived(number / 500)
    return company


def test_a_lone_fast_client_is_hardly_ever_held_up() -> None:
    company = at_500_a_second()
    assert company.linger_s(0.001, now=2.0) == LINGER_S
    for _ in range(36):
        company.came(0)
    waits = [company.linger_s(0.001, now=2.0) for _ in range(10 * PACE.company_try_every)]
    assert waits.count(LINGER_S) == 10


def test_company_that_comes_again_is_noticed() -> None:
    company = at_500_a_second()
    for gained in [0] * 500 + [2]:
        company.came(gained)
    assert company.linger_s(0.001, now=2.0) == LINGER_S
