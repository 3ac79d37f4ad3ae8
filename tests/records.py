"""What records of a log say."""

from collections.abc import Sequence
from typing import Any

from leaderless import Record


def values(records: Sequence[Record]) -> list[Any]:
    """The values alone."""
    return [record.value for record in records]
