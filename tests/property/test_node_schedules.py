"""Nodes under any schedule: answers late, lost, reordered; timeouts; restarts. Clients must not notice.

A schedule is a list of steps; those that name a message in flight count modulo what is in flight, so that
every list is a schedule and shrinks well. After it the network heals, everything is read through every node,
and the oracle judges all that clients saw.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from leaderless.core.messages import (
    Cas,
    CommitOffsetsOk,
    Failure,
    Ok,
    PollOk,
    Put,
    Reply,
    SendOk,
    Unknown,
)
from leaderless.core.process import Process
from leaderless.core.strategies.cas import CasLog
from tests.cluster import Cluster, Flying
from tests.oracle import Operation, judge

# Shrinking may take minutes; HYPOTHESIS_SHRINK=1 asks for it.
PHASES = [
    phase for phase in Phase if os.environ.get("HYPOTHESIS_SHRINK") or phase is not Phase.shrink
]
NODES = ["n0", "n1", "n2"]
KEYS = ["j", "k"]


class Step(NamedTuple):
    """One thing that happens; what `which` and `offset` mean depends on `kind`."""

    kind: str
    which: int = 0
    offset: int = 0


STEPS = st.builds(
    Step,
    # Repeated kinds are likelier: most messages arrive, and time passes seldom.
    st.sampled_from(
        ["send", "send", "send", "poll", "commit", "list", "restart", "wait"]
        + ["deliver"] * 8
        + ["drop"] * 2
    ),
    st.integers(0, 11),
    st.integers(0, 3),
)
# A list is twice its least size on average; short ones show nothing.
SCHEDULES = st.lists(STEPS, min_size=25, max_size=80)


class Run:
    """Carries a schedule out and writes down what clients see."""

    def __init__(self, strategy: Any) -> None:
        self.cluster = Cluster(NODES, strategy)
        self.operations: dict[int, Operation] = {}
        self._asked: dict[int, str] = {}  # who was asked, by msg_id, while it is unanswered
        self._places = 0
        self._seen = len(self.cluster.to_clients)
        self._do: dict[str, Callable[[Step], Any]] = {
            "send": lambda step: self.ask(step.which, self._send_body(step)),
            "poll": lambda step: self.ask(step.which, _poll_body(step.offset)),
            "commit": lambda step: self.ask(step.which, _commit_body(step)),
            "list": lambda step: self.ask(step.which, _list_body()),
            "restart": self._restart,
            "wait": lambda step: self.cluster.pass_time(0.3 * (1 + step.which % 4)),
            "deliver": lambda step: self._with_flying(step, self.cluster.deliver),
            "drop": lambda step: self._with_flying(step, self.cluster.drop),
        }

    def step(self, step: Step) -> None:
        """Carry one step out."""
        self._do[step.kind](step)
        self._note_replies()

    def heal(self) -> None:
        """Deliver everything until every request is answered whose node still runs."""
        for _ in range(40):
            self.cluster.settle()
            self._note_replies()
            if not self._asked:
                return
            self.cluster.pass_time(1.0)
        raise AssertionError(f"unanswered: {[self.operations[msg_id] for msg_id in self._asked]}")

    def ask(self, node: int, body: dict[str, Any]) -> None:
        """A request to one node."""
        name = NODES[node % len(NODES)]
        self.cluster.request("c1", name, body)
        msg_id = self.cluster.last_msg_id
        self._asked[msg_id] = name
        self.operations[msg_id] = Operation(self._place(), body)
        self._note_replies()

    def _send_body(self, step: Step) -> dict[str, Any]:
        return {"type": "send", "key": KEYS[step.offset % 2], "msg": len(self.operations)}

    def _restart(self, step: Step) -> None:
        node = NODES[step.which % len(NODES)]
        self._asked = {msg_id: name for msg_id, name in self._asked.items() if name != node}
        self.cluster.start(node)

    def _with_flying(self, step: Step, do: Callable[[int], Any]) -> None:
        flying = list(self.cluster.flying)
        if flying:
            do(flying[step.which % len(flying)])

    def _note_replies(self) -> None:
        for reply in self.cluster.to_clients[self._seen :]:
            if reply.body["type"] != "init_ok":
                self._replied(reply)
        self._seen = len(self.cluster.to_clients)

    def _replied(self, reply: Flying) -> None:
        msg_id = reply.body["in_reply_to"]
        assert self._asked.pop(msg_id, None), f"answered twice, or by a dead node: {reply}"
        operation = self.operations[msg_id]
        self.operations[msg_id] = operation._replace(replied=self._place(), reply=reply.body)

    def _place(self) -> int:
        self._places += 1
        return self._places


def _poll_body(offset: int) -> dict[str, Any]:
    return {"type": "poll", "offsets": dict.fromkeys(KEYS, offset)}


def _commit_body(step: Step) -> dict[str, Any]:
    return {"type": "commit_offsets", "offsets": {KEYS[step.offset % 2]: step.which}}


def _list_body() -> dict[str, Any]:
    return {"type": "list_committed_offsets", "keys": KEYS}


def breaches(schedule: list[Step], strategy: Any) -> list[str]:
    """What the oracle says of a schedule on a strategy."""
    run = Run(strategy)
    for step in schedule:
        run.step(step)
    run.heal()
    for node in range(len(NODES)):
        run.ask(node, _poll_body(0))
        run.ask(node, _list_body())
        run.heal()
    return judge(list(run.operations.values()), commits_may_lag=strategy == "leaderless")


@pytest.mark.parametrize("strategy", ["cas", "leaderless"])
def test_clients_notice_nothing(strategy: str) -> None:
    @settings(max_examples=200, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])
    @given(SCHEDULES)
    def check(schedule: list[Step]) -> None:
        assert breaches(schedule, strategy) == []

    check()


class SendsBlindly(CasLog):
    """Broken: takes silence for failure and appends again under a new identity."""

    def _send(self, event: Any) -> Process:
        while True:
            entry = [self._writer, next(self._numbers), event.msg]
            log = yield from self._read(event.key)
            outcome = yield Cas(f"log/{event.key}", log, [*log, entry], create=not log)
            if isinstance(outcome, Ok):
                yield Reply(event.request, SendOk(len(log)))
                return


class SendsHopefully(CasLog):
    """Broken: takes silence for success."""

    def _send(self, event: Any) -> Process:
        while True:
            entry = [self._writer, next(self._numbers), event.msg]
            log = yield from self._read(event.key)
            outcome = yield Cas(f"log/{event.key}", log, [*log, entry], create=not log)
            if isinstance(outcome, Ok | Unknown):
                yield Reply(event.request, SendOk(len(log)))
                return


class PollsFromMemory(CasLog):
    """Broken: answers a poll without asking the store."""

    def _poll(self, event: Any) -> Process:
        msgs = {
            key: [[offset, log[offset][2]] for offset in range(start, len(log))]
            for key, start in event.offsets.items()
            if len(log := self._seen.get(key, [])) > start
        }
        yield Reply(event.request, PollOk(msgs))


class CommitsBackwards(CasLog):
    """Broken: the last commit wins, also over a higher one."""

    def _commit_offsets(self, event: Any) -> Process:
        for key, offset in event.offsets.items():
            yield Put(f"committed/{key}", offset)
        yield Reply(event.request, CommitOffsetsOk())


class RefusesTooSoon(CasLog):
    """Broken: says that nothing happened when it does not know."""

    def _send(self, event: Any) -> Process:
        log = yield from self._read(event.key)
        entry = [self._writer, next(self._numbers), event.msg]
        outcome = yield Cas(f"log/{event.key}", log, [*log, entry], create=not log)
        happened = isinstance(outcome, Ok)
        answer = SendOk(len(log)) if happened else Failure("temporarily-unavailable", "no luck")
        yield Reply(event.request, answer)


BROKEN = [SendsBlindly, SendsHopefully, PollsFromMemory, CommitsBackwards, RefusesTooSoon]


@pytest.mark.parametrize("broken", BROKEN)
def test_the_oracle_catches_broken_strategies(broken: type[CasLog]) -> None:
    try:
        schedule = find(
            SCHEDULES,
            lambda schedule: bool(breaches(schedule, lambda context: broken(context.identity))),
            settings=settings(max_examples=2_000, phases=[Phase.generate]),
        )
    except NoSuchExample:
        pytest.fail(f"no schedule shows what is wrong with {broken.__name__}")
    assert breaches(schedule, lambda context: broken(context.identity))
