"""Who does what, and when, in a synthetic history.

The worker, kind and time of each operation follow from its number by arithmetic. Worker `w` of P performs
operation `r * P + w` in round r. Rounds come in pairs. In each pair a worker polls once and sends once, in
random order. Each reader of a key polls what was sent in a pair in the next pair, or in the one after. Pairs
form eras. An era has keys of its own. At its start every worker is assigned the keys that it reads, of this
era and of the one before. In the last pairs there are no sends (`drain`).

Operation i is invoked at place `i * (P + 1)`, and completed up to P - 2 operations later, at a place that
no other has. So operations overlap, and no process has two at once.
"""

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from analysis.errors import AnalysisError

READERS = 2  # of each key
DRAIN_PAIRS = 8
PLACE_NS = 10_000  # time between two places
_KEYS_AN_ERA = 16
_LEAST_PAIRS_AN_ERA = 16


@dataclass(frozen=True)
class Layout:
    """A history's size.

    Args:
        operations: at least so many (rounded up to whole pairs).
        keys: how many are sent to.
        processes: at least 3.
        seed: of all random choices.
    """

    operations: int
    keys: int
    processes: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.processes < READERS + 1:
            raise AnalysisError(f"--processes must be at least {READERS + 1}")
        if self.keys < 1 or self.operations < 1:
            raise AnalysisError("--operations and --keys must be at least 1")

    @property
    def pairs(self) -> int:
        """Pairs of rounds, with those of the drain."""
        return max(_LEAST_PAIRS_AN_ERA + DRAIN_PAIRS, -(-self.operations // (2 * self.processes)))

    @property
    def eras(self) -> int:
        sending = self.pairs - DRAIN_PAIRS
        return max(1, min(self.keys // _KEYS_AN_ERA, sending // _LEAST_PAIRS_AN_ERA))

    @property
    def pairs_an_era(self) -> int:
        return -(-(self.pairs - DRAIN_PAIRS) // self.eras)

    @property
    def keys_an_era(self) -> int:
        return -(-self.keys // self.eras)

    def lot(self, of: int, what: str, *columns: Column) -> Column:
        """A number below `of`, chosen by a hash of `columns`."""
        return F.pmod(F.xxhash64(F.lit(self.seed), F.lit(what), *columns), F.lit(of)).cast("long")

    def operation(self, pair: Column, worker: Column, *, polls: bool) -> Column:
        """The number of the operation in which a worker polls in a pair, or does not."""
        first = self.lot(2, "order", pair, worker)
        return (2 * pair + (first if polls else 1 - first)) * self.processes + worker

    def readers(self, key: Column) -> Column:
        """The two workers that read a key."""
        first = self.lot(self.processes, "reader", key)
        further = 1 + self.lot(self.processes - 1, "further", key)
        return F.array(first, F.pmod(first + further, F.lit(self.processes)))

    def invoked_at(self, operation: Column) -> Column:
        return operation * (self.processes + 1)

    def completed_at(self, operation: Column) -> Column:
        late = self.lot(self.processes - 1, "latency", operation)
        return (operation + late) * (self.processes + 1) + 1 + late
