"""Time that stands still between two timers, and yet tells before from after.

A node that reads two lines between two timers reads them at the same second, at two instants of its own. So its
state depends on its own lines alone, not on how many lines others read meanwhile: two nodes commute exactly.
What a node measures between two such instants is 0 s: messages are infinitely faster than timers, until a step
lets time pass. Two instants of one second are never subtracted to anything but 0, so nothing that one node
measures puts an instant of another in front of a third.
"""

from typing import Any


class Instant(float):
    """A time in seconds, and the number of the node's line at that time, which only comparisons see."""

    __slots__ = ("tick",)
    tick: int

    def __new__(cls, seconds: float, tick: int) -> "Instant":
        instant = super().__new__(cls, seconds)
        instant.tick = tick
        return instant

    def __add__(self, seconds: float) -> "Instant":
        return Instant(float.__add__(self, seconds), self.tick)

    __radd__ = __add__

    def __sub__(self, other: float) -> float:
        """Seconds since another instant; or the instant so many seconds before."""
        seconds = float.__sub__(self, other)
        return seconds if isinstance(other, Instant) else Instant(seconds, self.tick)

    def __lt__(self, other: float) -> bool:
        return self._key < _key(other)

    def __le__(self, other: float) -> bool:
        return self._key <= _key(other)

    def __gt__(self, other: float) -> bool:
        return self._key > _key(other)

    def __ge__(self, other: float) -> bool:
        return self._key >= _key(other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float | int) and self._key == _key(other)

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[float, int]:
        return float(self), self.tick


def _key(time: Any) -> tuple[float, int]:
    return (float(time), time.tick) if isinstance(time, Instant) else (float(time), 0)
