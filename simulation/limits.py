"""The node's limits made small enough to be met in seconds."""

from collections.abc import Iterator
from contextlib import contextmanager

from leaderless.core.headlog import compaction, head


@contextmanager
def small_limits(
    *, seal_entries: int, segments_per_run: int, seal_bytes: int = head.SEAL_BYTES
) -> Iterator[None]:
    """Inside the block a tail is full and a run is made after so many entries, bytes, segments."""
    limits = (
        (head, "SEAL_ENTRIES", seal_entries),
        (head, "SEAL_BYTES", seal_bytes),
        (compaction, "SEGMENTS_PER_RUN", segments_per_run),
    )
    before = [getattr(module, name) for module, name, _ in limits]  # AttributeError: it was renamed
    for module, name, value in limits:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(limits, before, strict=True):
            setattr(module, name, value)
