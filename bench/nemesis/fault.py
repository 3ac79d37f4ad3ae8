"""What a fault is, and how it comes and goes.

A fault plans, begins and ends; `choose_targets` draws the nodes that it affects (`--nemesis-targets`). Each
alternates between beginning and ending; the time from the end of one turn to the next is drawn uniformly from 0
to twice the interval, from a stream of its own. So adding a fault leaves the others as they were.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Protocol

from bench.loop import Loop
from runs.faults import OPERATIONS
from runs.history import NEMESIS, OpType

# Appends an operation to the history: (type, process, f, value).
Record = Callable[[OpType, str, str, Any], object]
# Called once, with the effect, in the form that the history has.
Done = Callable[[Any], object]
Act = Callable[[Done], object]
Choose = Callable[[Sequence[str], Random], list[str]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a fault is about to do: `intent` for the history, and `act`, which does it."""

    intent: Any
    act: Act


class Fault(Protocol):
    """One kind of fault. It begins and ends in turns, never twice at once.

    All chance comes from the stream handed to `plan`, so that the same seed gives the same faults.
    """

    name: str
    possible: bool = True  # False once it is known that these nodes cannot have it

    def plan(self, random: Random) -> Plan:
        """Choose how to begin next."""

    def end(self, done: Done) -> None:
        """Undo it; also called when nothing is active, as at the end of a run."""


def _sample(size: Callable[[int, Random], int]) -> Choose:
    """Nodes by number, in their own order; at least one."""

    def choose(nodes: Sequence[str], random: Random) -> list[str]:
        chosen = set(random.sample(nodes, max(1, size(len(nodes), random))))
        return [node for node in nodes if node in chosen]

    return choose


TARGETS: Mapping[str, Choose] = {
    "one": _sample(lambda *_: 1),
    "minority": _sample(lambda count, _: (count - 1) // 2),
    "majority": _sample(lambda count, _: count // 2 + 1),
    "all": lambda nodes, _: list(nodes),
    "random": _sample(lambda count, random: random.randint(1, count)),
}
MIXED = "mixed"  # any of them, drawn anew each time
TARGET_WORDS = (*TARGETS, MIXED)


def choose_targets(word: str, nodes: Sequence[str], random: Random) -> tuple[str, list[str]]:
    """The word that was meant (`mixed` becomes one of the others), and the nodes."""
    meant = random.choice(list(TARGETS)) if word == MIXED else word
    return meant, TARGETS[meant](nodes, random)


# ---------------------------------------------------------------- the schedule of faults


@dataclass(eq=False)
class Turns:
    """Runs one fault on a loop from `start` until `stop`, again and again, and records what it does.

    After `stop`, `over` tells when it has ended.
    """

    fault: Fault
    loop: Loop
    interval_ns: int
    random: Random
    record: Record
    active: bool = False
    over: bool = False
    _limit_ns: int = 0
    _busy: bool = False  # a deed was begun and is not done
    _stopping: bool = False

    def start(self, limit_s: float) -> None:
        """Begin to take turns. A partition starts at once, as the real tool's does; others wait a turn."""
        self._limit_ns = self.loop.now_ns() + int(limit_s * 1e9)
        if self.fault.name == "partition":
            self.loop.call_soon(self._turn)
        else:
            self._wait()

    def stop(self) -> None:
        """End the fault, and take no turn any more."""
        self._stopping = True
        if not (self._busy or self.over):
            self._end()

    def _wait(self) -> None:
        self.loop.call_later(int(self.random.random() * 2 * self.interval_ns), self._turn)

    def _turn(self) -> None:
        if self._stopping or self.loop.now_ns() >= self._limit_ns:
            return
        if self.active:
            self._end()
        else:
            self._begin()

    def _begin(self) -> None:
        plan = self.fault.plan(self.random)
        self.active = self._busy = True
        f = OPERATIONS[self.fault.name][0]
        self.record("info", NEMESIS, f, plan.intent)
        plan.act(partial(self._done, f))

    def _end(self) -> None:
        self._busy = True
        f = OPERATIONS[self.fault.name][1]
        self.record("info", NEMESIS, f, None)
        self.fault.end(partial(self._ended, f))

    def _ended(self, f: str, effect: Any) -> None:
        self.active = False
        self.over = self._stopping or not self.fault.possible
        self._done(f, effect)

    def _done(self, f: str, effect: Any) -> None:
        self._busy = False
        self.record("info", NEMESIS, f, effect)
        if self.over:
            return
        if self._stopping or (self.active and not self.fault.possible):
            self._end()
        else:
            self._wait()
