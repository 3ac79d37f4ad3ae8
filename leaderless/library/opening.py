"""Opens a log: `open_log`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from leaderless.library.host import beside, running
from leaderless.library.log import Log
from leaderless.library.place import bounds_of, ensure_log, place_of, require_log
from leaderless.store.format import Runs
from leaderless.store.options import StoreOptions


@asynccontextmanager
async def open_log(
    url: str,
    topic: str | None = None,
    *,
    create: bool = True,
    endpoint: str | None = None,
    access_key: str | None = None,
    secret_key: str | None = None,
    region: str | None = None,
    patience_s: float = 30.0,
    store_timeout_s: float = 5.0,
    runs: Runs | None = None,
) -> AsyncIterator[Log]:
    """Open the log at `url` (`leaderless.store.urls.URLS`), or the one called `topic` there.

    Args:
        create: make the log when there is none.
        endpoint, access_key, secret_key, region: see `leaderless.store.options.StoreOptions`.
        patience_s: how long an append or a read may take, in seconds, before it raises `Indefinite`.
        store_timeout_s: how long one request to the store may take, in seconds, before it is given up and
            looked at again; measured round trips raise it.
        runs: how a log that is made here keeps its runs, see `leaderless.library.place.ensure_log`.

    Raises:
        NotInitialised, OtherFormat, Definite, Indefinite: the log cannot be opened; the text says why.
    """
    options = StoreOptions(endpoint, access_key, secret_key, region, timeout_s=2 * store_timeout_s)
    store = place_of(url, topic, options)
    try:
        kept = (await ensure_log(store, runs)).runs if create else await require_log(store)
        log = Log(store, bounds_of(store, patience_s, store_timeout_s, kept))
        async with running(*log.hosts), beside(*log.chores):
            yield log
    finally:
        with anyio.CancelScope(shield=True):
            await store.aclose()
