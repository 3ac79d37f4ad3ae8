"""Objects in the memory of this process: for tests, and to try things out."""

import time
from bisect import bisect_right
from collections.abc import Sequence

from leaderless.store.files import MemoryFiles
from leaderless.store.port import PAGE, Conflict, Found, Listed, Version

_STORES: dict[str, "MemoryStore"] = {}


class MemoryStore:
    """A store that ends with its process. It may be used by several event loops of several threads.

    No method waits, so the interpreter carries out each as a whole. Tests set its clock `ahead_s` seconds.
    """

    def __init__(self, name: str = "") -> None:
        self.url: str = f"memory:{name}"
        self.value_bytes_max = 1 << 30
        self.files: MemoryFiles = MemoryFiles()
        self.ahead_s: float = 0.0
        self._objects: dict[str, tuple[Found, float]] = {}
        self._writes = 0

    @classmethod
    def named(cls, name: str) -> "MemoryStore":
        """The store of this name, one a process."""
        return _STORES.setdefault(name, cls(name))

    async def read(self, key: str) -> Found | None:
        """See `leaderless.store.port.Store`."""
        kept = self._objects.get(key)
        return kept[0]._replace(modified=kept[1]) if kept else None

    async def read_again(self, key: str, known: Found) -> Found | None:
        """See `leaderless.store.port.Store`."""
        found = await self.read(key)
        return known if found and found.version == known.version else found

    async def write(self, key: str, value: bytes) -> Version:
        """See `leaderless.store.port.Store`."""
        self._writes += 1
        self._objects[key] = Found(bytes(value), str(self._writes)), time.time() + self.ahead_s
        self._changed(key, value)
        return str(self._writes)

    def _changed(self, key: str, value: bytes | None) -> None:
        """An object holds this; None: it was deleted. For stores that judge that."""

    async def create(self, key: str, value: bytes) -> Version:
        """See `leaderless.store.port.Store`."""
        if key in self._objects:
            raise Conflict(f"{key} exists")
        return await self.write(key, value)

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """See `leaderless.store.port.Store`."""
        kept = self._objects.get(key)
        if kept is None or kept[0].version != version:
            raise Conflict(f"{key} has not version {version}")
        return await self.write(key, value)

    async def delete(self, keys: Sequence[str]) -> None:
        """See `leaderless.store.port.Store`."""
        for key in keys:
            self._objects.pop(key, None)
            self._changed(key, None)

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        """See `leaderless.store.port.Store`."""
        within = f"{folder}/" if folder else ""
        keys = sorted((key for key in self._objects if key.startswith(within)), key=str.encode)
        start = bisect_right(keys, after.encode(), key=str.encode)
        return [
            Listed(key, len(self._objects[key][0].value), self._objects[key][1])
            for key in keys[start : start + limit]
        ]

    async def aclose(self) -> None:
        """The objects stay: another part of the process may open the store again."""
