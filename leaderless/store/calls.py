"""Calls of a store as a log makes them: with patience, side by side, in threads.

What a store says (`leaderless.store.port`) becomes an error of the log (`leaderless.errors`).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio
import anyio.to_thread

from leaderless.errors import Definite, Indefinite
from leaderless.store.port import OutcomeUnknown, Refused, StoreError

T = TypeVar("T")
ATTEMPTS = 4
PAUSE_S = 0.1  # before the second attempt; it doubles


async def patiently(operation: Callable[[], Awaitable[T]]) -> T:
    """Carry out an operation that may be repeated without harm, until the store is clear.

    Raises `Definite` when it refuses, `Indefinite` after `ATTEMPTS` without a clear answer.
    """
    pause_s = PAUSE_S
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return await operation()
        except Refused as refused:
            raise Definite(str(refused)) from refused
        except OutcomeUnknown as unknown:
            if attempt == ATTEMPTS:
                raise Indefinite(f"no clear answer in {ATTEMPTS} attempts: {unknown}") from unknown
        await anyio.sleep(pause_s)
        pause_s *= 2
    raise AssertionError("the last attempt returns or raises")


async def side_by_side(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """What the calls return, made at once, in their order. If some raise, the first of them is raised."""
    results: dict[int, T] = {}
    errors: dict[int, Exception] = {}

    async def make(place: int) -> None:
        try:
            results[place] = await calls[place]()
        except Exception as error:
            errors[place] = error

    async with anyio.create_task_group() as tasks:
        for place in range(len(calls)):
            tasks.start_soon(make, place)
    if errors:
        raise errors[min(errors)]
    return [results[place] for place in range(len(calls))]


async def in_thread(call: Callable[[], T]) -> T:
    """What a call returns that blocks, made in a thread. Raises `Definite` and `Indefinite` for what a store
    says."""
    try:
        return await anyio.to_thread.run_sync(call)
    except Refused as refused:
        raise Definite(str(refused)) from refused
    except StoreError as error:
        raise Indefinite(str(error)) from error
