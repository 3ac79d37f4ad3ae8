"""How long it takes after a fault until operations are as fast as before."""

from collections.abc import Callable
from typing import Any

import pytest

from runs.history import NEMESIS, Op
from runs.recovery import MS, recoveries

SOON_NS = 5_000 * MS


class Story:
    """A history told by time: an operation every 5 ms, as long as `latency_ms` says at that time."""

    def __init__(
        self,
        latency_ms: Callable[..., Any],
        until_ms: int,
        deeds: tuple[Any, ...] = (),
        kind: Callable[..., Any] = lambda _: "ok",
    ) -> None:
        lines: list[tuple[Any, Any, Any, str, Any]] = [
            (at, "info", NEMESIS, f, {}) for at, f in deeds for _ in range(2)
        ]
        for number, at in enumerate(range(0, until_ms, 5)):
            lines.append((at, "invoke", number, "send", None))
            lines.append((at + latency_ms(at), kind(at), number, "send", None))
        lines.sort(key=lambda line: line[0])
        self.history = [
            Op(index, int(at * MS), type_, process, f, value)
            for index, (at, type_, process, f, value) in enumerate(lines)
        ]


DEEDS = ((2_000, "pause"), (3_000, "resume"))


def between(start_ms: int, end_ms: int, latency_ms: int) -> Callable[..., Any]:
    return lambda at: latency_ms if start_ms <= at < end_ms else 10


def test_it_counts_from_the_end_of_the_fault_to_the_first_good_window() -> None:
    story = Story(between(2_000, 3_400, 50), 10_000, DEEDS)
    assert list(recoveries(story.history, SOON_NS)) == [("pause", 400.0)]


def test_twice_as_long_is_good_enough() -> None:
    story = Story(between(2_000, 3_400, 20), 10_000, DEEDS)
    assert list(recoveries(story.history, SOON_NS)) == [("pause", 0.0)]


def test_a_failure_is_no_recovery() -> None:
    story = Story(
        between(0, 0, 0), 10_000, DEEDS, lambda at: "fail" if 3_000 <= at < 3_500 else "ok"
    )
    assert list(recoveries(story.history, SOON_NS)) == [("pause", 500.0)]


def test_what_never_recovers_is_told() -> None:
    deeds = (*DEEDS, (4_000, "pause"), (4_100, "resume"))
    story = Story(between(2_000, 4_500, 500), 10_000, deeds)
    (_, first), (_, second) = recoveries(story.history, SOON_NS)
    assert first is None
    assert second == pytest.approx(400)


def test_a_fault_that_nothing_follows_is_not_measured() -> None:
    story = Story(between(0, 0, 0), 3_100, DEEDS)
    assert list(recoveries(story.history, SOON_NS)) == []


def test_without_calm_there_is_nothing_to_compare_with() -> None:
    story = Story(between(0, 0, 0), 4_000, ((0, "pause"), (3_000, "resume")))
    with pytest.raises(ValueError, match="far from any fault"):
        list(recoveries(story.history, SOON_NS))
