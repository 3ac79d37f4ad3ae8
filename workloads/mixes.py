"""Generators of the small workloads: operations without end, and a last one of every worker."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from runs.history import Op
from workloads.interface import Draft, Turn

FINAL = "final?"  # marks the reads after the faults, as in the real tool's histories


@dataclass(frozen=True, slots=True)
class Endless:
    """Operations without end, for whoever is free: `draw` makes the next one."""

    draw: Callable[[], Draft]

    def next(self, _turn: Turn) -> Draft:
        return self.draw()

    def update(self, op: Op) -> None:
        """Nothing to learn from completions."""


def mix(random: Random, *kinds: Callable[[], Draft]) -> Endless:
    """Operations without end; each comes from one of `kinds`, all with the same odds."""

    def draw() -> Draft:
        return random.choice(kinds)()

    return Endless(draw)


class OnceEach:
    """The same operation once for every worker."""

    def __init__(self, concurrency: int, make: Callable[[], Draft]) -> None:
        self._waiting = set(range(concurrency))
        self._make = make

    def next(self, turn: Turn) -> Draft | None:
        if turn.worker not in self._waiting:
            return None
        self._waiting.discard(turn.worker)
        return self._make()

    def update(self, op: Op) -> None:
        """Nothing to learn from completions."""


def read() -> Draft:
    """Read everything."""
    return Draft("read")


def final_read() -> Draft:
    """Read everything for the last time."""
    return Draft("read", extra={FINAL: True})
