"""Answers of a store about files: what is cut off or makes no sense is no answer, and is asked for again.

`leaderless.store.calls` does the same for objects. These calls block.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from leaderless.errors import Broken
from leaderless.store.files import RangeReader
from leaderless.store.port import OutcomeUnknown

T = TypeVar("T")
ATTEMPTS = 4
SENSELESS = (ValueError, KeyError, TypeError, OSError)  # OSError is pyarrow's for a damaged footer


def sensible(path: str, read: Callable[[], T]) -> T:
    """What `read` makes of a file. Raises `Broken` when it can make nothing of it however often it is read."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return read()
        except SENSELESS as error:
            if attempt == ATTEMPTS:
                raise Broken(f"{path} makes no sense: {error}") from error
    raise AssertionError("the last attempt returns or raises")


def again(read: Callable[[], T]) -> T:
    """What `read` reads of a file. Raises `OutcomeUnknown` when no answer is clear, such as one cut off."""
    for _ in range(ATTEMPTS - 1):
        with suppress(OutcomeUnknown):
            return read()
    return read()


class Ranges(RangeReader):
    """A file of a store as Python's file; a range without a clear answer is asked for again."""

    def read(self, size: int | None = -1) -> bytes:
        """As `RangeReader.read`."""
        return again(partial(super().read, size))
