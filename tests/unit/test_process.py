"""Processes: how generators wait, side by side, and what ends a wait."""

from typing import Any

import pytest

from leaderless.core.messages import (
    Cas,
    Get,
    Ok,
    PeerAnswer,
    Reply,
    Request,
    SendOk,
    StoreAnswer,
    StoreCall,
    Unknown,
)
from leaderless.core.pace import Pace
from leaderless.core.process import Gather, Notify, Process, Signal, Sleep, Spawn, Wait
from leaderless.core.scheduler import Scheduler
from leaderless.core.timeouts import StoreTimeouts

ANSWER = Reply(Request("c1", 1), SendOk(0))


class Broken(Exception):
    """Raised by children."""


@pytest.fixture
def processes() -> Scheduler:
    return Scheduler(StoreTimeouts(Pace()))


def note(log: list[Any], *traps: Any) -> Process[Any]:
    for trap in traps:
        outcome = yield trap
        log.append(outcome)


def begun(processes: Scheduler, *traps: Any) -> list[Any]:
    """Start a process with these traps; its outcomes, as they come."""
    log: list[Any] = []
    processes.start(note(log, *traps))
    return log


def child(trap: Any, result: Any) -> Process[Any]:
    yield trap
    if isinstance(result, Exception):
        raise result
    return result


def test_a_call_is_resumed_with_its_outcome(processes: Scheduler) -> None:
    log = begun(processes, Get("a"))
    assert processes.take() == [StoreCall(1, Get("a"))]
    processes.answer(StoreAnswer(1, Ok(7)))
    assert log == [Ok(7)]
    assert (processes.take(), processes.deadline) == ([], None)


def test_a_call_is_answered_once(processes: Scheduler) -> None:
    log = begun(processes, Get("a"), Get("b"))
    for _ in range(2):
        processes.answer(StoreAnswer(1, Ok(7)))
    assert log == [Ok(7)]


def test_silence_is_unknown_and_what_comes_later_is_dropped(processes: Scheduler) -> None:
    log = begun(processes, Cas("a", 1, 2))
    assert processes.deadline == 1.0
    processes.now = 0.999
    processes.expire()
    assert log == []
    processes.now = 1.0
    processes.expire()
    processes.answer(StoreAnswer(1, Ok()))
    assert log == [Unknown(spent=1 / Pace().store_attempts)]


def test_an_answer_in_time_leaves_no_deadline(processes: Scheduler) -> None:
    begun(processes, Get("a"))
    processes.now = 0.5
    begun(processes, Get("b"))
    processes.answer(StoreAnswer(1, Ok()))
    assert processes.deadline == 1.5


@pytest.mark.parametrize("answer", [PeerAnswer(1, None), StoreAnswer(2, Ok())])
def test_only_its_own_answer_ends_a_call(processes: Scheduler, answer: Any) -> None:
    log = begun(processes, Get("a"))
    processes.answer(answer)
    assert log == []


def test_only_time_ends_a_sleep(processes: Scheduler) -> None:
    log = begun(processes, Sleep(3.0))
    for answer in (StoreAnswer(1, Ok()), PeerAnswer(1, None)):
        processes.answer(answer)
    assert (log, processes.deadline) == ([], 3.0)
    processes.now = 3.0
    processes.expire()
    assert log == [None]


def test_calls_count_from_where_they_are_told(processes: Scheduler) -> None:
    processes = Scheduler(StoreTimeouts(Pace()), calls_from=40)
    begun(processes, Get("a"))
    assert processes.take() == [StoreCall(41, Get("a"))]


def test_answers_are_emitted_at_once(processes: Scheduler) -> None:
    begun(processes, ANSWER, ANSWER)
    assert processes.take() == [ANSWER, ANSWER]


def test_children_run_side_by_side_and_results_keep_their_order(processes: Scheduler) -> None:
    log = begun(processes, Gather([child(Get(key), key) for key in "ab"]))
    assert processes.take() == [StoreCall(1, Get("a")), StoreCall(2, Get("b"))]
    processes.answer(StoreAnswer(2, Ok()))
    assert log == []
    processes.answer(StoreAnswer(1, Ok()))
    assert log == [["a", "b"]]


@pytest.mark.parametrize("children", [[], [child(ANSWER, "done")]])
def test_children_that_wait_for_nothing(processes: Scheduler, children: list[Process[Any]]) -> None:
    log = begun(processes, Gather(children))
    assert log == [["done"] * len(children)]


def test_a_child_that_fails_ends_its_parents_wait_once(processes: Scheduler) -> None:
    log: list[Any] = []

    def parent() -> Process[Any]:
        try:
            yield Gather([child(Get("a"), Broken()), child(Get("b"), Broken())])
        except Broken:
            log.append("broken")

    processes.start(parent())
    for call in (1, 2):
        processes.answer(StoreAnswer(call, Ok()))
    assert log == ["broken"]


def test_a_signal_wakes_those_who_wait_and_does_not_hold_those_who_come_later(
    processes: Scheduler,
) -> None:
    signal = Signal()
    early = begun(processes, Wait(signal))
    assert early == []
    begun(processes, Notify(signal))
    assert (early, begun(processes, Wait(signal))) == ([None], [None])


def test_a_started_process_runs_when_its_starter_waits(processes: Scheduler) -> None:
    log: list[str] = []

    def says(name: str, *traps: Any) -> Process[Any]:
        log.append(name)
        yield from traps

    processes.start(says("first", Spawn(says("second", Spawn(says("third")))), Get("a")))
    assert log == ["first", "second", "third"]


@pytest.mark.parametrize("children", [0, 2])
def test_children_that_never_wait_take_no_stack(processes: Scheduler, children: int) -> None:
    """A `RecursionError` ended a node that read many segments which it had already."""
    rounds = 0

    def child() -> Process[int]:
        yield Notify(Signal())
        return 1

    def parent() -> Process[None]:
        nonlocal rounds
        for _ in range(5_000):
            results = yield Gather([child() for _ in range(children)])
            assert results == [1] * children
            rounds += 1

    processes.start(parent())
    assert rounds == 5_000
    assert processes.take() == []
