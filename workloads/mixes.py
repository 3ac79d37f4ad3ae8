"""Generators of the small workloads: a mix of two kinds of operation, and a last one of every worker."""

from collections.abc import Callable
from random import Random

from runs.history import Op
from workloads.interface import Draft

FINAL = "final?"  # marks the reads after the faults, as in the real tool's histories


class Mix:
    """Endless operations; each comes from one of `kinds`, all with the same odds."""

    def __init__(self, random: Random, *kinds: Callable[[], Draft]) -> None:
        self._random = random
        self._kinds = kinds

    def next(self, worker: int, now_ns: int) -> Draft:  # noqa: ARG002 - the seam's signature
        return self._random.choice(self._kinds)()

    def update(self, op: Op) -> None:
        """Nothing to learn from completions."""


class OnceEach:
    """The same operation once for every worker."""

    def __init__(self, concurrency: int, make: Callable[[], Draft]) -> None:
        self._waiting = set(range(concurrency))
        self._make = make

    def next(self, worker: int, now_ns: int) -> Draft | None:  # noqa: ARG002 - the seam's signature
        if worker not in self._waiting:
            return None
        self._waiting.discard(worker)
        return self._make()

    def update(self, op: Op) -> None:
        """Nothing to learn from completions."""


def read() -> Draft:
    """Read everything."""
    return Draft("read")


def final_read() -> Draft:
    """Read everything for the last time."""
    return Draft("read", extra={FINAL: True})
