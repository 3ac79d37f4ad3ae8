"""What strategies have in common: the copy in memory, sends in turn, strategies that do not listen."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderless.core.coordination import StoreSilent
from leaderless.core.machine import Machine
from leaderless.core.messages import (
    Failure,
    Get,
    HandOver,
    Ok,
    Reason,
    Reply,
    Request,
    Send,
    SendOk,
    Share,
    StoreAnswer,
)
from leaderless.core.pace import Pace
from leaderless.core.process import Process
from leaderless.core.scheduler import Scheduler
from leaderless.core.strategies import STRATEGIES
from leaderless.core.strategies.serving import Copy, InTurn
from leaderless.core.strategy import Clock, Context, Identity, Options
from leaderless.core.timeouts import StoreTimeouts


@given(st.lists(st.tuples(st.integers(0, 9), st.integers())), st.integers(-1, 10))
def test_a_copy_is_a_sorted_map(puts: list[tuple[int, int]], start: int) -> None:
    copy = Copy()
    naive: dict[int, int] = {}
    for offset, msg in puts:
        copy.put("k", offset, msg)
        naive.setdefault(offset, msg)
    expected = [[offset, msg] for offset, msg in sorted(naive.items()) if offset >= start]
    assert copy.since({"k": start, "j": 0}) == ({"k": expected} if expected else {})


def send(number: int, key: str = "k") -> Send:
    return Send(Request("c1", number), key, number)


class OneByOne:
    """Answers a send after one store call each; raises what the store returned if that is an exception."""

    def __init__(self) -> None:
        self.processes = Scheduler(StoreTimeouts(Pace()))
        self.in_turn = InTurn(self._step)

    def _step(self, key: str, sends: list[Send]) -> Process[Any]:
        outcome = yield Get(key)
        if isinstance(outcome.value, Exception):
            raise outcome.value
        yield Reply(sends.pop(0).request, SendOk(0))

    def take(self, event: Send) -> list[Any]:
        self.processes.start(self.in_turn.send(event))
        return self.processes.take()

    def answer(self, call: int, value: Any = None) -> list[Any]:
        self.processes.answer(StoreAnswer(call, Ok(value)))
        return self.processes.take()


def test_sends_of_one_key_wait_for_each_other_and_keys_do_not() -> None:
    log = OneByOne()
    assert len(log.take(send(1))) == 1
    assert log.take(send(2)) == []
    assert len(log.take(send(3, key="j"))) == 1
    reply, call = log.answer(1)
    assert reply == Reply(Request("c1", 1), SendOk(0))
    assert call.op == Get("k")


@pytest.mark.parametrize(
    ("error", "reason"), [(StoreSilent("no"), Reason.TIMEOUT), (KeyError("owner"), Reason.CRASH)]
)
def test_a_failure_is_everybodys_and_the_next_starts_anew(error: Exception, reason: Reason) -> None:
    log = OneByOne()
    log.take(send(1))
    log.take(send(2))
    answers = [effect.answer for effect in log.answer(1, error)]
    assert [answer.reason for answer in answers if isinstance(answer, Failure)] == [reason] * 2
    assert len(log.take(send(3))) == 1
    assert log.answer(2) == [Reply(Request("c1", 3), SendOk(0))]


def machine(strategy: str) -> Machine:
    clock = Clock()
    identity = Identity("n1", ("n0", "n1"), "n1.i1")
    return Machine(STRATEGIES[strategy](Context(identity, clock, Options())), clock=clock)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_what_peers_show_is_taken_or_lost_and_never_answered(strategy: str) -> None:
    assert machine(strategy).step(Share({"k": [[3, "m"]]}), 0.0) == []


@pytest.mark.parametrize("strategy", ["cas", "leader", "prefetch", "prefetch-sealed"])
def test_a_batch_of_a_peer_is_not_taken(strategy: str) -> None:
    batch: Any = None
    reply: Any
    (reply,) = machine(strategy).step(HandOver(Request("n0", 1), 0, batch), 0.0)
    assert reply.answer.reason is Reason.NOT_SUPPORTED
