"""Stores whose changes are judged by the laws of logs (`leaderless.hosting.laws`)."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from unittest.mock import patch
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from leaderless.core.coordination import InvariantBroken
from leaderless.hosting.laws.lawful import Observer
from leaderless.hosting.laws.laws import is_judged
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Version


@contextmanager
def lawful_memory() -> Iterator[None]:
    """Inside the block every `MemoryStore` that is still empty tells the laws; at its end none is broken."""
    observers: WeakKeyDictionary[MemoryStore, Observer] = WeakKeyDictionary()
    seen: list[Observer] = []
    keep, delete = MemoryStore._keep, MemoryStore.delete

    def observer_of(store: MemoryStore) -> Observer | None:
        if store not in observers and not store._objects:
            observers[store] = Observer()
            seen.append(observers[store])
        return observers.get(store)

    def kept(self: MemoryStore, key: str, value: bytes) -> Version:
        observer = observer_of(self)
        version = keep(self, key, value)
        if observer:
            observer.changed(key, value)
        return version

    async def deleted(self: MemoryStore, keys: Sequence[str]) -> None:
        there = [key for key in keys if key in self._objects]
        await delete(self, keys)
        if observer := observers.get(self):
            for key in there:
                observer.changed(key, None)

    with patch.object(MemoryStore, "_keep", kept), patch.object(MemoryStore, "delete", deleted):
        yield
    broken = [observer.broken for observer in seen if observer.broken]
    assert not broken, broken[0]


class Overheard:
    """An observer of `bench.stores.proxy.Proxy` before an S3 server with one log; `observer` has the laws."""

    def __init__(self) -> None:
        self.observer = Observer()
        self.changes = 0

    def __call__(self, method: str, target: str, body: bytes) -> None:
        changed: bytes | None = body if method == "PUT" else None
        paths = [urlsplit(target).path]
        if method == "POST":
            paths = [key.decode() for key in re.findall(rb"<Key>([^<]*)</Key>", body)]
        if method in ("PUT", "POST", "DELETE"):
            for path in paths:
                self._changed(unquote(path).strip("/").split("/"), changed)

    def _changed(self, path: list[str], value: bytes | None) -> None:
        """An object below a bucket and a prefix: its key begins where the name is one of a log."""
        place = next((place for place, part in enumerate(path) if is_judged(part)), None)
        if place is not None:
            self.changes += 1
            with suppress(InvariantBroken):  # it is kept: the proxy goes on
                self.observer.changed("/".join(path[place:]), value)
