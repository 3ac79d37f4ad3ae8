"""Stores around a store: `Wrapped` hands every call on; `Within` gives the objects below a prefix."""

from collections.abc import Sequence

from leaderless.store.port import PAGE, Found, Listed, Store, Version


class Wrapped:
    """A `Store` that hands every call on to another one; those around it override what they change."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def inmost(self) -> Store:
        """The store that is around no other one."""
        return self._store.inmost if isinstance(self._store, Wrapped) else self._store

    @property
    def url(self) -> str:
        """See `Store`."""
        return self._store.url

    @property
    def value_bytes_max(self) -> int:
        """See `Store`."""
        return self._store.value_bytes_max

    async def read(self, key: str) -> Found | None:
        """See `Store`."""
        return await self._store.read(key)

    async def read_again(self, key: str, known: Found) -> Found | None:
        """See `Store`."""
        return await self._store.read_again(key, known)

    async def write(self, key: str, value: bytes) -> Version:
        """See `Store`."""
        return await self._store.write(key, value)

    async def create(self, key: str, value: bytes) -> Version:
        """See `Store`."""
        return await self._store.create(key, value)

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """See `Store`."""
        return await self._store.compare_and_set(key, value, version)

    async def delete(self, keys: Sequence[str]) -> None:
        """See `Store`."""
        await self._store.delete(keys)

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        """See `Store`."""
        return await self._store.list_objects(folder, after, limit)

    async def aclose(self) -> None:
        """See `Store`."""
        await self._store.aclose()


class Within(Wrapped):
    """The objects of a store below `prefix`, as a store of their own; the keys lose the prefix."""

    def __init__(self, store: Store, prefix: str) -> None:
        super().__init__(store)
        self._prefix = prefix.strip("/")

    @property
    def outer(self) -> Store:
        """The store that has the prefix."""
        return self._store

    @property
    def prefix(self) -> str:
        """The prefix, without a slash at its ends."""
        return self._prefix

    @property
    def url(self) -> str:
        """See `Store`."""
        return f"{self._store.url.rstrip('/')}/{self._prefix}"

    async def read(self, key: str) -> Found | None:
        """See `Store`."""
        return await self._store.read(self._full(key))

    async def read_again(self, key: str, known: Found) -> Found | None:
        """See `Store`."""
        return await self._store.read_again(self._full(key), known)

    async def write(self, key: str, value: bytes) -> Version:
        """See `Store`."""
        return await self._store.write(self._full(key), value)

    async def create(self, key: str, value: bytes) -> Version:
        """See `Store`."""
        return await self._store.create(self._full(key), value)

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """See `Store`."""
        return await self._store.compare_and_set(self._full(key), value, version)

    async def delete(self, keys: Sequence[str]) -> None:
        """See `Store`."""
        await self._store.delete([self._full(key) for key in keys])

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        """See `Store`."""
        inner = f"{self._prefix}/{folder}" if folder else self._prefix
        page = await self._store.list_objects(inner, self._full(after) if after else "", limit)
        return [one._replace(key=one.key.removeprefix(f"{self._prefix}/")) for one in page]

    def _full(self, key: str) -> str:
        return f"{self._prefix}/{key}"
