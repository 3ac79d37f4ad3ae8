"""What a message and a lone operation cost, counted in Python calls: no load changes that."""

import pytest
from click.testing import CliRunner

from leaderless.store.memory import MemoryStore
from performance import calls
from performance.calls import BOUNDS, calls_a_message, figures_of, passed, trail_of


@pytest.mark.parametrize(
    ("strategy", "in_flight", "most"),
    [("cas", 64, 16), ("cas", 1, 19), ("leaderless", 64, 21), ("leaderless", 1, 55)],
)
def test_a_message_takes_few_calls(strategy: str, in_flight: int, most: int) -> None:
    calls, messages = calls_a_message(strategy, in_flight, 1_000)
    assert messages > 1_000
    assert calls < most


@pytest.mark.parametrize("name", BOUNDS)
def test_no_figure_of_a_trail_passes_its_bound(name: str) -> None:
    trail = trail_of(name)
    assert trail_of(name) == trail
    above = passed(name, figures_of(trail))
    assert not above, "\n".join(above)


def test_the_trail_of_an_append_ends_where_the_store_writes() -> None:
    *before, last = trail_of("append")
    assert last is MemoryStore.compare_and_set.__code__
    assert last not in before


def test_a_passed_bound_is_named_and_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = figures_of(trail_of("send, cas"))
    monkeypatch.setitem(BOUNDS, "send, cas", measured._replace(calls=measured.calls - 1))
    text = f"send, cas: {measured.calls} calls, and the bound is {measured.calls - 1}"
    assert passed("send, cas", measured) == [text]
    ran = CliRunner().invoke(calls.main, ["--requests", "100", "--trail"])
    assert ran.exit_code == 1
    assert text in ran.output
    assert "\nruntime/session.py: " in ran.output
