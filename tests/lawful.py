"""Stores whose changes are judged by the laws of logs (`leaderless.upkeep.laws`)."""

import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import ClassVar
from unittest.mock import patch
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

import anyio
import h11

from bench.nemesis.requests import Fate
from bench.stores.fates import Answer, Whole
from bench.stores.proxy import Connection
from leaderless.core.coordination import InvariantBroken
from leaderless.store.memory import MemoryStore
from leaderless.store.port import OutcomeUnknown, Store, Version
from leaderless.store.wrapped import Wrapped
from leaderless.upkeep.laws.lawful import Observer
from leaderless.upkeep.laws.laws import is_judged


@contextmanager
def lawful_memory() -> Iterator[None]:
    """Inside the block every `MemoryStore` that is still empty tells the laws; at its end none is broken."""
    observers: WeakKeyDictionary[MemoryStore, Observer] = WeakKeyDictionary()
    seen: list[Observer] = []

    def changed(self: MemoryStore, key: str, value: bytes | None) -> None:
        if self._writes == 1 and value is not None:
            seen.append(observers.setdefault(self, Observer()))
        if observer := observers.get(self):
            observer.changed(key, value)

    with patch.object(MemoryStore, "_changed", changed):
        yield
    broken = [observer.broken for observer in seen if observer.broken]
    assert not broken, broken[0]


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


class Overheard(Connection):
    """A connection of the bench's proxy before an S3 server with one log, whose changes the laws judge.

    A request goes to the server when the one before it is answered, so the order of their effects is known.
    """

    observer: ClassVar = Observer()
    changes: ClassVar = 0
    turns: ClassVar[deque[Callable[[], None]]] = deque()
    _at_server: Whole[h11.Request] | None = None  # the request whose turn it is

    def close(self) -> None:
        self._leave_turn(None)
        super().close()

    def _pass_on(self, request: Whole[h11.Request]) -> None:
        self.turns.append(partial(self._begin, request))
        if len(self.turns) == 1:
            self.turns[0]()

    def _begin(self, request: Whole[h11.Request]) -> None:
        self._at_server = request
        super()._pass_on(request)

    def _answered(self, answer: Answer, fate: Fate) -> None:
        self._leave_turn(answer)
        super()._answered(answer, fate)

    def _over(self) -> None:
        self._leave_turn(None)
        super()._over()

    def _leave_turn(self, answer: Answer | None) -> None:
        """The request is answered, or never will be; the next one begins."""
        if request := self._at_server:
            self._at_server = None
            self.turns.popleft()
            if answer and answer.head.status_code < 300:
                self._hear(request.head.method.decode(), request.head.target.decode(), request.body)
            if self.turns:
                self.turns[0]()

    def _hear(self, method: str, target: str, body: bytes) -> None:
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
            Overheard.changes += 1
            with suppress(InvariantBroken):  # it is kept: the proxy goes on
                self.observer.changed("/".join(path[place:]), value)
