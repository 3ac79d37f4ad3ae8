"""The node's protocol as one value machine: `step(event, now) -> effects`.

Laws: `step` never waits, never reads a clock, never raises for any event; `now` never runs backwards; the
same events at the same times give the same effects. Every request is answered at most once. Whoever drives
the machine carries out the effects in order and calls `step(TimePassed(), now)` when `deadline` has come.
"""

from leaderless.core.limits import Limits
from leaderless.core.messages import (
    Effect,
    Event,
    PeerAnswer,
    Share,
    StoreAnswer,
    TimePassed,
)
from leaderless.core.scheduler import Scheduler
from leaderless.core.strategy import Clock, Listener, Strategy, Trace


class Machine:
    """Dispatches events to the strategy's processes.

    `trace`: the one that the strategy writes;
    `store_timeout_s`: how long a store call may take before its outcome is `Unknown`; `clock`: the one
    that the strategy reads; `calls_from`: calls are numbered from here, far from the numbers of any other
    start of this node, or an answer meant for a dead start would answer a call of this one.
    """

    def __init__(
        self,
        strategy: Strategy,
        store_timeout_s: float = Limits().store_timeout_s,
        clock: Clock | None = None,
        calls_from: int = 0,
        trace: Trace | None = None,
    ) -> None:
        self._strategy = strategy
        self._clock = clock or Clock()
        self._trace = trace or Trace()
        self._scheduler = Scheduler(store_timeout_s, calls_from)

    @property
    def deadline(self) -> float | None:
        """The time at which `TimePassed` is next needed, in seconds, or None."""
        return self._scheduler.deadline

    def step(self, event: Event, now: float) -> list[Effect]:
        """Take one event at time `now` (seconds) and return what is to be done, in order."""
        scheduler = self._scheduler
        scheduler.now = self._clock.now = now
        match event:
            case StoreAnswer() | PeerAnswer():
                scheduler.answer(event)
            case TimePassed():
                scheduler.expire()
            case Share():
                if isinstance(self._strategy, Listener):
                    self._strategy.hear(event)
            case _:
                scheduler.start(self._strategy.serve(event), event.request)
        steps = self._trace.take()
        return [*steps, *scheduler.take()] if steps else scheduler.take()
