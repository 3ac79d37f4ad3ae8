"""A member of a group of consumers: it claims keys, gets their records in order, and acknowledges them.

    async with log.consumer("billing", keys=["eu", "us"]) as consumer:
        async for record in consumer:
            await charge(record.value)
            await consumer.ack(record)

Every key has at most one live owner (`leaderless.library.ownership`). Before a new owner gets a record it
writes its epoch into the cursor; from then on the acknowledgement of an older owner raises `NotOwner`. So each
record is delivered at least once, in the order of its key, and the next one of the key only after it was
acknowledged or buried.

A record that fails `failures_max` times (`fail`, or the death of the member that had it) is *buried*: the log
gets a dead letter `{"key": ..., "offset": ..., "failures": ...}` in the key `dead/<group>`, and the cursor
moves on. The letter has a name (`leaderless.library.named`), so it comes once, whoever buries the record again.

Law: what ends without its result can be done again, and then counts once. After an exception the iterator goes
on: a record that was not delivered comes with one of the next calls. After an error other than `NotOwner` of
`ack` or `fail` the record is still delivered, and the same call can be repeated.

Members share the keys equally (`leaderless.library.members`). When a member joins, the others each finish the
record that they have of a surplus key, and release the key.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Protocol

import anyio

from leaderless.errors import NotOwner, Unfit
from leaderless.library.cursors import Cursor, Cursors, require_owner
from leaderless.library.host import Host, Task
from leaderless.library.members import Members
from leaderless.library.ownership import Owned, Ownership
from leaderless.library.record import Record
from leaderless.library.tail import Pauses
from leaderless.store.names import segment_of
from leaderless.store.values import Value

READ_AT_ONCE = 100  # records of a key


class Records(Protocol):
    """What a consumer needs of a log (`leaderless.library.log.Log`)."""

    async def append_named(
        self, writer: str, seq: int, records: Sequence[tuple[str, Value]]
    ) -> None:
        """See `Log.append_named`."""

    async def read_many(self, offsets: Mapping[str, int], limit: int) -> dict[str, list[Record]]:
        """See `Log.read_many`."""


class Consumer(AsyncIterator[Record]):
    """One member of a group, which `Log.consumer` makes and runs; an asynchronous iterator of its records."""

    def __init__(self, log: Records, cursors: Cursors, host: Host, members: Members) -> None:
        self._log = log
        self._cursors = cursors
        self._membership = members.membership
        self._ownership = Ownership(cursors, host, members)
        self._owned = self._ownership.keys
        self._read_at = -inf
        self._pauses = Pauses(self._membership.latency_s)
        self._pause_s = self._membership.latency_s
        self.run: Task = self._ownership.run

    @property
    def keys(self) -> list[str]:
        """The keys that this member owns now."""
        return [*self._owned]

    async def __anext__(self) -> Record:
        """The next record of a key that is owned here; waits until there is one."""
        while True:
            self._ownership.changed = changed = anyio.Event()
            # Also while records are here, or a key that has many would keep back the others.
            is_due = self._read_at <= anyio.current_time() - self._membership.latency_s
            has_news = is_due and await self._read()
            for key, owned in [*self._owned.items()]:
                with suppress(NotOwner):
                    if record := await self._deliver(key, owned):
                        return record
            if not is_due:
                has_news = await self._read()
            if not has_news:
                with anyio.move_on_after(self._pause_s):
                    await changed.wait()

    async def ack(self, record: Record) -> None:
        """The `record` was processed. Raises `NotOwner`: another member has the key, and gets it again."""
        owned = self._owner_of(record)
        await self._change(record.key, owned, lambda old: old.raised_to(record.offset))
        self._ownership.settle(owned)

    async def fail(self, record: Record) -> None:
        """The `record` was not processed: it comes again, or is buried. Raises `NotOwner` as `ack`."""
        owned = self._owner_of(record)
        await self._count_failure(record, owned, owned.failures + 1)
        if owned.cursor.next == record.offset and self._has_failed_for_good(owned):
            await self._bury(record, owned)
        owned.read.clear()
        self._ownership.settle(owned)

    # ------------------------------------------------------------ records

    async def _read(self) -> bool:
        """Read records of keys that have none here; whether there are any."""
        self._read_at = anyio.current_time()
        wanted = {
            key: each.cursor.next
            for key, each in self._owned.items()
            if not each.read and not each.in_flight and not each.leaving
        }
        if not wanted:
            self._pause_s = self._membership.latency_s
            return False
        before = dict(self._owned)
        found = await self._log.read_many(wanted, READ_AT_ONCE)
        self._pause_s = self._pauses.next_s(bool(found))
        for key, records in found.items():
            if (owned := self._owned.get(key)) and owned is before[key] and not owned.in_flight:
                owned.read = deque(records)
        return bool(found)

    async def _deliver(self, key: str, owned: Owned) -> Record | None:
        """The next record of a key, which is in flight from then on; None when there is none to deliver."""
        while owned.read and owned.read[0].offset < owned.cursor.next:
            owned.read.popleft()  # acknowledged meanwhile
        if owned.in_flight or owned.leaving or not owned.read:
            return None
        self._come_last(key, owned)
        owned.in_flight = True
        record, delivered = owned.read[0], False
        try:
            delivered = await self._is_to_be_processed(record, owned)
        finally:  # also after an error, and when it is cancelled
            if not delivered:
                self._ownership.settle(owned)
        return record if delivered else None

    def _come_last(self, key: str, owned: Owned) -> None:
        """Let the other keys come before this one from now on."""
        if self._owned.get(key) is owned:
            self._owned[key] = self._owned.pop(key)

    async def _is_to_be_processed(self, record: Record, owned: Owned) -> bool:
        """Bring the cursor to a record, and count the death of the last owner; False when it was buried."""
        if record.offset > owned.cursor.next:  # a retention deleted what was before
            await self._change(record.key, owned, lambda old: old.raised_to(record.offset - 1))
        if owned.suspect:
            await self._count_failure(record, owned, owned.cursor.failures + 1)
            owned.suspect = False
        owned.failures = owned.cursor.failures
        if self._has_failed_for_good(owned):
            await self._bury(record, owned)
            return False
        return True

    async def _count_failure(self, record: Record, owned: Owned, failures: int) -> None:
        """Let the cursor say that the record has failed so often: a number, so that a repeat counts once."""
        await self._change(record.key, owned, lambda old: old.failed(record.offset, failures))

    def _has_failed_for_good(self, owned: Owned) -> bool:
        return owned.cursor.failures >= self._membership.failures_max

    async def _bury(self, record: Record, owned: Owned) -> None:
        letter: Value = {
            "key": record.key,
            "offset": record.offset,
            "failures": owned.cursor.failures,
        }
        name = f"group/{segment_of(self._membership.group)}/dead/{segment_of(record.key)}"
        await self._log.append_named(name, record.offset, [(self._membership.dead_letters, letter)])
        await self._change(record.key, owned, lambda old: old.raised_to(record.offset))

    def _owner_of(self, record: Record) -> Owned:
        owned = self._owned.get(record.key)
        if owned is None:
            raise NotOwner(
                f"this member has lost {record.key!r}; the record is delivered elsewhere"
            )
        if not owned.in_flight or record.offset != owned.cursor.next:
            raise Unfit(
                f"offset {record.offset} of {record.key!r} was not delivered, or is settled"
            )
        return owned

    async def _change(self, key: str, owned: Owned, change: Callable[[Cursor], Cursor]) -> None:
        def fenced(old: Cursor) -> Cursor:
            require_owner(old, owned.epoch, key)
            return change(old)

        try:
            owned.cursor = await self._cursors.change(self._membership.group, key, fenced)
        except NotOwner:
            self._ownership.lose(key, owned)
            raise
