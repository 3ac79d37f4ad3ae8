"""S3-Queue's protocol as published, on the store port.

A producer writes the data first. Then one compare-and-set of the counter takes the offsets, and carries the
new index entry as *pending*, because no object store changes two objects in one step. The next write puts the
entry into the index; whoever increments the counter next does it as well, in case the producer has died.

Published are a text (SPEC.md) and a program in Rust, which do not always agree. This follows the pseudocode
of the text, and the program where that says more. It is weak in six places, which stay as they are:

- *A stale entry overwrites a compacted one* (text and Rust). `pending` is put into the index unconditionally.
  Append three messages and compact [1, 3]: the next append puts the entry of 3 there again, over the
  compacted one. Sections 4.1 and 8.1 of the text clear `pending` after the put, the pseudocode and the Rust
  never do; it makes no difference, since the put comes first. A consumer at 1 finds an entry that does not
  cover 1, and is told for ever that there is nothing.
- *A failed put is ignored* (Rust). A producer whose own put fails has its entry in `pending` alone. When the
  put of the next producer fails, too, that one replaces `pending` nevertheless: an acknowledged message is in
  no index.
- *A lost answer appends twice* (text and Rust). If the client library repeats the compare-and-set of the
  counter after its answer was lost, it meets its own success as a conflict. The producer takes it for a lost
  race.
- *A vacuum deletes what a slow producer refers to* (text and Rust; the text says so). It stands still between
  the data and the counter for longer than the retention; then it commits an entry without data.
- *A range may begin or end inside a batch* (pseudocode and Rust; section 12.3 forbids it). Its compacted
  entry counts other messages than its data has.
- *A message slips in after a fence* (text and Rust; the text says so). The log state is read before the
  counter is changed, not with it.

Two compactions that overlap are not safe, by its own word. What only an operator or a consumer asks for,
fences and cursors, stands in `tests/topics.py`: no producer, reader or compactor needs it.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import anyio
import orjson

from leaderless.store.port import PAGE, Conflict, Found, Store, StoreError, all_of
from simulation.s3_queue.records import (
    BATCH_BYTES_MAX,
    BATCH_MESSAGES_MAX,
    COMPACTED,
    COUNTER,
    CURSOR,
    FENCED,
    LOG_STATE,
    OPEN,
    WAL,
    Counter,
    EmptyBatch,
    Entry,
    Fenced,
    Json,
    Message,
    Misaligned,
    NotInitialised,
    RetriesExhausted,
    TooLarge,
    Vanished,
    index_key,
    lines,
    values_in,
)

TRIES = 10  # for an object that others change
PAUSE_S, PAUSE_S_MAX = 0.05, 5.0
READ_TRIES = 3
RETENTION_S = 3600.0


class Batch(NamedTuple):
    """Messages of a producer: the key of their data, how many, and since when the data is being written."""

    data: str
    length: int
    since: float

    def entry_at(self, first: int) -> Entry:
        """The index entry, if the first message gets the offset `first`."""
        return Entry(first + self.length - 1, WAL, self.length, self.data)


class Topic:
    """One topic in `store`, which has its objects alone. `name` gives a new unique name for each batch."""

    def __init__(self, store: Store, name: Callable[[], str]) -> None:
        self._store = store
        self._name = name

    async def initialise(self) -> None:
        """Make the topic, if it does not exist."""
        for key, value in (
            (COUNTER, Counter(1, None).written()),
            (LOG_STATE, orjson.dumps({"state": OPEN, "version": 0})),
            (CURSOR, _cursor(1)),
        ):
            with suppress(Conflict):  # it exists already
                await self._store.create(key, value)

    # ------------------------------------------------------------ produce

    async def produce(self, values: Sequence[Json]) -> list[int]:
        """Append a batch; returns the offsets.

        Raises `EmptyBatch`, `TooLarge`, `Fenced`, `RetriesExhausted`, `NotInitialised`; the data is an orphan
        then.
        """
        text = _checked(values)
        batch = Batch(f"data/wal/{self._name()}", len(values), anyio.current_time())
        await self._store.write(batch.data, text)
        if orjson.loads((await self._object(LOG_STATE)).value)["state"] == FENCED:
            raise Fenced("the topic is fenced")
        entry = await self._assign(batch)
        await self._try_to_materialise(entry)
        return [*range(entry.first, entry.offset + 1)]

    async def _assign(self, batch: Batch) -> Entry:
        """Take offsets for a batch: the counter is raised, and carries the entry."""

        async def raised(text: bytes) -> bytes:
            counter = Counter.read(text)
            await self._try_to_materialise(counter.pending)
            entry = batch.entry_at(counter.value)
            return Counter(entry.offset + 1, entry).written()

        pending = Counter.read(await self._change(COUNTER, raised)).pending
        assert pending
        return pending

    async def _try_to_materialise(self, entry: Entry | None) -> None:
        """Put a pending entry into the index, if there is one; whether it gets there or not."""
        if entry:
            with suppress(StoreError):
                await self._materialise(entry)

    async def _materialise(self, entry: Entry) -> None:
        """Put an entry into the index, whatever is there."""
        await self._store.write(index_key(entry.offset), orjson.dumps(entry.plain))

    async def _change(self, key: str, changed: Callable[[bytes], Awaitable[bytes]]) -> bytes:
        """Change one of the objects that `initialise` makes; returns what it holds then."""
        for attempt in range(TRIES):
            found = await self._object(key)
            value = await changed(found.value)
            if value == found.value:
                return value
            with suppress(Conflict):
                await self._store.compare_and_set(key, value, found.version)
                return value
            await self._pause(attempt)
        raise RetriesExhausted(f"{key} was changed by others {TRIES} times")

    async def _pause(self, attempt: int) -> None:
        """After a lost race: 50 ms that double; chance has no part in it."""
        await anyio.sleep(min(PAUSE_S * 2.0**attempt, PAUSE_S_MAX))

    async def _counter(self) -> tuple[Counter, str]:
        found = await self._object(COUNTER)
        return Counter.read(found.value), found.version

    async def _object(self, key: str) -> Found:
        found = await self._store.read(key)
        if found is None:
            raise NotInitialised(f"the topic has no {key}; initialise it")
        return found

    # ------------------------------------------------------------ read

    async def ceiling(self, offset: int) -> Entry | None:
        """The entry that covers an offset. None: it is beyond the last one, or the next one begins later."""
        for _ in range(READ_TRIES):
            page = await self._store.list_objects("index", index_key(offset - 1), 1)
            entry = await self._entry(page[0].key) if page else (await self._counter())[0].pending
            covers = entry is not None and entry.first <= offset <= entry.offset
            if covers and not page:
                await self._try_to_materialise(entry)
            if entry or not page:
                return entry if covers else None
        raise Vanished(f"the entry of offset {offset} was deleted {READ_TRIES} times in between")

    async def _entry(self, key: str) -> Entry | None:
        found = await self._store.read(key)
        return Entry.of(orjson.loads(found.value)) if found else None

    async def read(self, offset: int) -> list[Message]:
        """The messages of one batch or compacted range, from `offset` on."""
        for _ in range(READ_TRIES):
            entry = await self.ceiling(offset)
            if entry is None:
                return []
            if found := await self._store.read(entry.data):  # or else it was compacted in between
                at = range(entry.first, entry.offset + 1)
                messages = map(Message, at, values_in(found.value))
                return [message for message in messages if message.offset >= offset]
        raise Vanished(f"the data of offset {offset} is not there")

    # ------------------------------------------------------------ compact

    async def compactable(self) -> tuple[int, int] | None:
        """A range for `resume`: one that was begun, or from the cursor to the last entry in the index."""
        start, end = await self._compacted_to(), (await self._counter())[0].value
        found = [await self._entry(key) for key in await self._index(start, end)]
        entries = [entry for entry in found if entry]
        begun = [entry.offset for entry in entries if entry.type == COMPACTED]
        ends = begun[:1] or [entry.offset for entry in entries[-1:]]
        return (start, ends[0]) if ends else None

    async def compact(self, start: int, end: int) -> None:
        """Put the batches of a range into one object, in three steps. Raises `Misaligned`, `Vanished`."""
        entries = await self._batches(start, end)
        values: list[Json] = []
        for entry in entries:
            found = await self._store.read(entry.data)
            if found is None:
                raise Vanished(f"the data of offset {entry.offset} is not there")
            values += values_in(found.value)
        merged = Entry(end, COMPACTED, end - start + 1, f"data/compacted/{start:020}-{end:020}")
        await self._store.write(merged.data, lines(values))
        await self._replace(entries[-1], merged)
        await self._delete_below(start, end)
        for entry in entries:
            with suppress(StoreError):
                await self._store.delete([entry.data])
        await self._move_cursor(end + 1)

    async def resume(self, start: int, end: int) -> None:
        """As `compact`, also after one of this range that has crashed; then old data is left to a vacuum.

        The published command line does not call it: there `compact` refuses a range that was begun.
        """
        entry = await self._entry(index_key(end))
        if entry is None or entry.type == WAL:
            await self.compact(start, end)
        elif await self._compacted_to() <= end:
            if entry.first != start:
                raise Misaligned(f"the range that was compacted begins at {entry.first}")
            if await self._store.read(entry.data) is None:
                raise Vanished(f"the data of the compacted range [{start}, {end}] is not there")
            await self._delete_below(start, end)
            await self._move_cursor(end + 1)

    async def _batches(self, start: int, end: int) -> list[Entry]:
        """The entries that cover a range; the first may begin before it, and the last end behind it."""
        entries: list[Entry] = []
        while start <= end:
            entry = await self.ceiling(start)
            if entry is None or entry.type != WAL:
                raise Misaligned(f"offset {start} is in no batch, or compacted already")
            entries.append(entry)
            start = entry.offset + 1
        return entries

    async def _replace(self, _old: Entry, merged: Entry) -> None:
        """The first step, after the data: the compacted entry in place of the last one."""
        await self._store.write(index_key(merged.offset), orjson.dumps(merged.plain))

    async def _delete_below(self, start: int, end: int) -> None:
        """The second step: the entries of the range but the last."""
        keys = await self._index(start, end)
        for first in range(0, len(keys), PAGE):
            await self._store.delete(keys[first : first + PAGE])

    async def _move_cursor(self, to: int) -> None:
        """The third step: the cursor only rises."""

        async def moved(cursor: bytes) -> bytes:
            return _cursor(max(to, orjson.loads(cursor)["value"]))

        await self._change(CURSOR, moved)

    async def _index(self, start: int, end: int) -> list[str]:
        """The keys of the entries from offset `start` to below `end`, page by page."""
        keys: list[str] = []
        after = index_key(start - 1)
        while page := await self._store.list_objects("index", after, PAGE):
            after = page[-1].key
            keys += [each.key for each in page if each.key < index_key(end)]
            if len(page) < PAGE or after >= index_key(end):
                break
        return keys

    async def _compacted_to(self) -> int:
        return int(orjson.loads((await self._object(CURSOR)).value)["value"])

    # ------------------------------------------------------------ operate

    async def vacuum(self, now: float, retention_s: float = RETENTION_S) -> int:
        """Delete data older than `retention_s` seconds that no entry names; `now` is seconds since 1970."""
        old = [
            listed.key
            async for listed in all_of(self._store, "data/wal")
            if now - (listed.modified or now) > retention_s
        ]
        named = await self._named()
        orphans = [key for key in old if key not in named]
        for key in orphans:
            await self._store.delete([key])
        return len(orphans)

    async def _named(self) -> set[str]:
        """The keys of data that the index names, and what is pending after it was read."""
        found = [await self._entry(listed.key) async for listed in all_of(self._store, "index")]
        found.append((await self._counter())[0].pending)
        return {entry.data for entry in found if entry}


def _checked(values: Sequence[Json]) -> bytes:
    if not values:
        raise EmptyBatch("a batch needs at least one message")
    text = lines(values)
    if len(values) > BATCH_MESSAGES_MAX or len(text) > BATCH_BYTES_MAX:
        limits = f"{BATCH_MESSAGES_MAX} messages and {BATCH_BYTES_MAX} bytes"
        raise TooLarge(f"{len(values)} messages of {len(text)} bytes; a batch may have {limits}")
    return text


def _cursor(value: int) -> bytes:
    return orjson.dumps({"value": value})
