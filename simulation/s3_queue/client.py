"""A client library that repeats every request whose answer is not clear, as such libraries do by default.

It repeats conditional writes, too. After a success whose answer was lost, the second try finds another version
than it asked for: `Conflict`, although the write of this very client is what it met. Our own stores never
repeat a conditional write (`leaderless.store.port`).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

from leaderless.store.port import PAGE, Found, Listed, OutcomeUnknown, Store, Version
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

    async def read(self, key: str) -> Found | None:
        """See `Store`."""
        return await repeated(lambda: self._store.read(key))

    async def read_again(self, key: str, known: Found) -> Found | None:
        """See `Store`."""
        return await repeated(lambda: self._store.read_again(key, known))

    async def write(self, key: str, value: bytes) -> Version:
        """See `Store`."""
        return await repeated(lambda: self._store.write(key, value))

    async def create(self, key: str, value: bytes) -> Version:
        """See `Store`, and the module."""
        return await repeated(lambda: self._store.create(key, value))

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """See `Store`, and the module."""
        if not self._updates:
            return await self._store.compare_and_set(key, value, version)
        return await repeated(lambda: self._store.compare_and_set(key, value, version))

    async def delete(self, keys: Sequence[str]) -> None:
        """See `Store`."""
        await repeated(lambda: self._store.delete(keys))

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        """See `Store`."""
        return await repeated(lambda: self._store.list_objects(folder, after, limit))


async def repeated(request: Callable[[], Awaitable[T]]) -> T:
    """Make a request until its outcome is clear, up to `TRIES` times."""
    pause_s = PAUSE_S
    for _ in range(TRIES - 1):
        try:
            return await request()
        except OutcomeUnknown:
            await anyio.sleep(pause_s)
        pause_s = min(2 * pause_s, PAUSE_S_MAX)
    return await request()
