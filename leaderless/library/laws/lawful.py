"""Stores that tell the laws of what they do: for tests, and for whoever does not trust a program."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import orjson

from leaderless.core.coordination import InvariantBroken, Json
from leaderless.library.laws.laws import Laws, has_content, is_judged
from leaderless.store.port import OutcomeUnknown, Store, Version
from leaderless.store.wrapped import Wrapped


class Observer:
    """Tells the laws of all logs of a store, one for each topic, what its objects hold.

    After the first broken law it tells no more: what follows would be judged by a state that may not be.
    `broken`: that law.
    """

    def __init__(self) -> None:
        self._laws: dict[str, Laws] = {}
        self.broken: InvariantBroken | None = None

    def changed(self, key: str, value: bytes | None) -> None:
        """An object holds `value`, None: it was deleted. Raises `InvariantBroken`."""
        place, name = _placed(key)
        if self.broken or not is_judged(name):
            return
        laws = self._laws.setdefault(place, Laws())
        try:
            laws.changed(name, _parsed(name, value))
        except InvariantBroken as broken:
            self.broken = broken
            raise


class Lawful(Wrapped):
    """A store around a store of this process: every change that succeeds is judged, in the order of the store.

    Writes wait for each other, so that their order is known. After a write whose outcome is not known the
    object is read back, so the store must be one in which no write comes late. Its methods raise
    `InvariantBroken`, too. `observer.broken` keeps the first.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.observer: Observer = Observer()
        self._turn = anyio.Lock()

    async def write(self, key: str, value: bytes) -> Version:
        """See `Store`."""
        async with self._judged(key, value):
            return await super().write(key, value)

    async def create(self, key: str, value: bytes) -> Version:
        """See `Store`."""
        async with self._judged(key, value):
            return await super().create(key, value)

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """See `Store`."""
        async with self._judged(key, value):
            return await super().compare_and_set(key, value, version)

    async def delete(self, keys: Sequence[str]) -> None:
        """See `Store`."""
        async with self._turn:
            await super().delete(keys)
            for key in keys:
                self.observer.changed(key, None)

    @asynccontextmanager
    async def _judged(self, key: str, value: bytes) -> AsyncIterator[None]:
        """The turn of a write, which the laws are told of when it has happened."""
        async with self._turn:
            try:
                yield
            except (OutcomeUnknown, anyio.get_cancelled_exc_class()):
                with anyio.CancelScope(shield=True):
                    found = await self._store.read(key)
                if found is not None and found.value == value:
                    self.observer.changed(key, value)
                raise
            self.observer.changed(key, value)


def _placed(key: str) -> tuple[str, str]:
    """The folder of the log, and the key in it."""
    folder, topic, *rest = [*key.split("/", 2), ""]
    return (f"{folder}/{topic}", rest[0]) if folder == "topic" and rest[0] else ("", key)


def _parsed(key: str, value: bytes | None) -> Json:
    if value is None or not has_content(key):
        return None if value is None else True
    try:
        parsed: Json = orjson.loads(value)
    except ValueError:
        return str(value)  # it fits no law
    return parsed
