"""Leaves single operations and acts of faults out of a run, by their number.

Operations of clients are numbered from 0 in the order in which they are drawn, and so are the acts of faults.
An operation that is left out is drawn all the same, so the others stay as they were unless they follow from it.
"""

from collections.abc import Callable, Collection
from functools import partial
from random import Random
from typing import Any

from bench.nemesis.fault import Done, Fault, Plan
from runs.history import Keyword, Op
from workloads.interface import Draft, OpGenerator, Turn, Wait


class Acts:
    """Numbers what is drawn and says what is to be left out."""

    def __init__(self, omit: Collection[int]) -> None:
        self.count = 0
        self._omit = frozenset(omit)

    def omitted(self) -> bool:
        """Whether the next one is left out."""
        self.count += 1
        return self.count - 1 in self._omit


class OmittingGenerator:
    """A `workloads.interface.OpGenerator` without some of its operations: their turns pass.

    `gap_s`: how long a turn takes, about; the bench asks again soon when there is nothing to do.
    `idle(worker)`: whether a worker never has anything to do.
    """

    def __init__(
        self,
        generator: OpGenerator,
        acts: Acts,
        gap_s: float,
        idle: Callable[[int], bool] = lambda _worker: False,
    ) -> None:
        self._generator = generator
        self._idle = idle
        self._omitted = acts.omitted
        self._gap_ns = int(gap_s * 1e9)
        self._until_ns = 0

    def next(self, turn: Turn) -> Draft | Wait | None:
        worker, now_ns = turn
        if self._idle(worker):
            return Wait(now_ns + self._gap_ns)
        if now_ns < self._until_ns:
            return Wait(self._until_ns)
        draft = self._generator.next(turn)
        if isinstance(draft, Draft) and self._omitted():
            self._until_ns = now_ns + self._gap_ns
            return Wait(self._until_ns)
        return draft

    def update(self, op: Op) -> None:
        self._generator.update(op)


class OmittingFault:
    """A `bench.nemesis.fault.Fault` that does not do some of what it plans."""

    def __init__(self, fault: Fault, acts: Acts) -> None:
        self.name, self.possible = fault.name, fault.possible
        self._fault = fault
        self._omitted = acts.omitted

    def plan(self, random: Random) -> Plan:
        plan = self._fault.plan(random)
        return Plan(plan.intent, self._omit if self._omitted() else partial(self._act, plan))

    def end(self, done: Done) -> None:
        self._fault.end(done)

    def _act(self, plan: Plan, done: Done) -> None:
        def known(effect: Any) -> None:
            self.possible = self._fault.possible  # which one learns by trying
            done(effect)

        plan.act(known)

    def _omit(self, done: Done) -> None:
        done(Keyword("omitted"))
