"""What a fault is: it plans, begins and ends; the nemesis says when and writes the history."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from runs.history import OpType

# Appends an operation to the history: (type, process, f, value).
Record = Callable[[OpType, str, str, Any], object]
# Called once, with what was done, as the history is to hold it.
Done = Callable[[Any], object]
Act = Callable[[Done], object]


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
        ...

    def end(self, done: Done) -> None:
        """Undo it; also called when nothing is active, as at the end of a run."""
        ...
