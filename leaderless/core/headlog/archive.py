"""The archive: which register holds the messages that are no longer in memory.

Per key a sparse index by end offset, looked up by ceiling, as in the Leaderless Log Protocol.
"""

from typing import Any

from leaderless.core.coordination import ceiling
from leaderless.core.headlog.runs import Run


class Archive:
    """Runs by key and last offset."""

    def __init__(self) -> None:
        self._ends: dict[str, list[int]] = {}
        self._registers: dict[str, list[str]] = {}

    def add(self, key: str, last_offset: int, register: str) -> None:
        """Note that `register` holds the messages of a key up to `last_offset`; in rising order."""
        self._ends.setdefault(key, []).append(last_offset)
        self._registers.setdefault(key, []).append(register)

    def register_of(self, key: str, offset: int) -> str | None:
        """The register with the first message at or after `offset`; None if it is not archived."""
        place = ceiling(self._ends.get(key, ()), offset)
        return None if place is None else self._registers[key][place]


def messages_in(run: Run, key: str, offset: int) -> list[list[Any]]:
    """`[[offset, msg], ...]` of a key in a run, from `offset` on."""
    first, msgs = run["keys"][key]
    start = max(offset, first)
    return [[at, msg] for at, msg in enumerate(msgs[start - first :], start)]
