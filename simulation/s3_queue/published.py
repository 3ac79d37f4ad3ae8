"""S3-Queue's protocol as published, on the store port.

A producer writes the data first. Then one compare-and-set of the counter takes the offsets, and carries the new
index entry as *pending*, because no object store changes two objects in one step. The next write puts the
entry into the index; whoever increments the counter next does it as well, in case the producer has died.

It is weak in four places, which stay as they are:

- *A stale entry overwrites a compacted one.* `pending` is never cleared, and it is put into the index
  unconditionally. Append three messages and compact [1, 3]: the next append puts the entry of 3 there
  again, over the compacted one. 1 and 2 cannot be read any more.
- *A lost answer appends twice.* If the client library repeats the compare-and-set of the counter after its
  answer was lost, it meets its own success as a conflict. The producer takes it for a lost race.
- *A vacuum deletes what a slow producer refers to.* It stands still between the data and the counter for
  longer than the retention; then it commits an entry without data.
- *A message slips in after a fence.* The log state is read before the counter is changed, not with it.

Two compactions at once are not safe, by its own word. `ceiling` finds the entry that covers an offset. The
cursors of consumers are left out: no producer, reader or compactor looks at them.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import NamedTuple

import anyio
import orjson

from leaderless.store.port import PAGE, Conflict, Found, Listed, Store, all_of
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

TRIES = 10  # of a producer for the counter
PAUSE_S, PAUSE_S_MAX = 0.05, 5.0
READ_TRIES = 3
CAS_TRIES = 100  # for objects that few change
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
    """One topic in `store`, which has its objects alone.

    `name` gives a new unique name for each batch; `random` spreads the pauses of producers that lost a race.
    """

    def __init__(self, store: Store, name: Callable[[], str], random: Random) -> None:
        self._store = store
        self._name = name
        self._random = random

    async def initialise(self) -> None:
        """Make the topic, if it does not exist."""
        for key, value in (
            (LOG_STATE, orjson.dumps({"state": OPEN, "version": 1})),
            (CURSOR, _cursor(1)),
            (COUNTER, Counter(1, None).written()),
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
        entry = await self._assign(batch)
        await self._materialise(entry)
        return [*range(entry.first, entry.offset + 1)]

    async def _assign(self, batch: Batch) -> Entry:
        """Take offsets for a batch: the counter is raised, and carries the entry."""
        for attempt in range(TRIES):
            await self._require_open()
            counter, version = await self._counter()
            if counter.pending:
                await self._materialise(counter.pending)
            entry = batch.entry_at(counter.value)
            raised = Counter(counter.value + batch.length, entry).written()
            try:
                await self._store.compare_and_set(COUNTER, raised, version)
            except Conflict:
                await self._pause(attempt)
            else:
                return entry
        raise RetriesExhausted(f"the counter was changed by others {TRIES} times")

    async def _materialise(self, entry: Entry) -> None:
        """Put an entry into the index, whatever is there."""
        await self._store.write(index_key(entry.offset), orjson.dumps(entry.plain))

    async def _pause(self, attempt: int) -> None:
        """Between two tries: 50 ms that double, half of them by chance."""
        pause_s = min(PAUSE_S * 2.0**attempt, PAUSE_S_MAX)
        await anyio.sleep(pause_s * (0.5 + self._random.random() / 2))

    async def _require_open(self) -> None:
        if orjson.loads((await self._object(LOG_STATE)).value)["state"] == FENCED:
            raise Fenced("the topic is fenced")

    async def _counter(self) -> tuple[Counter, str]:
        found = await self._object(COUNTER)
        return Counter.read(found.value), found.version

    async def _object(self, key: str) -> Found:
        """One of the objects that `initialise` makes."""
        found = await self._store.read(key)
        if found is None:
            raise NotInitialised(f"the topic has no {key}; initialise it")
        return found

    async def _change(self, key: str, changed: Callable[[bytes], bytes | None]) -> bytes:
        """Change one of these objects, unless `changed` gives None; returns what it holds then."""
        for _ in range(CAS_TRIES):
            found = await self._object(key)
            value = changed(found.value)
            if value is None:
                return found.value
            with suppress(Conflict):
                await self._store.compare_and_set(key, value, found.version)
                return value
        raise RetriesExhausted(f"{key} was changed by others each time")

    # ------------------------------------------------------------ read

    async def ceiling(self, offset: int) -> Entry | None:
        """The entry with the first message at or after `offset`; None when there is none yet."""
        for _ in range(READ_TRIES):
            page = await self._store.list_objects("index", index_key(offset - 1), 1)
            if page:
                entry = await self._entry(page[0].key)
            elif (entry := (await self._counter())[0].pending) is None or entry.offset < offset:
                return None
            if entry and (page or entry.first <= offset):
                return entry  # or else others have written entries before the pending one since
        raise Vanished(f"the entry of offset {offset} was deleted {READ_TRIES} times in between")

    async def _entry(self, key: str) -> Entry | None:
        found = await self._store.read(key)
        return Entry.of(orjson.loads(found.value)) if found else None

    async def read(self, offset: int) -> list[Message]:
        """The messages of one batch or compacted range, from `offset` on, or from the first one after it."""
        for _ in range(READ_TRIES):
            entry = await self.ceiling(offset)
            if entry is None:
                return []
            if found := await self._store.read(entry.data):  # or else it was compacted in between
                values = values_in(found.value)
                messages = [Message(entry.first + at, value) for at, value in enumerate(values)]
                return [message for message in messages if message.offset >= offset]
        raise Vanished(f"the data of offset {offset} is not there")

    # ------------------------------------------------------------ compact

    async def compactable(self) -> tuple[int, int] | None:
        """A range for `compact`: one that was begun, or from the cursor to the last entry of one listing."""
        start = await self._compacted_to()
        entries = await self._entries(start, None)
        begun = [entry.offset for entry in entries if entry.type == COMPACTED]
        ends = begun[:1] or [entry.offset for entry in entries[-1:]]
        return (start, ends[0]) if ends else None

    async def compact(self, start: int, end: int) -> None:
        """Put the batches of a range into one object, in three steps; a second call resumes after a crash.

        Raises `Misaligned`.
        """
        entries = await self._entries(start, end)
        last = entries[-1] if entries else None
        if not (last and last.type == COMPACTED and (last.first, last.offset) == (start, end)):
            await self._merge(entries, start, end)
        await self._delete_below(start, end)
        await self._move_cursor(end + 1)

    async def _merge(self, entries: list[Entry], start: int, end: int) -> None:
        """The first step: the data, and its entry in place of the last one, whose data is an orphan then."""
        _require_aligned(entries, start, end)
        values: list[Json] = []
        for entry in entries:
            found = await self._store.read(entry.data)
            if found is None:
                raise Vanished(f"the data of offset {entry.offset} is not there")
            values += values_in(found.value)
        data = f"data/compacted/{start}-{end}"
        await self._store.write(data, lines(values))
        merged = Entry(end, COMPACTED, end - start + 1, data)
        await self._replace(entries[-1], merged)

    async def _replace(self, _old: Entry, merged: Entry) -> None:
        await self._store.write(index_key(merged.offset), orjson.dumps(merged.plain))

    async def _delete_below(self, start: int, end: int) -> None:
        """The second step: entries that the compacted one covers, and their data."""
        covered = await self._entries(start, end - 1)
        await self._store.delete([index_key(entry.offset) for entry in covered])
        await self._store.delete([entry.data for entry in covered])

    async def _move_cursor(self, to: int) -> None:
        """The third step: the cursor only rises."""

        def moved(cursor: bytes) -> bytes | None:
            return _cursor(to) if orjson.loads(cursor)["value"] < to else None

        await self._change(CURSOR, moved)

    async def _entries(self, start: int, end: int | None) -> list[Entry]:
        """The entries that end in a range, of one page of the index at most."""
        page = await self._store.list_objects("index", index_key(start - 1), PAGE)
        keys = [each.key for each in page if end is None or each.key <= index_key(end)]
        entries = [await self._entry(key) for key in keys]
        return [entry for entry in entries if entry]

    async def _compacted_to(self) -> int:
        return int(orjson.loads((await self._object(CURSOR)).value)["value"])

    # ------------------------------------------------------------ operate

    async def fence(self) -> int:
        """Close the topic for producers; returns the version of its state."""
        return await self._set_state(FENCED)

    async def unfence(self) -> int:
        """Open it again; returns the version of its state."""
        return await self._set_state(OPEN)

    async def _set_state(self, wanted: str) -> int:
        def set_to(value: bytes) -> bytes | None:
            state = orjson.loads(value)
            text = {"state": wanted, "version": state["version"] + 1}
            return orjson.dumps(text) if state["state"] != wanted else None

        found = await self._change(LOG_STATE, set_to)
        return int(orjson.loads(found)["version"])

    async def vacuum(self, now: float, retention_s: float = RETENTION_S) -> int:
        """Delete data older than `retention_s` seconds that no entry names; `now` is seconds since 1970."""
        old = [
            listed
            async for listed in all_of(self._store, "data/wal")
            if now - (listed.modified or now) > retention_s
        ]
        return await self._delete_unreferenced(old)

    async def _delete_unreferenced(self, old: list[Listed]) -> int:
        counter, _ = await self._counter()
        named = {counter.pending.data} if counter.pending else set()
        async for listed in all_of(self._store, "index"):
            if entry := await self._entry(listed.key):
                named.add(entry.data)
        orphans = [listed.key for listed in old if listed.key not in named]
        for start in range(0, len(orphans), PAGE):
            await self._store.delete(orphans[start : start + PAGE])
        return len(orphans)


def _checked(values: Sequence[Json]) -> bytes:
    if not values:
        raise EmptyBatch("a batch needs at least one message")
    text = lines(values)
    if len(values) > BATCH_MESSAGES_MAX or len(text) > BATCH_BYTES_MAX:
        limits = f"{BATCH_MESSAGES_MAX} messages and {BATCH_BYTES_MAX} bytes"
        raise TooLarge(f"{len(values)} messages of {len(text)} bytes; a batch may have {limits}")
    return text


def _require_aligned(entries: Sequence[Entry], start: int, end: int) -> None:
    """The entries fill the range from edge to edge, and none of them is compacted."""
    at = start
    for entry in entries:
        if entry.first != at or entry.type != WAL:
            raise Misaligned(f"the range [{start}, {end}] is not made of whole batches at {at}")
        at = entry.offset + 1
    if at != end + 1 or not entries:
        raise Misaligned(f"the range [{start}, {end}] has gaps, or its end lies inside a batch")


def _cursor(value: int) -> bytes:
    return orjson.dumps({"value": value})
