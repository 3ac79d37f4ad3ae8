"""Our log and S3-Queue on the same virtual bucket: the aims, in virtual time, which no machine changes."""

import pytest

from performance.s3_queue import Case, Reading, reading, times_as_many, virtual
from simulation.programs import LEADERLESS, LOGS, PUBLISHED

pytestmark = pytest.mark.simulation


def test_sixteen_producers_at_20_ms() -> None:
    assert times_as_many(16, 20.0) >= 50
    assert virtual(Case(LEADERLESS, 16, 100), 20.0).requests_an_append <= 0.1


def test_a_measurement_is_the_same_when_it_is_made_again() -> None:
    first, again = (virtual(Case(PUBLISHED, 4, 100), 20.0) for _ in range(2))
    assert first == again


@pytest.mark.parametrize("value_bytes", [100, 10_000, 100_000])
def test_one_producer_alone(value_bytes: int) -> None:
    ours, theirs = (virtual(Case(log, 1, value_bytes), 20.0) for log in (LEADERLESS, PUBLISHED))
    assert ours.appends_a_second >= theirs.appends_a_second
    assert ours.requests_an_append <= 3


@pytest.mark.parametrize("log", LOGS)
def test_each_log_is_measured_as_tasks_and_as_processes(log: str) -> None:
    for apart in (False, True):
        assert virtual(Case(log, 2, 100, apart), 5.0, 0.5).appends > 0


def test_a_new_reader_gets_a_thousand_messages_in_three_requests() -> None:
    found: Reading = reading(1000, 100, 1000)
    assert found.requests <= 3
