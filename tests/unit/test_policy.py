"""The pace as one value, how long it is worth to wait for company, and who is company."""

from dataclasses import fields

import pytest

from leaderless.core.estimates import Company
from leaderless.core.headlog.policy import linger_s
from leaderless.core.pace import FAR_S, Pace

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


# ---------------------------------------------------------------- estimates


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
