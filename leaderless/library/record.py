"""A record of the log, as programs see it."""

from typing import Any, NamedTuple


class Record(NamedTuple):
    """One value of the log, at its offset in its key.

    `value` is JSON or `bytes`, as it was appended. Its type is `Any`, for it is what other programs wrote.
    """

    key: str
    offset: int
    value: Any
