"""Processes: how generators wait, side by side, what ends a wait; and the values that they exchange."""

import copy
import pickle
from collections.abc import Callable
from typing import Any, get_args

import pytest

from leaderless.core.messages import (
    Cas,
    Get,
    Ok,
    PeerAnswer,
    Reply,
    Request,
    Send,
    SendOk,
    StoreAnswer,
    StoreCall,
    Unknown,
)
from leaderless.core.pace import Pace
from leaderless.core.process import Gather, Notify, Process, Signal, Sleep, Spawn, Trap, Wait
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


def child(trap: Any, result: Any) -> Process[Any]:
    yield trap
    if isinstance(result, Exception):
        raise result
    return result


def test_a_call_is_resumed_with_its_outcome(processes: Scheduler) -> None:
    log: list[Any] = []
    processes.start(note(log, Get("a")))
    assert processes.take() == [StoreCall(1, Get("a"))]
    processes.answer(StoreAnswer(1, Ok(7)))
    assert log == [Ok(7)]
    assert (processes.take(), processes.deadline) == ([], None)


def test_a_call_is_answered_once(processes: Scheduler) -> None:
    log: list[Any] = []
    processes.start(note(log, Get("a"), Get("b")))
    for _ in range(2):
        processes.answer(StoreAnswer(1, Ok(7)))
    assert log == [Ok(7)]


def test_silence_is_unknown_and_what_comes_later_is_dropped(processes: Scheduler) -> None:
    log: list[Any] = []
    processes.start(note(log, Cas("a", 1, 2)))
    assert processes.deadline == 1.0
    processes.now = 0.999
    processes.expire()
    assert log == []
    processes.now = 1.0
    processes.expire()
    processes.answer(StoreAnswer(1, Ok()))
    assert log == [Unknown(spent=1 / Pace().store_attempts)]


def test_an_answer_in_time_leaves_no_deadline(processes: Scheduler) -> None:
    processes.start(note([], Get("a")))
    processes.now = 0.5
    processes.start(note([], Get("b")))
    processes.answer(StoreAnswer(1, Ok()))
    assert processes.deadline == 1.5


@pytest.mark.parametrize("answer", [PeerAnswer(1, None), StoreAnswer(2, Ok())])
def test_only_its_own_answer_ends_a_call(processes: Scheduler, answer: Any) -> None:
    log: list[Any] = []
    processes.start(note(log, Get("a")))
    processes.answer(answer)
    assert log == []


def test_only_time_ends_a_sleep(processes: Scheduler) -> None:
    log: list[Any] = []
    processes.start(note(log, Sleep(3.0)))
    for answer in (StoreAnswer(1, Ok()), PeerAnswer(1, None)):
        processes.answer(answer)
    assert (log, processes.deadline) == ([], 3.0)
    processes.now = 3.0
    processes.expire()
    assert log == [None]


def test_calls_count_from_where_they_are_told(processes: Scheduler) -> None:
    processes = Scheduler(StoreTimeouts(Pace()), calls_from=40)
    processes.start(note([], Get("a")))
    assert processes.take() == [StoreCall(41, Get("a"))]


def test_answers_are_emitted_at_once(processes: Scheduler) -> None:
    processes.start(note([], ANSWER, ANSWER))
    assert processes.take() == [ANSWER, ANSWER]


def test_children_run_side_by_side_and_results_keep_their_order(processes: Scheduler) -> None:
    log: list[Any] = []
    processes.start(note(log, Gather([child(Get(key), key) for key in "ab"])))
    assert processes.take() == [StoreCall(1, Get("a")), StoreCall(2, Get("b"))]
    processes.answer(StoreAnswer(2, Ok()))
    assert log == []
    processes.answer(StoreAnswer(1, Ok()))
    assert log == [["a", "b"]]


@pytest.mark.parametrize("children", [[], [child(ANSWER, "done")]])
def test_children_that_wait_for_nothing(processes: Scheduler, children: list[Process[Any]]) -> None:
    log: list[Any] = []
    processes.start(note(log, Gather(children)))
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
    early: list[Any] = []
    late: list[Any] = []
    processes.start(note(early, Wait(signal)))
    assert early == []
    processes.start(note([], Notify(signal)))
    processes.start(note(late, Wait(signal)))
    assert (early, late) == ([None], [None])


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


# ---------------------------------------------------------------- values


REQUEST = Request("c1", 7)


def test_values_are_equal_by_class_and_fields() -> None:
    assert Send(REQUEST, "k", [1]) == Send(REQUEST, "k", [1], 0)
    assert Send(REQUEST, "k", [1]) != Send(REQUEST, "k", [2])
    assert len({SendOk(1), Ok(1)}) == 2
    assert hash(Get("a")) == hash(Get("a"))
    assert len({Get("a"), Get("a"), Get("b")}) == 2


def test_defaults_and_names() -> None:
    assert Ok().value is None
    assert Cas("a", None, 1).create is False
    assert StoreCall(call=3, op=Get(key="a")) == StoreCall(3, Get("a"))
    with pytest.raises(TypeError):
        SendOk()  # type: ignore[call-arg]


def test_a_match_finds_the_fields_in_their_order() -> None:
    match Reply(REQUEST, SendOk(4)):
        case Reply(Request(src, _), SendOk(offset)):
            assert (src, offset) == ("c1", 4)
        case other:
            pytest.fail(f"no match: {other}")


def test_a_value_shows_its_fields_and_has_no_others() -> None:
    shown = f"Send(request={REQUEST!r}, key='k', msg=1, size=8, epoch=None)"
    assert repr(Send(REQUEST, "k", 1, 8)) == shown
    with pytest.raises(AttributeError):
        Get("a").other = 1  # type: ignore[attr-defined]


def pickled(value: StoreCall) -> StoreCall:
    again: StoreCall = pickle.loads(pickle.dumps(value))  # noqa: S301
    return again


@pytest.mark.parametrize("again", [copy.deepcopy, pickled])
def test_a_copy_is_equal(again: Callable[[StoreCall], StoreCall]) -> None:
    value = StoreCall(3, Cas("a", None, {"b": [1]}, True))
    assert again(value) == value


def test_the_scheduler_knows_each_trap() -> None:
    assert Scheduler(StoreTimeouts(Pace()))._handlers.keys() == {*get_args(Trap)}
