"""What operations are drawn from: mixes without end, a last operation of every worker, keys, neighbours.

A key takes so many writes, then a fresh one replaces it. Facts from elle's txn.clj: a read or a write with
equal odds; the values of a key count up from 1.

Neighbours are the real tool's arrangements. [facts: Maelstrom's workload/broadcast.clj]
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from math import isqrt
from random import Random

from workloads.interface import Draft, OpGenerator, Turn

Distribution = Callable[[int, Random], int]  # (number of keys, randomness) -> one of 0, 1, ...


def exponential(count: int, random: Random) -> int:
    """Each twice as likely as the one before."""
    # 2**n - 1 equal tickets, 2**i of them for index i: the ticket's bit length says whose it is.
    return random.randint(1, (1 << count) - 1).bit_length() - 1


def uniform(count: int, random: Random) -> int:
    """Draw each with the same odds."""
    return random.randrange(count)


def zipf(count: int, random: Random, skew: float = 2.0) -> int:
    """The odds of i fall with the power `skew` of i + 1."""
    weights = list(accumulate((i + 1) ** -skew for i in range(count)))
    return random.choices(range(count), cum_weights=weights)[0]


DISTRIBUTIONS: dict[str, Distribution] = {
    "exponential": exponential,
    "uniform": uniform,
    "zipf": zipf,
}
DEFAULT_KEY_DIST = "exponential"
DEFAULT_COUNTS = {"exponential": 10, "uniform": 3, "zipf": 10}


class Keys:
    """The active keys, and how many writes each one has had."""

    def __init__(
        self,
        key_count: int,
        max_writes: int,
        random: Random,
        draw_index: Distribution = exponential,
    ) -> None:
        self._active = list(range(key_count))
        self._writes = [0] * key_count
        self._newest = key_count - 1
        self._max_writes = max_writes
        self._random = random
        self._draw_index = draw_index

    def draw(self) -> tuple[int, int | None]:
        """Draw one micro-operation: the key, and the value to write or None for a read."""
        while True:
            write = self._random.random() < 0.5
            index = self._draw_index(len(self._active), self._random)
            if not write:
                return self._active[index], None
            if self._writes[index] < self._max_writes:
                self._writes[index] += 1
                return self._active[index], self._writes[index]
            self._newest += 1
            self._active[index] = self._newest
            self._writes[index] = 0


# ---------------------------------------------------------------- mixes of operations


FINAL = "final?"  # marks the reads after the faults, as in the real tool's histories


@dataclass(frozen=True, slots=True)
class Endless(OpGenerator):
    """Operations without end, for whoever is free: `draw` makes the next one."""

    draw: Callable[[], Draft]

    def next(self, _turn: Turn) -> Draft:
        return self.draw()


def mix(random: Random, *kinds: Callable[[], Draft]) -> Endless:
    """Operations without end; each comes from one of `kinds`, all with the same odds."""

    def draw() -> Draft:
        return random.choice(kinds)()

    return Endless(draw)


class OnceEach(OpGenerator):
    """The same operation once for every worker."""

    def __init__(self, concurrency: int, make: Callable[[], Draft]) -> None:
        self._waiting = set(range(concurrency))
        self._make = make

    def next(self, turn: Turn) -> Draft | None:
        if turn.worker not in self._waiting:
            return None
        self._waiting.discard(turn.worker)
        return self._make()


def read() -> Draft:
    """Read everything."""
    return Draft("read")


def final_read() -> Draft:
    """Read everything for the last time."""
    return Draft("read", extra={FINAL: True})


# ---------------------------------------------------------------- topologies


Neighbours = dict[str, list[str]]
Around = Callable[[int, int], list[int]]  # (number of a node, how many there are) -> its neighbours


def topology(name: str, nodes: Sequence[str]) -> Neighbours:
    """The neighbours of each node in an arrangement of `TOPOLOGIES`. A line of one node is empty."""
    around, count = TOPOLOGIES[name], len(nodes)
    if name == "line" and count == 1:
        return {}
    return {node: [nodes[other] for other in around(at, count)] for at, node in enumerate(nodes)}


def _in_grid(number: int, count: int) -> list[int]:
    """Rows of a square that is just large enough; each node has at most four neighbours."""
    width = isqrt(count - 1) + 1
    column = number % width
    beside = [
        *(number + width, number - width),
        *([number + 1] if column + 1 < width else []),
        *([number - 1] if column else []),
    ]
    return [other for other in beside if 0 <= other < count]


def _in_tree(branches: int, number: int, count: int) -> list[int]:
    """Each node has its parent, then its children, of which there are at most so many."""
    first = number * branches + 1
    children = range(first, min(first + branches, count))
    return [*([(number - 1) // branches] if number else []), *children]


TOPOLOGIES: dict[str, Around] = {
    "line": partial(_in_tree, 1),
    "grid": _in_grid,
    "total": lambda number, count: [other for other in range(count) if other != number],
    "tree": partial(_in_tree, 2),
    "tree2": partial(_in_tree, 2),
    "tree3": partial(_in_tree, 3),
    "tree4": partial(_in_tree, 4),
}
