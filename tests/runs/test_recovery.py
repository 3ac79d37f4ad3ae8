"""How long it takes after a fault until operations are as fast as before."""

from collections.abc import Callable

import pytest

from runs.faults import injections
from runs.history import NEMESIS, Op
from runs.operations import MS, Recovery, Timings, recoveries

Latency = Callable[[int], float]  # in ms, of an operation that is invoked at a ms
DEEDS = ((2_000, "pause"), (3_000, "resume"))


def found(
    latency_ms: Latency,
    until_ms: int,
    deeds: tuple[tuple[int, str], ...] = DEEDS,
    failing: tuple[int, int] = (0, 0),
    every_ms: int = 5,
) -> list[Recovery]:
    """Of a history with an operation every 5 ms, as long as `latency_ms` says at that time."""
    lines = [(at, "info", NEMESIS, f) for at, f in deeds for _ in range(2)]
    for number, at in enumerate(range(0, until_ms, every_ms)):
        kind = "fail" if failing[0] <= at < failing[1] else "ok"
        lines.append((at, "invoke", number, "send"))  # type: ignore[arg-type]
        lines.append((at + latency_ms(at), kind, number, "send"))  # type: ignore[arg-type]
    lines.sort(key=lambda line: line[0])
    history = [
        Op(index, int(at * MS), kind, process, f, {})  # type: ignore[arg-type]
        for index, (at, kind, process, f) in enumerate(lines)
    ]
    return recoveries(Timings(history), injections(history), until_ms * MS)


def between(start_ms: int, end_ms: int, latency_ms: int) -> Latency:
    return lambda at: latency_ms if start_ms <= at < end_ms else 10


PAUSES = (*DEEDS, (4_000, "pause"), (4_100, "resume"))
WITHIN = ((2_000, "pause"), (2_500, "start-loss"), (3_000, "resume"), (3_500, "stop-loss"))


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        # From the end of the fault to the first good window; twice as long is good enough, more is not.
        (found(between(2_000, 3_400, 50), 10_000), [(7_000, 400)]),
        (found(between(2_000, 3_400, 21), 10_000), [(7_000, 400)]),
        (found(between(2_000, 3_400, 20), 10_000), [(7_000, 0)]),
        # A failure is no recovery.
        (found(between(0, 0, 0), 10_000, failing=(3_000, 3_500)), [(7_000, 500)]),
        # Nothing within the time to the next fault.
        (found(between(2_000, 4_500, 500), 10_000, PAUSES), [(1_000, None), (5_900, 400)]),
        # One that ended while another was in force, and one at the end, are not watched.
        (found(between(2_000, 3_600, 50), 10_000, WITHIN), [(None, None), (6_500, 100)]),
        (found(between(0, 0, 0), 3_000), [(None, None)]),
        # Without calm there is nothing to compare with.
        (found(between(0, 0, 0), 4_000, ((0, "pause"), (3_000, "resume")), failing=(3_250, 4_000)),
         [(None, None)]),
        # A thin load can be measured, too.
        (found(between(2_000, 3_400, 50), 10_000, every_ms=200), [(7_000, 205)]),
        (found(between(0, 0, 0), 5_000, ()), []),
    ],
)  # fmt: skip
def test_recovery(story: list[Recovery], expected: list[tuple[float | None, float | None]]) -> None:
    assert story == expected
