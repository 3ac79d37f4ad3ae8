"""The machine's laws: it answers each request once, needs time only until its deadline, and never raises."""

from typing import Any

import pytest

from leaderless.core.limits import Limits
from leaderless.core.machine import Machine
from leaderless.core.messages import (
    Batch,
    Cas,
    Event,
    Failure,
    Get,
    HandOver,
    Json,
    Mismatch,
    Missing,
    Ok,
    Reason,
    Reply,
    Request,
    RequestEvent,
    Send,
    SendOk,
    StoreAnswer,
    StoreCall,
    TimePassed,
)
from leaderless.core.pace import Pace
from leaderless.core.process import Process, Sleep
from leaderless.core.scheduler import Scheduler
from leaderless.core.strategies.cas import CasLog
from leaderless.core.strategy import Clock, Context, Identity, Options
from leaderless.core.timeouts import StoreTimeouts

REQUEST = Request("c1", 1)
SEND = Send(REQUEST, "k", "x")
CONTEXT = Context(Identity("n0", ("n0",), "n0.a"), Clock(), Options())


@pytest.fixture
def machine() -> Machine:
    return Machine(CasLog(CONTEXT))


def test_a_send(machine: Machine) -> None:
    entry: Json = ["n0.a", 0, "x"]
    assert machine.step(SEND, 0.0) == [StoreCall(1, Cas("log/k", [], [entry], create=True))]
    assert machine.step(StoreAnswer(1, Mismatch()), 0.1) == [StoreCall(2, Get("log/k"))]
    other: Json = ["n1.b", 0, "y"]
    assert machine.step(StoreAnswer(2, Ok([other])), 0.2) == [
        StoreCall(3, Cas("log/k", [other], [other, entry]))
    ]
    assert machine.step(StoreAnswer(3, Ok()), 0.3) == [Reply(REQUEST, SendOk(1))]


def test_the_same_events_give_the_same_effects() -> None:
    events: list[tuple[Event, float]] = [
        (SEND, 0.0),
        (StoreAnswer(1, Missing()), 0.5),
        (TimePassed(), 1.5),
        (SEND, 1.6),
    ]
    machines = [Machine(CasLog(CONTEXT)) for _ in range(2)]
    first, second = ([machine.step(*event) for event in events] for machine in machines)
    assert first == second


def test_time_before_the_deadline_changes_nothing(machine: Machine) -> None:
    machine.step(SEND, 5.0)
    assert machine.deadline == 6.0
    assert machine.step(TimePassed(), 5.9) == []
    assert machine.step(TimePassed(), 6.0) == [StoreCall(2, Get("log/k"))]


def test_a_silent_store_is_an_indefinite_failure(machine: Machine) -> None:
    [effect] = machine.step(SEND, 0.0)
    while isinstance(effect, StoreCall):
        assert machine.deadline is not None
        [effect] = machine.step(TimePassed(), machine.deadline)
    reply: Any = effect
    assert (reply.request, reply.answer.reason, machine.deadline) == (REQUEST, Reason.TIMEOUT, None)
    assert "log/k" in reply.answer.text


def test_a_strategy_that_fails_is_an_indefinite_failure() -> None:
    class Failing:
        def serve(self, event: object) -> Process[Any]:
            yield Get("a")
            raise ValueError("no luck")

    machine = Machine(Failing())
    machine.step(SEND, 0.0)
    assert machine.step(StoreAnswer(1, Ok()), 0.0) == [
        Reply(REQUEST, Failure(Reason.CRASH, "ValueError: no luck"))
    ]


def test_calls_are_numbered_apart() -> None:
    [effect] = Machine(CasLog(CONTEXT), scheduler=Scheduler(StoreTimeouts(Pace()), 10**15)).step(
        SEND, 0.0
    )
    assert isinstance(effect, StoreCall)
    assert effect.call == 10**15 + 1


def test_a_strategys_clock_is_set_before_each_step() -> None:
    seen, clock = [], Clock()

    class Reading:
        def serve(self, event: object) -> Process[Any]:
            seen.append(clock.now)
            yield Reply(REQUEST, SendOk(0))

    Machine(Reading(), clock=clock).step(SEND, 7.0)
    assert seen == [7.0]


# ---------------------------------------------------------------- deadlines

LIMITS = Limits(client_patience_s=5.0)
PATIENT = Pace(store_timeout_s=60.0)
LATE = Failure(Reason.TIMEOUT, "no outcome within 4.5 s; it may have happened, or may still")


@pytest.fixture
def patient() -> Machine:
    """Its store call takes longer than any client waits."""
    return Machine(CasLog(CONTEXT), LIMITS, scheduler=Scheduler(StoreTimeouts(PATIENT)))


def test_an_indefinite_error_comes_before_the_client_is_gone(patient: Machine) -> None:
    patient.step(SEND, 10.0)
    assert patient.deadline == 14.5
    assert patient.step(TimePassed(), 14.4) == []
    assert patient.step(TimePassed(), 14.5) == [Reply(REQUEST, LATE)]


@pytest.mark.parametrize("now", [14.5, 15.1, 99.0])
def test_who_does_not_leave_is_answered_however_late(now: float) -> None:
    """A caller in a program waits for ever: also when the process was stopped meanwhile."""
    machine = Machine(
        CasLog(CONTEXT), LIMITS, scheduler=Scheduler(StoreTimeouts(PATIENT)), clients_leave=False
    )
    machine.step(SEND, 10.0)
    assert machine.step(TimePassed(), now)[0] == Reply(REQUEST, LATE)
    assert machine.step(StoreAnswer(1, Ok()), now) == []


def test_a_time_that_is_rounded_is_over_at_the_deadline(patient: Machine) -> None:
    """Else a host would wake at once again, without end on a clock that jumps to the next deadline."""
    since = next(s for s in (n / 100 for n in range(10_000)) if (s + 4.5) - 4.5 < s)
    patient.step(SEND, since)
    assert patient.deadline is not None
    assert patient.step(TimePassed(), patient.deadline) == [Reply(REQUEST, LATE)]


def test_any_process_runs_beside_the_strategy(machine: Machine) -> None:
    times: list[float] = []

    def sleeps() -> Process[None]:
        yield Sleep(machine.clock.now + 1.0)
        times.append(machine.clock.now)
        yield Get("a")

    assert machine.run(sleeps(), 7.0) == []
    assert machine.deadline == 8.0
    assert machine.step(TimePassed(), 8.0) == [StoreCall(2, Get("a"))]
    assert times == [8.0]


@pytest.mark.parametrize("now", [14.6, 15.1, 99.0])
def test_nothing_is_sent_after_it(patient: Machine, now: float) -> None:
    """One message to a client that is gone cuts a node off for ever on the real tool."""
    patient.step(SEND, 10.0)
    patient.step(TimePassed(), 14.5)
    assert patient.step(StoreAnswer(1, Ok()), now) == []


@pytest.mark.parametrize(("now", "said"), [(14.7, [Reply(REQUEST, LATE)]), (14.8, []), (15.1, [])])
def test_a_process_that_stood_still_may_say_nothing(
    patient: Machine, now: float, said: list[Reply]
) -> None:
    """The store's answer and the end of the client's patience are found together."""
    patient.step(SEND, 10.0)
    assert patient.step(StoreAnswer(1, Ok()), now) == said


def test_a_request_that_lay_in_the_pipe_is_old_when_it_is_read(patient: Machine) -> None:
    assert patient.step(SEND, 20.0, arrived_at=10.0) == []
    assert patient.step(SEND, 20.0, arrived_at=15.4) == [Reply(REQUEST, LATE)]
    assert patient.step(SEND, 20.0, arrived_at=16.0) == [
        StoreCall(1, Cas("log/k", [], [["n0.a", 0, "x"]], create=True))
    ]
    assert patient.deadline == 20.5


def test_a_doubled_request_has_two_answers(patient: Machine) -> None:
    for _ in range(2):
        patient.step(SEND, 0.0)
    answers = [patient.step(StoreAnswer(call, Ok()), 0.1) for call in (1, 2, 3)]
    assert answers == [[*answers[0]], [Reply(REQUEST, SendOk(1))], []]


def test_a_peer_may_be_answered_late() -> None:
    class Slow:
        def serve(self, event: RequestEvent) -> Process[None]:
            yield Sleep(100.0)
            yield Reply(event.request, Failure(Reason.BUSY, "too late"))

    machine = Machine(Slow(), LIMITS)
    batch = Batch("n1.a/0", 1, 0, {}, {}, 0)
    machine.step(HandOver(Request("n1", 1), 0, batch), 0.0)
    assert machine.deadline == 100.0
    assert len(machine.step(TimePassed(), 100.0)) == 1
