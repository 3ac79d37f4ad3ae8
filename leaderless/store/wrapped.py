"""Stores around a store.

`Wrapped` hands every call on. `Within` gives the objects below a prefix. `Counted` counts requests, which have
a price on S3.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import TypeVar

from leaderless.store.port import PAGE, Conflict, Found, Listed, Store, Version

WRITES = ("write", "create", "compare_and_set")  # methods of `Store`
# Of the clouds that have `prices` (`leaderless.store.clouds`), in US dollars a request. DELETE is free.
WRITE_USD, READ_USD = 0.005 / 1000, 0.0004 / 1000
T = TypeVar("T")
PRICED = {
    **dict.fromkeys(WRITES, "put"),
    **dict.fromkeys(("read", "read_again"), "get"),
    "delete": "delete",
    "list_objects": "list",
}
PRICES = {"put": WRITE_USD, "list": WRITE_USD, "get": READ_USD, "delete": 0.0}


class Wrapped:
    """A `Store` that hands every call on to another one; those around it override what they change.

    Every request goes through `_asked`.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def inmost(self) -> Store:
        """The store that is around no other one."""
        return self._store.inmost if isinstance(self._store, Wrapped) else self._store

    @property
    def outer(self) -> Store:
        """The store that this one is around."""
        return self._store

    @property
    def url(self) -> str:
        """See `Store`."""
        return self._store.url

    @property
    def value_bytes_max(self) -> int:
        """See `Store`."""
        return self._store.value_bytes_max

    @property
    def write_every_s(self) -> float:
        """How many seconds are between two writes of one object, on average, where a store waits for that."""
        return getattr(self._store, "write_every_s", 0.0)

    async def read(self, key: str) -> Found | None:
        """See `Store`."""
        return await self._asked("read", key, partial(self._store.read, self.full(key)))

    async def read_again(self, key: str, known: Found) -> Found | None:
        """See `Store`."""
        return await self._asked(
            "read_again", key, partial(self._store.read_again, self.full(key), known)
        )

    async def write(self, key: str, value: bytes) -> Version:
        """See `Store`."""
        return await self._write_by("write", key, value)

    async def create(self, key: str, value: bytes) -> Version:
        """See `Store`."""
        return await self._write_by("create", key, value)

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """See `Store`."""
        return await self._write_by("compare_and_set", key, value, version)

    async def _write_by(self, kind: str, key: str, value: bytes, *version: Version) -> Version:
        """Write an object by one of `WRITES`."""
        return await self._asked(
            kind, key, partial(getattr(self._store, kind), self.full(key), value, *version)
        )

    async def delete(self, keys: Sequence[str]) -> None:
        """See `Store`."""
        full = [*map(self.full, keys)]
        await self._asked("delete", keys[0] if keys else "", partial(self._store.delete, full))

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        """See `Store`."""
        return await self._asked(
            "list_objects", folder, partial(self._store.list_objects, folder, after, limit)
        )

    async def aclose(self) -> None:
        """See `Store`."""
        await self._store.aclose()

    async def _asked(self, _kind: str, _key: str, call: Callable[[], Awaitable[T]], /) -> T:
        """Make a request by `call`: a method of `Store`, on an object, a folder, or the first object."""
        return await call()

    def full(self, key: str) -> str:
        """The key of an object, or the path of a file, in the other store."""
        return key

    def took(self, kind: str, written: int = 0, read: int = 0) -> None:
        """Note a request for a file, of a kind of `PRICES`, and the bytes `written` and `read` by it."""


class Within(Wrapped):
    """The objects of a store below `prefix`, as a store of their own; the keys lose the prefix.

    `prefix` has no slash at its ends.
    """

    def __init__(self, store: Store, prefix: str) -> None:
        super().__init__(store)
        self.prefix: str = prefix.strip("/")

    @property
    def url(self) -> str:
        """See `Store`."""
        return f"{self._store.url.rstrip('/')}/{self.prefix}"

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        """See `Store`."""
        inner = f"{self.prefix}/{folder}" if folder else self.prefix
        page = await super().list_objects(inner, self.full(after) if after else "", limit)
        return [one._replace(key=one.key.removeprefix(f"{self.prefix}/")) for one in page]

    def full(self, key: str) -> str:
        """See `Wrapped`."""
        return f"{self.prefix}/{key}"


def dollars(requests: Mapping[str, int]) -> float:
    """What requests cost on S3, and as much on Google's storage.

    They have the names of `PRICES`: "put" (of any kind), "get", "list", "delete".
    """
    return sum(PRICES[kind] * number for kind, number in requests.items())


class Counted(Wrapped):
    """See `Store`. `requests`: how many of each kind of `PRICES`; `bytes_written`, `bytes_read`: of values, and
    of files; `conflicts`: conditional writes that another process was faster than.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._lock = Lock()  # files are read in threads
        self.clear()

    def clear(self) -> None:
        """Count from zero again."""
        self.requests: Counter[str] = Counter()
        self.bytes_written: int = 0
        self.bytes_read: int = 0
        self.conflicts: int = 0

    def took(self, kind: str, written: int = 0, read: int = 0) -> None:
        """See `Wrapped`."""
        with self._lock:
            self.requests[kind] += 1
            self.bytes_written += written
            self.bytes_read += read

    async def _write_by(self, kind: str, key: str, value: bytes, *version: Version) -> Version:
        with self._lock:
            self.bytes_written += len(value)
        return await super()._write_by(kind, key, value, *version)

    async def _asked(self, kind: str, _key: str, call: Callable[[], Awaitable[T]], /) -> T:
        self.took(PRICED[kind])
        try:
            answer = await call()
        except Conflict:
            self.conflicts += 1
            raise
        if isinstance(answer, Found):
            with self._lock:
                self.bytes_read += len(answer.value)
        return answer
