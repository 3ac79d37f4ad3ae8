"""Opens a log: see `leaderless.api.log`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio

from leaderless.api.log import Log
from leaderless.core.pace import Pace
from leaderless.core.shape import Compression, Runs
from leaderless.hosting.host import beside, running
from leaderless.hosting.place import bounds_of, ensure_log, place_of, require_log
from leaderless.peers.reach import Tls
from leaderless.peers.sockets import peers_of
from leaderless.store.calls import reached
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
    message_worth_s: float = Pace().message_worth_s,
    runs: Runs | None = None,
    compression: Compression | None = None,
    peers: str | None = "machine",
    peers_tls: Tls | None = None,
) -> AsyncIterator[Log]:
    """Open the log at `url`, or its `topic`, for `async with`.

    Args:
        url: of the store, see `leaderless.store.urls.URLS`.
        topic: the name of one of several logs in the store, of 400 bytes at most, where a byte of UTF-8 that is
            no ASCII letter, digit, `_`, `-` or `.` counts 3.
        create: make the log when there is none.
        endpoint, access_key, secret_key, region: see `leaderless.store.options.StoreOptions`.
        patience_s: how long an append or a read may take, in seconds, before it raises `Indefinite` or
            `Unreachable`; to open the log may take as long, or 3 s where nobody is at the address of the store.
        store_timeout_s: how long one request to the store may take, in seconds, before it is given up and
            looked at again; measured round trips raise it.
            The end of the block waits for upkeep under way, for so long at most.
        message_worth_s: how many seconds an append may wait to share a request with others; alone none waits.
        runs, compression: how a log that is made here is kept, see `leaderless.hosting.place.ensure_log`.
        peers: which processes commit for each other. "machine": this user's on this machine; HOST or HOST:PORT
            of this machine: all that say theirs, by TCP; None: none.
        peers_tls: contexts of who listens and of who asks; without, values travel by TCP in clear.

    Raises:
        Definite: the log cannot be opened, and the text says why: NotInitialised, OtherFormat, Unreachable, ...
        Indefinite: it cannot be opened, and may have been made.
    """
    timeout_s = min(2 * store_timeout_s, patience_s)  # a process ends when its requests have
    options = StoreOptions(endpoint, access_key, secret_key, region, timeout_s=timeout_s)
    store = place_of(url, topic, options)
    try:
        if create:
            made = await reached(
                partial(ensure_log, store, runs, compression), patience_s, reads=False
            )
            shape = made.shape
        else:
            shape = await reached(partial(require_log, store), patience_s, reads=True)
        bounds = bounds_of(
            store, patience_s, store_timeout_s, shape, message_worth_s=message_worth_s
        )
        log = Log(store, bounds, make_peers=await peers_of(store, peers, peers_tls))
        async with running(log.host), beside(*log.chores):
            yield log
            await log.leaves()
            await log.ends(store_timeout_s)
    finally:
        with anyio.CancelScope(shield=True):
            await store.aclose()
