"""What a message costs a node, counted in Python calls: no load of the machine changes that figure."""

import pytest

from performance.calls import calls_a_message


@pytest.mark.parametrize(
    ("strategy", "in_flight", "most"),
    [("cas", 64, 16), ("cas", 1, 19), ("leaderless", 64, 21), ("leaderless", 1, 55)],
)
def test_a_message_takes_few_calls(strategy: str, in_flight: int, most: int) -> None:
    calls, messages = calls_a_message(strategy, in_flight, 1_000)
    assert messages > 1_000
    assert calls < most
