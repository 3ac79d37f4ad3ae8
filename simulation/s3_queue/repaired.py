"""S3-Queue's protocol with the smallest changes that mend it; `published` has the rest.

- *An index entry is only ever created*, so a stale one cannot overwrite anything. Compaction leaves a tombstone
  in place of an entry, or a late write would create it again (`specs/TwoStepAssign`, the configurations
  `repaired` and `create-without-tombstone`). A tombstone names the compacted entry. They are never deleted,
  and a reader inside a compacted range makes one request more.
- *No entry is replaced before it is in the index.* When the put of the pending entry fails, the producer gives
  up before it changes the counter.
- *A producer knows its own write.* The name of its data is unique, and stands in the counter, and later in the
  index entry, the compacted entry or the tombstone of its offset. After a conflict or a lost answer it looks
  there before it tries again. That costs a request for each lost race.
- *No vacuum overtakes a producer.* A vacuum changes the counter after it has listed the old data, and before it
  reads the entries. So an increment that rests on an older counter fails. One that read the counter later
  sees by its own clock that its data is too old, and gives up (`Stalled`).
- *A range is made of whole batches*, or it is refused.

A message can still slip in after a fence, and two compactions at once are still not safe.
"""

from collections.abc import Callable
from contextlib import suppress

import anyio
import orjson

from leaderless.store.port import Conflict, OutcomeUnknown, Store
from simulation.s3_queue.client import Repeating
from simulation.s3_queue.published import READ_TRIES, RETENTION_S, TRIES, Batch, Topic
from simulation.s3_queue.records import (
    COUNTER,
    DELETED,
    Counter,
    Entry,
    Misaligned,
    QueueError,
    RetriesExhausted,
    Stalled,
    Vanished,
    index_key,
)


class RepairedTopic(Topic):
    """As `Topic`; `retention_s` is that of its vacuums, the same in all processes."""

    def __init__(
        self, store: Store, name: Callable[[], str], retention_s: float = RETENTION_S
    ) -> None:
        super().__init__(Repeating(store, updates=False), name)
        self._retention_s = retention_s

    # ------------------------------------------------------------ an entry is only created

    async def _materialise(self, entry: Entry) -> None:
        created = entry._replace(origin=entry.data)
        with suppress(Conflict):  # it is there, or was compacted
            await self._store.create(index_key(entry.offset), orjson.dumps(created.plain))

    async def _replace(self, old: Entry, merged: Entry) -> None:
        await super()._replace(old, merged._replace(origin=old.origin))

    async def _delete_below(self, start: int, end: int) -> None:
        for key in await self._index(start, end):
            entry = await self._entry(key)
            assert entry
            tombstone = entry._replace(type=DELETED, data=index_key(end))
            await self._store.write(key, orjson.dumps(tombstone.plain))

    async def _batches(self, start: int, end: int) -> list[Entry]:
        entries = await super()._batches(start, end)
        if not entries or (entries[0].first, entries[-1].offset) != (start, end):
            raise Misaligned(f"the range [{start}, {end}] is empty, or an edge lies inside a batch")
        return entries

    async def ceiling(self, offset: int) -> Entry | None:
        """See `Topic`."""
        entry = await super().ceiling(offset)
        for _ in range(READ_TRIES):
            if entry is None or entry.type != DELETED:
                return entry
            entry = await self._entry(entry.data)
        raise Vanished(f"the tombstone of offset {offset} names no compacted entry")

    # ------------------------------------------------------------ the own write is known

    async def _assign(self, batch: Batch) -> Entry:
        tried: tuple[Entry, str] | None = (
            None  # what may still happen, and the counter that it rests on
        )
        for attempt in range(TRIES + 1):
            counter, version = await self._counter()
            if tried:
                entry, rests_on = tried
                if await self._is_own(entry, counter):
                    return entry
                tried = tried if version == rests_on else None
            self._require_fit(batch, attempt, unsettled=tried is not None)
            if counter.pending:
                await self._materialise(counter.pending)
            entry = batch.entry_at(counter.value)
            raised = counter._replace(value=counter.value + batch.length, pending=entry).written()
            try:
                await self._store.compare_and_set(COUNTER, raised, version)
            except (Conflict, OutcomeUnknown):
                tried = entry, version
                await self._pause(attempt)
            else:
                return entry
        raise AssertionError("the last attempt raises or returns")

    async def _is_own(self, entry: Entry, counter: Counter) -> bool:
        """Whether the offset of `entry` was given to its data."""
        if counter.value <= entry.offset:
            return False
        if counter.pending and counter.pending.offset == entry.offset:
            return counter.pending.data == entry.data
        found = await self._entry(index_key(entry.offset))
        return found is not None and found.origin == entry.data

    def _require_fit(self, batch: Batch, attempt: int, *, unsettled: bool) -> None:
        """Raise what forbids a further try.

        While a try is unsettled, nobody may be told that nothing happened: `OutcomeUnknown` then.
        """
        try:
            if attempt == TRIES:
                raise RetriesExhausted(f"the counter was changed by others {TRIES} times")
            if anyio.current_time() - batch.since > self._retention_s / 2:
                raise Stalled("the data may have been deleted by now; produce again")
        except QueueError as error:
            if unsettled:
                raise OutcomeUnknown(f"{error}, and an earlier try may have succeeded") from error
            raise

    # ------------------------------------------------------------ a vacuum stops slow producers

    async def _named(self) -> set[str]:
        async def touched(value: bytes) -> bytes:
            counter = Counter.read(value)
            return counter._replace(touched=counter.touched + 1).written()

        pending = Counter.read(await self._change(COUNTER, touched)).pending
        return await super()._named() | ({pending.data} if pending else set())
