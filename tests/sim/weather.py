"""What becomes of a message: delays, losses, copies, and partitions between nodes."""

from collections.abc import Collection
from random import Random

from tests.sim.scenario import Scenario

LATE_S = 3.0
NS = 1_000_000_000


class Weather:
    """Draws the fate of each message from its own stream of randomness; `clear` ends all faults."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._random = Random(f"weather {scenario.seed}")
        self._clear = False
        self._island: frozenset[str] = frozenset()

    def clear(self) -> None:
        """From now on every message arrives, once and soon."""
        self._clear = True
        self._island = frozenset()

    def part(self, island: Collection[str]) -> None:
        """Cut these nodes off from the others; nobody, to join all again. The store stays reachable."""
        self._island = frozenset(island)

    def parts(self, src: str, dest: str) -> bool:
        """Whether a message between two nodes is dropped on arrival."""
        return (src in self._island) != (dest in self._island)

    def delays_ns(self) -> list[int]:
        """After how long each copy of a message arrives: none, one or two."""
        chosen = self._scenario
        if not self._clear and self._random.random() < chosen.loss:
            return []
        twice = not self._clear and self._random.random() < chosen.duplicate
        return [self._delay_ns() for _ in range(1 + twice)]

    def _delay_ns(self) -> int:
        delay_s = self._random.expovariate(1 / self._scenario.hop_ms) / 1000
        if not self._clear and self._random.random() < self._scenario.late:
            delay_s += self._random.random() * LATE_S
        return 1 + int(delay_s * NS)
