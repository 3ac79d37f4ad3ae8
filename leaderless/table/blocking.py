"""Calls that block, for an event loop."""

from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

from leaderless.library.errors import Definite, Indefinite
from leaderless.store.port import Refused, StoreError

T = TypeVar("T")


async def in_thread(call: Callable[[], T]) -> T:
    """What a call returns, made in a thread. Raises `Definite` and `Indefinite` for what a store says."""
    try:
        return await anyio.to_thread.run_sync(call)
    except Refused as refused:
        raise Definite(str(refused)) from refused
    except StoreError as error:
        raise Indefinite(str(error)) from error
