"""The machine's laws: it answers each request once, needs time only until its deadline, and never raises."""

import pytest

from leaderless.core.machine import Machine
from leaderless.core.messages import (
    Cas,
    Failure,
    Get,
    Mismatch,
    Missing,
    Ok,
    Reply,
    Request,
    Send,
    SendOk,
    StoreAnswer,
    StoreCall,
    TimePassed,
)
from leaderless.core.process import Process
from leaderless.core.strategies.cas import CasLog
from leaderless.core.strategy import Clock, Identity

REQUEST = Request("c1", 1)
SEND = Send(REQUEST, "k", "x")
IDENTITY = Identity("n0", ("n0",), "n0.a")


@pytest.fixture
def machine() -> Machine:
    return Machine(CasLog(IDENTITY), store_timeout_s=1.0)


def test_a_send(machine: Machine) -> None:
    entry = ["n0.a", 0, "x"]
    assert machine.step(SEND, 0.0) == [StoreCall(1, Cas("log/k", [], [entry], create=True))]
    assert machine.step(StoreAnswer(1, Mismatch()), 0.1) == [StoreCall(2, Get("log/k"))]
    other = ["n1.b", 0, "y"]
    assert machine.step(StoreAnswer(2, Ok([other])), 0.2) == [
        StoreCall(3, Cas("log/k", [other], [other, entry]))
    ]
    assert machine.step(StoreAnswer(3, Ok()), 0.3) == [Reply(REQUEST, SendOk(1))]


def test_the_same_events_give_the_same_effects() -> None:
    events = [(SEND, 0.0), (StoreAnswer(1, Missing()), 0.5), (TimePassed(), 1.5), (SEND, 1.6)]
    machines = [Machine(CasLog(IDENTITY)) for _ in range(2)]
    first, second = ([machine.step(*event) for event in events] for machine in machines)
    assert first == second


def test_time_before_the_deadline_changes_nothing(machine: Machine) -> None:
    machine.step(SEND, 5.0)
    assert machine.deadline == 6.0
    assert machine.step(TimePassed(), 5.9) == []
    assert machine.step(TimePassed(), 6.0) == [StoreCall(2, Get("log/k"))]


def test_a_silent_store_is_an_indefinite_failure(machine: Machine) -> None:
    effects = machine.step(SEND, 0.0)
    while isinstance(effects[0], StoreCall):
        effects = machine.step(TimePassed(), machine.deadline)
    [reply] = effects
    assert (reply.request, reply.answer.error, machine.deadline) == (REQUEST, "timeout", None)
    assert "log/k" in reply.answer.text


def test_a_strategy_that_fails_is_an_indefinite_failure() -> None:
    class Failing:
        def serve(self, event: object) -> Process:
            yield Get("a")
            raise ValueError("no luck")

    machine = Machine(Failing())
    machine.step(SEND, 0.0)
    assert machine.step(StoreAnswer(1, Ok()), 0.0) == [
        Reply(REQUEST, Failure("crash", "ValueError: no luck"))
    ]


def test_calls_are_numbered_apart() -> None:
    [effect] = Machine(CasLog(IDENTITY), calls_from=10**15).step(SEND, 0.0)
    assert effect.call == 10**15 + 1


def test_a_strategys_clock_is_set_before_each_step() -> None:
    seen, clock = [], Clock()

    class Reading:
        def serve(self, event: object) -> Process:
            seen.append(clock.now)
            yield Reply(REQUEST, SendOk(0))

    Machine(Reading(), clock=clock).step(SEND, 7.0)
    assert seen == [7.0]
