"""Garbage collections become rare while a process handles many records.

Records are lists, dicts and tuples without cycles, so reference counts free them. Python's collector looks at
them again and again all the same. It took a third of the CPU time of a commit.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARELY = 100_000, 20, 50  # as `gc.set_threshold` takes them; Python's own are 700, 10, 10


@contextmanager
def rare_collections() -> Iterator[None]:
    """Within the block collections are rare; after it they are as they were."""
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)
