"""Which key the next micro-operation is about. A key takes so many writes, then a fresh one replaces it.

Facts from elle's txn.clj: a read or a write with equal odds; the values of a key count up from 1.
"""

from collections.abc import Callable
from itertools import accumulate
from random import Random

Distribution = Callable[[int, Random], int]  # (number of keys, randomness) -> one of 0, 1, ...


def exponential(count: int, random: Random) -> int:
    """Each twice as likely as the one before."""
    # 2**n - 1 equal tickets, 2**i of them for index i: the ticket's bit length says whose it is.
    return random.randint(1, (1 << count) - 1).bit_length() - 1


def uniform(count: int, random: Random) -> int:
    """All with the same odds."""
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
            self._retire(index)

    def _retire(self, index: int) -> None:
        self._newest += 1
        self._active[index] = self._newest
        self._writes[index] = 0
