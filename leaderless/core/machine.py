"""The protocol as one value machine: `step(event, now) -> effects`. It hosts a strategy, without I/O.

A session of a node (`leaderless.runtime.session`) gives it lines, and a program gives it calls
(`leaderless.hosting.host`).

Laws: `step` never waits, never reads a clock, never raises for any event; `now` never runs backwards; the
same events at the same times give the same effects. Every request is answered at most once. A client of a node
is answered in time or never: it gets an indefinite error shortly before its patience ends, and nothing after
that. A caller in a program does not leave, so it is always answered: with that error, however late.
The driver of the machine carries out the effects in order and calls `step(TimePassed(), now)` when
`deadline` has come.
"""

from collections import deque
from math import inf
from typing import Any

from leaderless.core.limits import Limits
from leaderless.core.messages import (
    Effect,
    Event,
    Failure,
    HandOver,
    PeerAnswer,
    Reason,
    Reply,
    Request,
    Share,
    StoreAnswer,
    TimePassed,
)
from leaderless.core.pace import Pace
from leaderless.core.process import Process
from leaderless.core.scheduler import Scheduler
from leaderless.core.strategy import Clock, Listener, Strategy
from leaderless.core.timeouts import StoreTimeouts


class Machine:
    """Dispatches events to the strategy's processes, and runs other processes beside them.

    `deadline`: the time at which `TimePassed` is next needed, in seconds, or None.

    `limits`: for how long a client waits; `clock`: the one that all processes read; `scheduler`: runs them;
    `clients_leave`: whether a client that waited too long is gone.
    """

    def __init__(
        self,
        strategy: Strategy,
        limits: Limits | None = None,
        clock: Clock | None = None,
        scheduler: Scheduler | None = None,
        *,
        clients_leave: bool = True,
    ) -> None:
        self._strategy = strategy
        self.clock: Clock = clock or Clock()
        self._scheduler = scheduler or Scheduler(StoreTimeouts(Pace()))
        self._answers = Answers(limits or Limits(), clients_leave)
        self.deadline: float | None = None

    def step(
        self, event: Event, now: float, arrived_at: float | None = None, *, more: bool = False
    ) -> list[Effect]:
        """Take one event at time `now` (seconds) and return what is to be done, in order.

        `arrived_at` is when a request may have arrived at the earliest, if that is before `now`. `more`: what
        came together with this event follows. Until it does, `deadline` may be `now`.
        """
        answers, scheduler = self._answers, self._scheduler
        effects: list[Effect] = [*answers.expire(now)] if answers.due <= now else []
        scheduler.now = self.clock.now = now
        # A chain of single classes: `isinstance` with several in a tuple costs five times as much as with one.
        if isinstance(event, StoreAnswer):
            scheduler.answer(event)
        elif isinstance(event, TimePassed):
            scheduler.expire()
        elif isinstance(event, PeerAnswer):
            scheduler.answer(event)
        elif isinstance(event, Share):
            if isinstance(self._strategy, Listener):
                self._strategy.hear(event)
        else:
            since = now if arrived_at is None else arrived_at
            answers.expect(event.request, since, type(event) is not HandOver)
            is_old = arrived_at is not None and answers.due <= now
            if is_old:
                effects += answers.expire(now)
            if not is_old or answers.is_open(event.request):
                scheduler.start(self._strategy.serve(event), event.request)
        if not more:
            scheduler.end_turn()
        for effect in scheduler.take():
            if type(effect) is not Reply or answers.allow(effect.request):
                effects.append(effect)
        timer, answer = scheduler.deadline, answers.deadline
        if timer is None or (answer is not None and answer < timer):
            timer = answer
        self.deadline = timer
        return effects

    def run(self, process: Process[Any], now: float) -> list[Effect]:
        """Run a process that serves no request, until it waits; `step` goes on with it."""
        self._scheduler.now = self.clock.now = now
        self._scheduler.start(process)
        return self.step(TimePassed(), now)


class Answers:
    """Which requests may be answered yet, and until when.

    `due`: before that time, in seconds, `expire` has nothing to do. `clients_leave`: as of a `Machine`.
    """

    def __init__(self, limits: Limits, clients_leave: bool) -> None:
        self._answer_s = limits.answer_s
        self._gone_s = limits.gone_s if clients_leave else inf
        self._open: dict[Request, int] = {}  # how often: the network may double a request
        self._arrived: deque[tuple[float, Request]] = deque()  # of clients, in the order of arrival
        self.due: float = inf

    def expect(self, request: Request, arrived_at: float, is_client: bool) -> None:
        """Take a request; a client's times out, a peer's never does."""
        if is_client:
            self._arrived.append((arrived_at, request))
            self.due = min(self.due, arrived_at + self._answer_s)
        self._open[request] = self._open.get(request, 0) + 1

    def is_open(self, request: Request) -> bool:
        """Whether a request may be answered yet."""
        return request in self._open

    def allow(self, request: Request) -> bool:
        """Whether a request may be answered now; from then on it may not."""
        left = self._open.pop(request, 0)
        if left > 1:
            self._open[request] = left - 1
        return left > 0

    @property
    def deadline(self) -> float | None:
        """When `expire` is next needed, in seconds, or None."""
        arrived = self._arrived
        while arrived and arrived[0][1] not in self._open:
            arrived.popleft()
        self.due = arrived[0][0] + self._answer_s if arrived else inf
        return self.due if arrived else None

    def expire(self, now: float) -> list[Reply]:
        """Errors for the requests whose time is over at `now`; none for a client that is gone."""
        replies: list[Reply] = []
        while (deadline := self.deadline) is not None and deadline <= now:
            arrived_at, request = self._arrived.popleft()
            self.allow(request)
            if now < arrived_at + self._gone_s:
                text = f"no outcome within {self._answer_s:g} s; it may have happened, or may still"
                replies.append(Reply(request, Failure(Reason.TIMEOUT, text)))
        return replies
