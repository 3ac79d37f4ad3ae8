"""The loop: one suite for both clocks, and what only the real one does."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from bench.loop import RealLoop, VirtualLoop

MS = 1_000_000


@pytest.fixture(params=[RealLoop, VirtualLoop])
def loop(request: pytest.FixtureRequest) -> RealLoop | VirtualLoop:
    made: RealLoop | VirtualLoop = request.param()
    return made


def run_for(loop: RealLoop | VirtualLoop, count: int, log: list[Any]) -> None:
    loop.run_until(lambda: len(log) >= count)


def test_timers_go_off_in_order_of_time_then_of_creation(loop: RealLoop | VirtualLoop) -> None:
    log: list[Any] = []
    now = loop.now_ns()
    loop.call_at(now + 3 * MS, log.append, "late")
    loop.call_at(now + MS, log.append, "first")
    loop.call_at(now + MS, log.append, "second")
    run_for(loop, 3, log)
    assert log == ["first", "second", "late"]


def test_a_timer_never_goes_off_early(loop: RealLoop | VirtualLoop) -> None:
    due, seen = loop.now_ns() + 2 * MS, []
    loop.call_at(due, lambda: seen.append(loop.now_ns()))
    run_for(loop, 1, seen)
    assert seen[0] >= due


def test_a_time_that_is_past_is_now(loop: RealLoop | VirtualLoop) -> None:
    log: list[int] = []
    loop.call_at(-1, log.append, 1)
    run_for(loop, 1, log)


def test_soon_is_the_end_of_the_turn_and_may_be_asked_for_from_there(
    loop: RealLoop | VirtualLoop,
) -> None:
    log: list[str] = []

    def soon() -> None:
        log.append("soon")
        loop.call_soon(lambda: log.append("sooner"))

    def timer() -> None:
        loop.call_soon(soon)
        log.append("timer")

    loop.call_at(loop.now_ns() + 1, timer)
    run_for(loop, 3, log)
    assert log == ["timer", "soon", "sooner"]


def test_virtual_time_stands_still_inside_callbacks_and_jumps_between_them() -> None:
    loop, seen = VirtualLoop(), []
    loop.call_at(10**15, lambda: seen.append(loop.now_ns()))
    loop.call_at(5, lambda: seen.append(loop.now_ns()))
    run_for(loop, 2, seen)
    assert seen == [5, 10**15]


def test_a_virtual_run_that_waits_for_nothing_is_a_deadlock() -> None:
    with pytest.raises(RuntimeError, match="deadlock"):
        VirtualLoop().run_until(lambda: False)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_descriptors_are_watched_until_told_otherwise(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    loop, log = RealLoop(), []
    loop.watch(reader, lambda: log.append(os.read(reader, 10)), None)
    os.write(writer, b"one")
    run_for(loop, 1, log)
    loop.watch(reader, None, None)
    loop.watch(reader, None, None)  # twice is no error
    os.write(writer, b"two")
    loop.call_at(loop.now_ns() + MS, log.append, "timer")
    run_for(loop, 2, log)
    assert log == [b"one", "timer"]
    loop.close()


def test_a_descriptor_can_be_watched_for_room(pipe: tuple[int, int]) -> None:
    loop, log = RealLoop(), []
    loop.watch(pipe[1], None, lambda: log.append("room"))
    run_for(loop, 1, log)
    loop.close()
