"""A client library that repeats every request whose answer is not clear, as such libraries do by default.

It repeats conditional writes, too. After a success whose answer was lost, the second try finds another version
than it asked for: `Conflict`, although the write of this very client is what it met. Our own stores never
repeat a conditional write (`leaderless.store.port`).
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from leaderless.store.files import files_of
from leaderless.store.port import OutcomeUnknown, Store, Version
from leaderless.store.wrapped import Wrapped

T = TypeVar("T")
TRIES = 10
PAUSE_S = 0.1  # before the second try; it doubles, up to `PAUSE_S_MAX`
PAUSE_S_MAX = 5.0


class Repeating(Wrapped):
    """A store whose requests are made up to `TRIES` times. Raises what the last try raised.

    `updates`: whether a compare-and-set is repeated, too.
    """

    def __init__(self, store: Store, *, updates: bool = True) -> None:
        super().__init__(store)
        self._updates = updates
        self.files = files_of(store)

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """See `Store`, and the module."""
        if not self._updates:
            return await self._store.compare_and_set(key, value, version)
        return await super().compare_and_set(key, value, version)

    async def _asked(self, _kind: str, _key: str, call: Callable[[], Awaitable[T]], /) -> T:
        """Make a request until its outcome is clear."""
        pause_s = PAUSE_S
        for _ in range(TRIES - 1):
            try:
                return await call()
            except OutcomeUnknown:
                await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)
        return await call()
