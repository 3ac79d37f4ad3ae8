"""Realtime lag: how far behind the present the polls were. [jepsen.tests.kafka realtime-lag]

An offset *expires* when a higher one is first known to exist, by a send or a poll that states it. A process
holds the keys of its last assignment, new ones from the start, and those that it polled since. The *lag* of
a key at a poll is the time from the expiry of the highest offset that the poll's process knows of the key to
the poll's invocation. The lag of the poll is the largest over the keys that its process holds. It is a lower
bound, since the poll may have happened right at its invocation.

Keys are of any type that can be hashed. `analysis.checker.steps` finds the worst lag again, with Spark.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

NEVER = 1 << 62  # ns: later than any run ends
BEFORE_ALL = -1  # the offset that a process knows of a key of which it has polled nothing


class Place(NamedTuple):
    """An offset, and when it expires (ns, or `NEVER`)."""

    offset: int
    expires_ns: int


class Expiries:
    """When the end of each log was first known to be past each of its offsets."""

    def __init__(self, known: Iterable[tuple[int, Mapping[Any, int]]]) -> None:
        """From the times (ns) at which offsets of keys became known; with an offset all lower ones exist."""
        self._of_keys: dict[Any, tuple[list[int], list[int]]] = {}  # ascending offsets, their times
        for time_ns, highest in known:
            for key, offset in highest.items():
                offsets, times_ns = self._of_keys.setdefault(key, ([BEFORE_ALL], [0]))
                if offset > offsets[-1]:
                    offsets.append(offset)
                    times_ns.append(time_ns)

    def places(self, offsets: Mapping[Any, int]) -> dict[Any, Place]:
        """The offsets of these keys, each with its expiry."""
        return {key: Place(offset, self._of(key, offset)) for key, offset in offsets.items()}

    def _of(self, key: Any, offset: int) -> int:
        offsets, times_ns = self._of_keys.get(key, ((), ()))
        place = bisect_left(offsets, offset + 1)
        return times_ns[place] if place < len(times_ns) else NEVER


class Position:
    """What one process knows: the highest offset of each of its keys, and when that expires."""

    def __init__(self) -> None:
        self.places: dict[Any, Place] = {}

    def assign(self, keys: Mapping[Any, Place]) -> None:
        """Hold these keys only; those that were held before stay where they were."""
        self.places = {key: self.places.get(key, start) for key, start in keys.items()}

    def advance(self, known: Mapping[Any, Place]) -> None:
        """Raise the highest known offset of each key in `known`."""
        for key, place in known.items():
            self.places[key] = max(self.places.get(key, place), place)

    def lag(self, now_ns: int) -> int:
        """The largest lag over all keys, in ns, at least 0."""
        times = (place.expires_ns for place in self.places.values())
        return max(0, now_ns - min(times, default=NEVER))

    def worst_key(self) -> Any:
        """The key furthest behind; of several the one that the process came to know first."""
        return min(self.places, key=lambda key: self.places[key].expires_ns)
