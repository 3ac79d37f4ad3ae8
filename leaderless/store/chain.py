"""Reads the chain that holds a log, for programs without a replica (`leaderless.core.headlog.chain`)."""

import sys
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeVar

from leaderless.core.coordination import Json
from leaderless.core.headlog.chain import Sealed, sealed_below
from leaderless.core.headlog.index import COMPACTED, Index, IndexEntry, index_of, page_of
from leaderless.core.headlog.records import (
    EMPTY,
    HEAD,
    Head,
    Segment,
    head_of,
    segment_name,
    segment_of,
)
from leaderless.store.calls import READ_AT_ONCE, Held, answered, broken_by, read_value
from leaderless.store.port import Store

T = TypeVar("T")


async def read_tail(
    store: Store, segments_max: int = sys.maxsize
) -> tuple[Index, Head, list[Held[Segment]] | None]:
    """The index, which may be newer than the head; the head; and the segments below it that the index lacks.

    None for more segments than `segments_max`; each has the time when it was written. Raises `LogError`.
    """
    index = await read_index(store)
    head = await read_head(store)
    if len(range(index.sealed, head.sealed)) > segments_max:
        return index, head, None

    async def answer(number: int | None) -> Held[Segment | None] | Index | None:
        if number is None:
            return await read_index(store)
        found = await read_value(store, segment_name(number), segment_of)
        return found if found and found.value else None

    reader: Sealed[Held[Segment]] = sealed_below(index.sealed, head.sealed, READ_AT_ONCE)
    newer, segments = await answered(reader, answer)
    return newer or index, head, segments


async def read_head(store: Store) -> Head:
    """What `head` holds. Raises `LogError`."""
    held = await read_value(store, HEAD, head_of)
    return held.value if held else EMPTY


async def read_index(store: Store) -> Index:
    """What `compacted` holds. Raises `LogError`."""
    held = await read_value(store, COMPACTED, index_of)
    return held.value if held else Index()


async def read_listed(store: Store, register: str, decode: Callable[[Json], T]) -> T:
    """What a register holds that an index or a page names. Raises `LogError`, `Broken` when it is missing."""
    found = await read_value(store, register, decode)
    if found is None:
        raise broken_by(f"CommittedReadable: {register} is missing")
    return found.value


async def runs_below(
    store: Store, listed: Iterable[IndexEntry], first: int = 0
) -> AsyncIterator[IndexEntry]:
    """The runs below what an index lists, those of segments from `first` on. Raises as `read_listed`."""
    for each in listed:
        if each.last < first:
            continue
        if not each.level:
            yield each
            continue
        page = await read_listed(store, each.register(), page_of)
        async for leaf in runs_below(store, page.children, first):
            yield leaf
