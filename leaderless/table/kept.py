"""Values that were read last, within a bound of memory; for several threads."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Kept(Generic[K, V]):
    """Values by name, the last used ones: about `bytes_max` of them, or a single larger one."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = Lock()
        self.bytes: int = 0

    def get(self, name: K) -> V | None:
        """The value of a name; None: there is none, or not any more."""
        with self._lock:
            if name not in self._values:
                return None
            self._values.move_to_end(name)
            return self._values[name][0]

    def put(self, name: K, value: V, size: int) -> None:
        """Keep a value of `size` bytes; a name that has one already keeps it."""
        with self._lock:
            if name in self._values:
                return
            self._values[name] = value, size
            self.bytes += size
            while self.bytes > self._bytes_max and len(self._values) > 1:
                self.bytes -= self._values.popitem(last=False)[1][1]
