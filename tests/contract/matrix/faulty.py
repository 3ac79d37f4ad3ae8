"""A store that fails as a test asks, as a process sees it that dies."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from leaderless.store.port import PAGE, Found, Listed, OutcomeUnknown, Store, Version
from leaderless.store.wrapped import Wrapped


class Faulty(Wrapped):
    """A store of one process. `before(kind, key)` is called first of all, and may raise.

    `lose_answers`: writes are carried out, and their answers lost. `dead`: nothing is done any more.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.lose_answers = self.dead = False
        self.writes_left: int | None = None
        self.before: Callable[[str, str], Awaitable[None]] | None = None
        self.writes: list[str] = []

    async def read(self, key: str) -> Found | None:
        await self._begin("read", key)
        return await self._store.read(key)

    async def write(self, key: str, value: bytes) -> Version:
        return await self._written(key, self._store.write(key, value))

    async def create(self, key: str, value: bytes) -> Version:
        return await self._written(key, self._store.create(key, value))

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        return await self._written(key, self._store.compare_and_set(key, value, version))

    async def delete(self, keys: Sequence[str]) -> None:
        await self._begin("delete", keys[0])
        await self._store.delete(keys)

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        await self._begin("list", folder)
        return await self._store.list_objects(folder, after, limit)

    async def aclose(self) -> None:
        """The store is closed by the stage."""

    async def _begin(self, kind: str, key: str) -> None:
        if self.dead:
            raise OutcomeUnknown("the process is dead")
        if self.before:
            await self.before(kind, key)

    async def _written(self, key: str, write: Any) -> Version:
        try:
            await self._begin("write", key)
            if self.writes_left == 0:
                self.dead = True
                raise OutcomeUnknown("the process died before this write")
        except OutcomeUnknown:
            write.close()
            raise
        if self.writes_left is not None:
            self.writes_left -= 1
        self.writes.append(key)
        version: Version = await write
        if self.lose_answers:
            raise OutcomeUnknown("the answer was lost")
        return version
