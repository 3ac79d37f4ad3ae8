"""Finds out whether a store keeps the laws of the port: `leaderless init` asks before it makes a log.

It tries each kind of request on an object of its own, which it deletes. One try proves nothing about races, but
finds what stores lack in practice: conditional writes that are ignored, or never succeed; stale reads.
"""

import secrets
import time
from collections.abc import Awaitable
from typing import NamedTuple, TypeVar

from leaderless.store.etags import Quotes
from leaderless.store.port import Conflict, Found, Refused, Store, Version
from leaderless.store.wrapped import Wrapped

T = TypeVar("T")
PROBES = "probe"  # the folder of what it tries


class Probed(NamedTuple):
    """What a probe found: the median of its requests in seconds, and how ETags are sent, if there are any."""

    request_s: float
    etags: str | None


async def probe(store: Store) -> Probed:
    """Try the store.

    Raises `Refused` when it breaks a law or lets nobody in, `OutcomeUnknown` when it is silent.
    """
    key, times = f"{PROBES}/{secrets.token_hex(8)}", _Times()
    try:
        first = await times.of(store.create(key, b"1"))
        await _expect(await times.of(store.read(key)), b"1", "shows an old state after a write")
        try:
            await store.create(key, b"2")
        except Conflict:
            pass
        else:
            raise Refused(_lacks(store, "overwrites what exists: it ignores If-None-Match"))
        await _compare_and_set(store, key, first, times)
        listed = await times.of(store.list_objects(PROBES))
        if key not in [each.key for each in listed] and len(listed) < 1000:
            raise Refused(_lacks(store, "does not list what was written before"))
    finally:
        await store.delete([key])
    if await store.read(key) is not None:
        raise Refused(_lacks(store, "shows an object after it was deleted"))
    return Probed(times.median_s, _etags(store))


async def _compare_and_set(store: Store, key: str, first: Version, times: "_Times") -> None:
    try:
        await times.of(store.compare_and_set(key, b"3", first))
    except Conflict:
        text = "never lets a conditional update through: it does not understand If-Match"
        raise Refused(_lacks(store, text)) from None
    try:
        await store.compare_and_set(key, b"4", first)
    except Conflict:
        pass
    else:
        raise Refused(_lacks(store, "overwrites a newer version: it ignores If-Match"))
    await _expect(await store.read(key), b"3", "shows an old state after an update")


async def _expect(found: Found | None, value: bytes, otherwise: str) -> None:
    if found is None or found.value != value:
        raise Refused(
            f"the store {otherwise}: it is not strongly consistent, and cannot hold a log"
        )


def _lacks(store: Store, what: str) -> str:
    return f"{store.url} {what}. A log needs conditional writes; use another store"


def _etags(store: Store) -> str | None:
    inmost = store.inmost if isinstance(store, Wrapped) else store
    quotes: object = getattr(inmost, "quotes", None)  # of a bucket
    if not isinstance(quotes, Quotes):
        return None
    return "bare" if quotes.bare else "quoted"


class _Times:
    """How long requests take."""

    def __init__(self) -> None:
        self._seconds: list[float] = []

    async def of(self, request: Awaitable[T]) -> T:
        """Make a request, and note how long it took."""
        before = time.monotonic()
        try:
            return await request
        finally:
            self._seconds.append(time.monotonic() - before)

    @property
    def median_s(self) -> float:
        return sorted(self._seconds)[len(self._seconds) // 2]
