"""Which records a reader wants: keys, and ranges of numbers, as its options ask for.

Spark offers its filters, too, but they stick to a frame (docs/log/table-in-spark.md), so no reader takes them.
"""

from functools import reduce
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from leaderless.table.parquet import Group

NUMBERS = ("offset", "slot")


class Range(NamedTuple):
    """Numbers from `first` to `last`, both inclusive; it is empty when `first` is larger."""

    first: int = 0
    last: int = 2**63 - 1

    def meet(self, other: "Range") -> "Range":
        """The numbers that are in both."""
        return Range(max(self.first, other.first), min(self.last, other.last))

    def covers(self, other: "Range") -> bool:
        """Whether all numbers of `other` are in this one."""
        return self.first <= other.first and other.last <= self.last


ALL = Range()


class Predicate(NamedTuple):
    """Records of `keys` (None: of all), whose offset and slot are in these ranges.

    `large`: only those whose value stands in an object of its own.
    """

    keys: frozenset[str] | None = None
    offset: Range = ALL
    slot: Range = ALL
    large: bool = False

    @property
    def empty(self) -> bool:
        """Whether no record can be wanted."""
        return self.keys == frozenset() or any(
            each.first > each.last for each in (self.offset, self.slot)
        )

    @property
    def columns(self) -> set[str]:
        """The columns that `select` looks at."""
        restricted = {
            "message": self.large,
            "key": self.keys is not None,
            "offset": self.offset != ALL,
            "slot": self.slot != ALL,
        }
        return {name for name, looked_at in restricted.items() if looked_at}

    def may_hold(self, keys: tuple[str, str] | None) -> bool:
        """Whether a file whose keys are from the first to the last one may have wanted records."""
        if self.keys is None or keys is None:
            return True
        return any(keys[0] <= key <= keys[1] for key in self.keys)

    def may_have(self, group: Group) -> bool:
        """Whether a row group may have wanted records, by its statistics."""
        spans = (self.offset, group.offsets), (self.slot, group.slots)
        return self.may_hold(group.keys) and all(
            wanted.first <= high and low <= wanted.last for wanted, (low, high) in spans
        )

    def select(self, table: pa.Table) -> pa.Table:
        """The wanted rows of a table."""
        masks = [pc.is_valid(table["message"])] if self.large else []
        if self.keys is not None:
            masks.append(pc.is_in(table["key"], pa.array(sorted(self.keys), pa.string())))
        for column, numbers in zip(NUMBERS, (self.offset, self.slot), strict=True):
            if numbers.first > ALL.first:
                masks.append(pc.greater_equal(table[column], numbers.first))
            if numbers.last < ALL.last:
                masks.append(pc.less_equal(table[column], numbers.last))
        return table.filter(reduce(pc.and_, masks)) if masks else table
