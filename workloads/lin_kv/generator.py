"""What the clients of the lin-kv workload ask for.

Workers are split into groups of twice the node count, and each group works on one key of its own,
so that a key is contended and its history still short enough to judge. Half of a group reads; the
other half writes (one in three) or compares-and-sets (two in three), with values 0 to 4, so that
a cas often meets the value it expects. Unknown outcomes are what makes judging a key expensive, so
a key that has met 20 processes is left for a fresh one.
"""

from dataclasses import dataclass
from itertools import count
from random import Random

from runs.history import Op
from workloads.interface import Draft

_VALUES = 5
_PROCESSES_PER_KEY = 20


@dataclass(slots=True)
class _Group:
    size: int
    key: int
    processes: int


class LinKvGenerator:
    """Endless operations for `concurrency` workers on `node_count` nodes."""

    def __init__(self, random: Random, node_count: int, concurrency: int) -> None:
        self._random = random
        self._concurrency = concurrency
        self._group_size = min(2 * node_count, concurrency)
        self._keys = count()
        self._groups = [
            self._fresh(min(self._group_size, concurrency - first))
            for first in range(0, concurrency, self._group_size)
        ]

    def next(self, worker: int, now_ns: int) -> Draft:  # noqa: ARG002 - the seam's signature
        group = self._group(worker)
        if worker % self._group_size < group.size // 2:
            return Draft("read", [group.key, None])
        if self._random.randrange(3) == 0:
            return Draft("write", [group.key, self._value()])
        return Draft("cas", [group.key, [self._value(), self._value()]])

    def update(self, op: Op) -> None:
        """Count the process that replaces one with an unknown outcome."""
        if op.type != "info" or not isinstance(op.process, int):
            return
        worker = op.process % self._concurrency
        group = self._group(worker)
        group.processes += 1
        if group.processes > max(_PROCESSES_PER_KEY, 2 * group.size):
            self._groups[worker // self._group_size] = self._fresh(group.size)

    def _group(self, worker: int) -> _Group:
        return self._groups[worker // self._group_size]

    def _fresh(self, size: int) -> _Group:
        return _Group(size, key=next(self._keys), processes=size)

    def _value(self) -> int:
        return self._random.randrange(_VALUES)
