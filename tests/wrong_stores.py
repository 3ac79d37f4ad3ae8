"""Stores that do not keep the laws of `leaderless.store.port`."""

from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found, Version


class Renames(MemoryStore):
    """A read shows an ETag that updates do not know, as behind a proxy that compresses."""

    async def read(self, key: str) -> Found | None:
        found = await super().read(key)
        return found and found._replace(version=f"W/{found.version}")


class Overwrites(MemoryStore):
    """Ignores that an object must not exist, as some servers do."""

    async def create(self, key: str, value: bytes) -> Version:
        return await self.write(key, value)
