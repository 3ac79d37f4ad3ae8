"""A record of the log, as programs see it."""

from typing import NamedTuple

from leaderless.store.values import Value


class Record(NamedTuple):
    """One value of the log, at its offset in its key."""

    key: str
    offset: int
    value: Value
