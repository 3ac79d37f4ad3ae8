"""Bounds what is under way at once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


class Room:
    """Bytes of appends under way, `total` at most: further ones wait here, not in the core."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._used = 0
        self._changed = anyio.Condition()

    @asynccontextmanager
    async def of(self, size: int) -> AsyncIterator[None]:
        """Room for `size` bytes while a block runs; one that is larger than all room gets it alone."""
        async with self._changed:
            while self._used and self._used + size > self._total:
                await self._changed.wait()
            self._used += size
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                async with self._changed:
                    self._used -= size
                    self._changed.notify_all()
