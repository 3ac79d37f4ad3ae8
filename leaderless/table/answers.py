"""Answers of a store about files: what is cut off or makes no sense is no answer, and is asked for again.

`leaderless.store.calls` does the same for objects. These calls block.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from leaderless.core.coordination import Misfit
from leaderless.errors import Broken
from leaderless.store.calls import DAMAGED_MAX
from leaderless.store.files import RangeReader
from leaderless.store.port import OutcomeUnknown

T = TypeVar("T")
Kinds = tuple[type[Exception], ...]
# OSError is pyarrow's for a damaged footer.
SENSELESS: Kinds = (
    ValueError,
    KeyError,
    TypeError,
    OSError,
    Misfit,
)


def sensible(path: str, read: Callable[[], T]) -> T:
    """What `read` makes of a file. Raises `Broken` when it can make nothing of it however often it is read."""
    try:
        return again(read, SENSELESS)
    except SENSELESS as error:
        raise Broken(f"{path} makes no sense: {error}") from error


def again(read: Callable[[], T], no_answer: Kinds = (OutcomeUnknown,)) -> T:
    """What `read` reads of a file. `no_answer`: the errors after which it reads again, such as a cut answer.

    Raises what the last attempt raises.
    """
    for _ in range(DAMAGED_MAX - 1):
        with suppress(*no_answer):
            return read()
    return read()


class Ranges(RangeReader):
    """A file of a store as Python's file; a range without a clear answer is asked for again."""

    def read(self, size: int | None = -1) -> bytes:
        """As `RangeReader.read`."""
        return again(partial(super().read, size))
