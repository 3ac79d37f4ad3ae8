"""The machine's laws: it answers each request once, needs time only until its deadline, and never raises."""

from typing import Any

import pytest

from leaderless.core.coordination import InvariantBroken, failure_of
from leaderless.core.limits import Limits
from leaderless.core.machine import Machine
from leaderless.core.messages import (
    Batch,
    Failure,
    Get,
    HandOver,
    Ok,
    Reason,
    Reply,
    Request,
    RequestEvent,
    Send,
    SendOk,
    StoreAnswer,
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


def test_a_request_that_breaks_an_invariant_may_have_happened() -> None:
    broken = failure_of(InvariantBroken("ViewIsPrefix: slot 4 after 3"))
    assert broken == Failure(Reason.BROKEN, "ViewIsPrefix: slot 4 after 3")


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
