"""Memory of a process that handles many records: what it keeps of what it read, and rare garbage collections.

Records are lists, dicts and tuples without cycles, so reference counts free them. Python's collector looks at
them again and again all the same. It took a third of the CPU time of a commit, and two thirds of a snapshot's.
"""

import gc
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

RARELY = 100_000, 20, 50  # as `gc.set_threshold` takes them; Python's own are 700, 10, 10

_lock = Lock()
_within: list[
    tuple[int, int, int]
] = []  # of each block that has not ended: what was set before the first


class Kept(Generic[K, V]):
    """Values by name, the last used ones: about `bytes_max` of them, or a single larger one.

    Several threads may use it.
    """

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


@contextmanager
def rare_collections() -> Iterator[None]:
    """Within the block collections are rare; after it, and after others that overlap, they are as they were."""
    with _lock:
        _within.append(_within[0] if _within else gc.get_threshold())
        gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        with _lock:
            before = _within.pop()
            if not _within:
                gc.set_threshold(*before)
