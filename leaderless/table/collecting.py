"""Garbage collections become rare while a process handles many records.

Records are lists, dicts and tuples without cycles, so reference counts free them. Python's collector looks at
them again and again all the same. It took a third of the CPU time of a commit, and two thirds of a snapshot's.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

RARELY = 100_000, 20, 50  # as `gc.set_threshold` takes them; Python's own are 700, 10, 10


_lock = Lock()
_within: list[
    tuple[int, int, int]
] = []  # of each block that has not ended: what was set before the first


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
