"""Estimates: rates that forget, and company, which a lone client is not."""

import pytest

from leaderless.core.estimates import Company, Rate


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
