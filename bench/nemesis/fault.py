"""What a fault is: it plans, begins and ends; the nemesis says when and writes the history.

`choose_targets` draws the nodes that a fault affects (`--nemesis-targets`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from runs.history import OpType

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
    possible: bool  # False once it is known that these nodes cannot have it

    def plan(self, random: Random) -> Plan:
        """Choose how to begin next."""

    def end(self, done: Done) -> None:
        """Undo it; also called when nothing is active, as at the end of a run."""


def _sample(size: Callable[[int], int]) -> Choose:
    """Nodes by number, in their own order; at least one."""

    def choose(nodes: Sequence[str], random: Random) -> list[str]:
        chosen = set(random.sample(nodes, max(1, size(len(nodes)))))
        return [node for node in nodes if node in chosen]

    return choose


def _subset(nodes: Sequence[str], random: Random) -> list[str]:
    return _sample(lambda count: random.randint(1, count))(nodes, random)


TARGETS: Mapping[str, Choose] = {
    "one": _sample(lambda _: 1),
    "minority": _sample(lambda count: (count - 1) // 2),
    "majority": _sample(lambda count: count // 2 + 1),
    "all": lambda nodes, _: list(nodes),
    "random": _subset,
}
MIXED = "mixed"  # any of them, drawn anew each time
TARGET_WORDS = (*TARGETS, MIXED)


def choose_targets(word: str, nodes: Sequence[str], random: Random) -> tuple[str, list[str]]:
    """The word that was meant (`mixed` becomes one of the others), and the nodes."""
    meant = random.choice(list(TARGETS)) if word == MIXED else word
    return meant, TARGETS[meant](nodes, random)
