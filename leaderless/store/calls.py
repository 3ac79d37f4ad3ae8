"""Calls of a store as a log makes them: with patience, side by side, in threads, and its listings.

What a store says (`leaderless.store.port`) becomes an error of the log (`leaderless.errors`). This is the one
place where the text of an object is parsed. What does not parse, or does not fit, may be a damaged answer. It
is no answer (`Damaged`), so the object is read again.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import anyio.to_thread

from leaderless.core.coordination import InvariantBroken, Json, Misfit
from leaderless.core.shape import FORMATS, LOG_FORMAT
from leaderless.errors import Broken, Closed, Definite, Indefinite, OtherFormat, Unreachable
from leaderless.store.compression import REGISTER_BYTES, plain
from leaderless.store.names import is_data, is_own
from leaderless.store.port import (
    PAGE,
    Found,
    Listed,
    OutcomeUnknown,
    Refused,
    Store,
    StoreError,
    Version,
)
from leaderless.wire.codec import json_in

R = TypeVar("R")
T = TypeVar("T")
W = TypeVar("W")
READ_AT_ONCE = 16
PATIENCE_S = 30.0  # with a store, where the caller says nothing else
PAUSE_S, PAUSE_S_MAX = 0.1, 2.0  # between two attempts: it doubles
NUMBERED = ("compacted", "committed/", "table")  # registers that have the number of their format
# What makes a blocking call, as `anyio.to_thread.run_sync`; a loop without threads has one of its own.
THREADS: ContextVar[Callable[..., Awaitable[Any]]] = ContextVar(
    "threads", default=anyio.to_thread.run_sync
)
DAMAGED_MAX = 4  # answers in a row: then the object is what is damaged


class Damaged(OutcomeUnknown):
    """The answer of a read is not what any program writes there; the next one may be."""


class Held(NamedTuple, Generic[T]):
    """What an object holds, its version, and when it was written (see `leaderless.store.port.Listed`)."""

    value: T
    version: Version
    modified: float | None = None


def parsed(key: str, found: Found, decode: Callable[[Json], T]) -> Held[T]:
    """What an object holds, decoded from its JSON, which may be compressed.

    Raises `Damaged`, `OtherFormat` for another number, and `Refused` where it cannot be unpacked.

    `decode` raises `Misfit`, `ValueError`, `TypeError` or `KeyError` for what no program writes there.
    """
    if len(found.value) > REGISTER_BYTES and not is_data(key):
        raise Damaged(f"{key!r} has {len(found.value)} bytes, and may have {REGISTER_BYTES}")
    try:
        value = json_in(plain(found.value))
        _require_known(key, value)
        return Held(decode(value), found.version, found.modified)
    except (Misfit, ValueError, TypeError, KeyError) as misfit:
        raise Damaged(
            f"{key!r} makes no sense ({type(misfit).__name__}: {misfit}): {found.value[:80]!r}"
        ) from misfit


def _require_known(key: str, value: Json) -> None:
    match value:
        case {"format": int(number)} if number not in FORMATS and key.startswith(NUMBERED):
            raise OtherFormat(
                f"{key!r} has format {number}, and this version knows {LOG_FORMAT}: another "
                "version wrote it, so read the log with that one, and append its records to a new log"
            )


async def read_once(store: Store, key: str, decode: Callable[[Json], T]) -> Held[T] | None:
    """What an object holds, None when it is missing. Raises `Damaged` and other `StoreError`."""
    found = await store.read(key)
    return None if found is None else parsed(key, found, decode)


async def read_value(
    store: Store, key: str, decode: Callable[[Json], T], patience_s: float = PATIENCE_S
) -> Held[T] | None:
    """The same with patience, see `patiently`. Raises `Broken`, `Definite`, and of these `Unreachable`."""
    return await patiently(lambda: read_once(store, key, decode), patience_s, reads=True)


async def objects_in(
    store: Store, folder: str = "", patience_s: float = PATIENCE_S
) -> AsyncIterator[Listed]:
    """Every object of a folder, in order; each page of them is asked for with patience.

    Raises `Definite`, and of these `Unreachable`.
    """
    after = ""
    while page := await patiently(
        partial(store.list_objects, folder, after), patience_s, reads=True
    ):
        for each in page:
            yield each
        after = page[-1].key


async def own_objects(
    store: Store, folder: str, patience_s: float = PATIENCE_S
) -> AsyncIterator[Listed]:
    """Those that the log in `store` can have written. Raises as `objects_in`."""
    async for each in objects_in(store, folder, patience_s):
        if is_own(each.key):
            yield each


async def own_keys(store: Store, folder: str, patience_s: float = PATIENCE_S) -> list[str]:
    """The keys of these. Raises as `objects_in`."""
    return [each.key async for each in own_objects(store, folder, patience_s)]


class Deleted(NamedTuple):
    """Objects that were deleted, and their bytes."""

    objects: int
    bytes: int


async def delete_all(store: Store, keys: Sequence[str], patience_s: float = PATIENCE_S) -> None:
    """Delete any number of objects. Raises as `patiently`."""
    for start in range(0, len(keys), PAGE):
        await patiently(partial(store.delete, keys[start : start + PAGE]), patience_s)


async def patiently(
    operation: Callable[[], Awaitable[T]], patience_s: float = PATIENCE_S, *, reads: bool = False
) -> T:
    """Carry out an operation that may be repeated without harm, until the store is clear.

    After `patience_s` seconds it is given up, wherever it is then. `reads`: it changes nothing.
    Raises `Definite` when the store refuses, `Broken` when what comes makes no sense however often it is read.
    At the end of the patience raises `Unreachable` for an operation that reads, `Indefinite` for others.
    """
    pause_s, damaged, last = PAUSE_S, 0, OutcomeUnknown("no answer")
    with anyio.move_on_after(patience_s):
        while True:
            try:
                return await operation()
            except Refused as refused:
                # A program that does not catch it shows this text, not those of the layers below.
                raise Definite(str(refused)) from None
            except OutcomeUnknown as unknown:
                last, damaged = unknown, damaged + 1 if isinstance(unknown, Damaged) else 0
            if damaged == DAMAGED_MAX:
                raise Broken(str(last)) from None
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)
    kind = Unreachable if reads else Indefinite
    raise kind(f"no clear answer within {patience_s:g} s: {last}") from None


async def reached(call: Callable[[], Awaitable[T]], patience_s: float, *, reads: bool) -> T:
    """The same for a call that has errors of the log: one that the store did not answer is made again."""

    async def once() -> T:
        try:
            return await call()
        except (Broken, Closed):
            raise
        except (Unreachable, Indefinite) as silent:
            raise OutcomeUnknown(str(silent)) from silent

    return await patiently(once, patience_s, reads=reads)


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


async def each_of(
    items: Sequence[W], call: Callable[[W], Awaitable[T]]
) -> AsyncIterator[tuple[W, T]]:
    """The items in their order, each with what `call` returns for it, `READ_AT_ONCE` at a time."""
    for start in range(0, len(items), READ_AT_ONCE):
        some = items[start : start + READ_AT_ONCE]
        calls = [partial(call, each) for each in some]
        for pair in zip(some, await side_by_side(calls), strict=True):
            yield pair


async def answered(
    asking: Generator[Sequence[W], list[T], R], answer: Callable[[W], Awaitable[T]]
) -> R:
    """What a reader without I/O returns, when each thing that it asks for is answered.

    Raises `Broken` for what the reader finds broken, and what `answer` raises.
    """
    try:
        wanted = next(asking)
        while True:
            wanted = asking.send([found async for _, found in each_of(wanted, answer)])
    except StopIteration as end:
        result: R = end.value
        return result
    except InvariantBroken as broken:
        raise broken_by(broken) from broken


def broken_by(told: object) -> Broken:
    """The error for a log that breaks an invariant; what is `told` begins with its name."""
    return Broken(
        f"{told}. Bring back what is missing or was changed, such as from a version that the bucket keeps; "
        "`leaderless fsck` names all of it"
    )


async def blocking(
    call: Callable[[], T], *, abandons: bool = False, limiter: anyio.CapacityLimiter | None = None
) -> T:
    """What a call returns that blocks, made in a thread: the one place where calls of files leave their loop.

    `abandons`: whether a caller that is cancelled leaves the call alone, and does not wait for it. `limiter`:
    of threads.
    """
    returned: T = await THREADS.get()(call, abandon_on_cancel=abandons, limiter=limiter)
    return returned


async def in_thread(call: Callable[[], T], *, abandons: bool = False) -> T:
    """As `blocking`. Raises `Definite` and `Indefinite` for what a store says."""
    try:
        return await blocking(call, abandons=abandons)
    except Refused as refused:
        raise Definite(str(refused)) from refused
    except StoreError as error:
        raise Indefinite(str(error)) from error
