"""Finds out whether a store keeps the laws of the port: `leaderless init` asks before it makes a log.

It tries each kind of request on an object of its own, which it deletes. One try proves nothing about races, but
finds what stores, and what stands before them, lack in practice: conditional writes that are ignored, never
succeed, or are repeated; versions that are shown and not taken; stale reads, and changes that are called none.
"""

import secrets
import time
from collections.abc import Awaitable
from contextlib import suppress
from typing import NamedTuple, TypeVar

from leaderless.store.etags import Quotes, lacks
from leaderless.store.port import (
    PAGE,
    Conflict,
    Found,
    OutcomeUnknown,
    Refused,
    Store,
    StoreError,
    Version,
)
from leaderless.store.wrapped import Wrapped

T = TypeVar("T")
PROBES = "probe"  # the folder of what it tries
ETAGS = "something on the way changes ETags, such as a proxy that compresses answers"
NOTHING = b"nothing"  # stands for an object that is not there
CLOCK_S = 2.0  # how far two times of one write may be apart: an HTTP header has whole seconds


class Probed(NamedTuple):
    """What a probe found: the median of its requests in seconds, and how ETags are sent, if there are any."""

    request_s: float
    etags: str | None


async def probe(store: Store) -> Probed:
    """Try the store.

    Raises `Refused` when it breaks a law or lets nobody in, `OutcomeUnknown` when it is silent, or an answer
    makes no sense.
    """
    tried = _Tried(store, f"{PROBES}/{secrets.token_hex(8)}")
    try:
        await tried.creations()
        await tried.updates()
        await tried.listing()
    except StoreError:
        with suppress(StoreError):  # the first reason counts
            await store.delete([tried.key])
        raise
    await store.delete([tried.key])
    if await store.read(tried.key) is not None:
        raise Refused(lacks(store.url, "shows an object after it was deleted"))
    return Probed(tried.median_s, _etags(store))


class _Tried:
    """The object that is tried, and how long requests took."""

    def __init__(self, store: Store, key: str) -> None:
        self.key = key
        self._store = store
        self._written = [NOTHING]  # every value that was sent
        self._holds = NOTHING
        self._updates = 0
        self._version = ""  # as the newest write gave it
        self._modified: float | None = None
        self._seconds: list[float] = []

    async def creations(self) -> None:
        """One succeeds, and a second one does not."""
        if await self._created() is None:
            raise self._breaks(
                "never lets an object be created: it does not understand If-None-Match"
            )
        await self._read()
        if await self._created() is not None:
            raise self._breaks("overwrites what exists: it ignores If-None-Match")

    async def updates(self) -> None:
        """One of the version that a read shows succeeds, and of the version that a write gave; no older one."""
        oldest = self._version
        shown = await self._read()
        takes_shown = await self._updated(shown.version) is not None
        given = self._version
        takes_given = await self._updated(given) is not None
        if not takes_shown and not takes_given:
            raise self._breaks(
                "never lets a conditional update through: it does not understand If-Match"
            )
        if not takes_shown:
            raise self._breaks(
                f"takes no update of the version that its reads show, {shown.version!r}: {ETAGS}"
            )
        if not takes_given:
            raise self._breaks(
                f"takes no update of the version that its writes give, {given!r}: {ETAGS}"
            )
        if await self._updated(oldest) is not None:
            raise self._breaks("overwrites a newer version: it ignores If-Match")
        await self._read(shown)

    async def listing(self) -> None:
        """It shows the object as reads do."""
        page = await self._timed(self._store.list_objects(PROBES))
        found = next((each for each in page if each.key == self.key), None)
        if found is None:
            if len(page) < PAGE:
                raise self._breaks("does not list what was written before")
            return
        if found.size not in (None, len(self._holds)):
            raise self._breaks(f"lists {found.size} bytes, and a read gives {len(self._holds)}")
        if found.modified and self._modified and abs(found.modified - self._modified) > CLOCK_S:
            raise self._breaks("gives a listing and a read different times of the last write")

    async def _created(self) -> Version | None:
        """The version of a new object; None when it exists."""
        value = self._next_value()
        return await self._outcome(self._store.create(self.key, value), value)

    async def _updated(self, version: Version) -> Version | None:
        """The new version; None when the object has not this one."""
        value = self._next_value()
        self._updates += 1
        return await self._outcome(self._store.compare_and_set(self.key, value, version), value)

    def _next_value(self) -> bytes:
        self._written.append(b"value %d" % len(self._written))
        return self._written[-1]

    async def _outcome(self, write: Awaitable[Version], value: bytes) -> Version | None:
        """What a write gives. After a conflict, or a refusal, the object must hold what it held before."""
        try:
            self._version = await self._timed(write)
        except (Conflict, Refused) as said:
            found = await self._store.read(self.key)
            if found and found.value == value:
                raise self._breaks(
                    "reports a conflict for a write that took effect: something on the way sends "
                    "conditional writes again"
                ) from None
            if isinstance(said, Refused):
                raise
            self._require_newest(found)
            return None
        self._holds = value
        return self._version

    async def _read(self, known: Found | None = None) -> Found:
        """What a read shows; `known`: of an older version, which it asks for what is newer."""
        store, key = self._store, self.key
        found = await self._timed(store.read_again(key, known) if known else store.read(key))
        if known and found is known:
            raise Refused(
                f'{store.url} answers "not modified" (304) for an object that was updated: something on the '
                "way answers in its place, such as a cache. Let it pass the log's requests through"
            )
        found = self._require_newest(found) or Found(NOTHING, "")
        self._modified = found.modified
        return found

    def _require_newest(self, found: Found | None) -> Found | None:
        shown = found.value if found else NOTHING
        if shown not in self._written:
            raise OutcomeUnknown(f"{self._store.url}: a read has what nobody wrote: {shown[:80]!r}")
        if shown != self._holds:
            after = "an update" if self._updates else "a write"
            raise Refused(
                f"the store shows an old state after {after}: it is not strongly consistent, "
                "and cannot hold a log"
            )
        return found

    async def _timed(self, request: Awaitable[T]) -> T:
        before = time.monotonic()
        try:
            return await request
        finally:
            self._seconds.append(time.monotonic() - before)

    @property
    def median_s(self) -> float:
        """The median of the requests."""
        return sorted(self._seconds)[len(self._seconds) // 2]

    def _breaks(self, what: str) -> Refused:
        return Refused(lacks(self._store.url, what))


def _etags(store: Store) -> str | None:
    inmost = store.inmost if isinstance(store, Wrapped) else store
    quotes: object = getattr(inmost, "quotes", None)  # of a bucket
    if not isinstance(quotes, Quotes):
        return None
    return "bare" if quotes.bare else "quoted"
