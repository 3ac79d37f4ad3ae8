"""Consuming: a member of a group claims keys, gets their records in order, and acknowledges them.

    async with log.consumer("billing", keys=["eu", "us"]) as consumer:
        async for record in consumer:
            await charge(record.value)
            await consumer.ack(record)

Every key has at most one live owner (`leaderless.groups.ownership`). Before a new owner gets a record it
writes its epoch into the cursor; from then on the acknowledgement of an older owner raises `NotOwner`. So each
record is delivered at least once, in the order of its key, and the next one of the key only after it was
acknowledged or buried. `batch` delivers several records of a key at once, and one `ack` covers them.

A record that fails `failures_max` times (`fail`, or the death of the member that had it) is *buried*: the log
gets a dead letter `{"key": ..., "offset": ..., "failures": ..., "cause": ...}` in the key `dead/<group>`, and
the cursor moves on (`leaderless.groups.redrive` brings the record back). `cause` is that of the last failure,
left out where `fail` was told none. The letter has a name (`leaderless.hosting.named`), so it comes once,
whoever buries the record again.
A death counts for the first record under way. So a record that its next failure buries is delivered alone.

A key of which a retention has deleted records that the group has not processed raises `OffsetOutOfRange` with
the first offset that is left, each time it is the key's turn, until a `commit` moves the group's cursor there.

Law: what ends without its result can be done again, and then counts once. After an exception the iterator goes
on: a record that was not delivered comes with a call that ends `latency_s` later. After an error other than
`NotOwner` of `ack` or `fail` the record is still delivered, and the same call can be repeated.

Members share the keys equally (`leaderless.groups.members`). When a member joins, the others each finish the
record that they have of a surplus key, and release the key.

`consume` and `ack` consume by hand: they give the record at a group's cursor, and acknowledge it with one of
three answers, those of S3-Queue. A consumer that crashes before it acknowledges gets the record again: at
least once.
"""

import shlex
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from itertools import islice
from math import inf
from typing import Literal, NamedTuple

import anyio

from leaderless.errors import LogError, NotOwner, OffsetOutOfRange, Unfit
from leaderless.groups.cursors import LOST, Cursor, Cursors, require_owner, require_reached
from leaderless.groups.members import Members
from leaderless.groups.ownership import Owned, Ownership
from leaderless.hosting.host import Task
from leaderless.hosting.named import Named
from leaderless.hosting.reads import PAUSE_S, Readable, Record
from leaderless.store.values import Value

Answer = Literal["advanced", "already_processed", "offset_mismatch"]
Read = Callable[[str, int, int], Awaitable[list[Record]]]  # as `Log.read`
READ_AT_ONCE = 100  # records of a key
CAUSE_MAX = 1000  # characters of a cause that are kept
DIED = "its member died, or stood still for longer than lease_s"


class Consumer(AsyncIterator[Record]):
    """One member of a group, which `Log.consumer` makes and runs; an asynchronous iterator of its records."""

    def __init__(self, log: Readable, named: Named, cursors: Cursors, members: Members) -> None:
        self._log = log
        self._named = named
        self._cursors = cursors
        self._membership = members.membership
        self._ownership = Ownership(cursors, members)
        self._owned = self._ownership.keys
        self._looked_at = -inf
        self._pause_s = self._pause_s_min = min(PAUSE_S, members.membership.latency_s)
        self.run: Task = self._ownership.run

    @property
    def keys(self) -> list[str]:
        """The keys that this member owns now."""
        return [*self._owned]

    async def __anext__(self) -> Record:
        """The next record of a key that is owned here; waits until there is one."""
        [record] = await self.batch(1)
        return record

    async def batch(self, limit: int = READ_AT_ONCE) -> list[Record]:
        """The next records of one key that is owned here, in a row, at most `limit`; waits until there is one.

        `ack` of the last one acknowledges all. Raises `OffsetOutOfRange`: see the module.
        """
        if limit < 1:
            raise Unfit(f"limit must be at least 1, got {limit}")
        with self._ownership.asking():
            while True:
                self._ownership.changed = changed = anyio.Event()
                # Also while records are here, or a key that has many would keep back the others.
                is_due = self._looked_at + self._pause_s <= anyio.current_time()
                has_news = is_due and await self._look()
                for key, owned in [*self._owned.items()]:
                    with suppress(NotOwner):
                        if records := await self._deliver(key, owned, limit):
                            return records
                if not is_due:
                    has_news = await self._look()
                if not has_news:
                    with anyio.move_on_after(self._pause_s):
                        await changed.wait()

    async def ack(self, record: Record) -> None:
        """The `record`, and those that came before it in its batch, were processed.

        Raises `NotOwner`: another member has the key, and gets them again.
        """
        owned = self._owner_of(record)
        await self._change(record.key, owned, lambda old: old.raised_to(record.offset))
        if owned.cursor.next not in owned.under_way:
            self._ownership.settle(owned)

    async def fail(self, record: Record, cause: BaseException | str | None = None) -> None:
        """The `record` was not processed: it comes again, or is buried. Those after it come again.

        `cause`: why, for a dead letter; 1000 characters at most. Those that came before it in its batch were
        processed. Raises `NotOwner` as `ack`.
        """
        owned = self._owner_of(record)
        is_first = record.offset == owned.under_way.start
        failures = owned.failures + 1 if is_first else 1

        def failed(old: Cursor) -> Cursor:
            return old.raised_to(record.offset - 1).failed(record.offset, failures, _text_of(cause))

        await self._change(record.key, owned, failed)
        if owned.cursor.next == record.offset and self._has_failed_for_good(owned):
            await self._bury(record, owned)
        owned.read.clear()
        self._ownership.settle(owned)

    # ------------------------------------------------------------ records

    async def _look(self) -> bool:
        """Look for records of keys that have none here; whether there are any."""
        self._looked_at = anyio.current_time()
        wanted = {
            key: each.cursor.next
            for key, each in self._owned.items()
            if not each.read and not each.busy and not each.leaving
        }
        self._pause_s = min(2 * self._pause_s, self._membership.latency_s)
        if not wanted:
            return False
        before = dict(self._owned)
        looked = await self._log.look(wanted, READ_AT_ONCE)
        for key in {**looked.records, **looked.earliest}:
            if (owned := self._owned.get(key)) and owned is before[key] and not owned.busy:
                owned.read = deque(looked.records.get(key, []))
                owned.earliest = looked.earliest.get(key, 0)
        if looked.records:
            self._pause_s = self._pause_s_min
        return bool(looked.records or looked.earliest)

    async def _deliver(self, key: str, owned: Owned, limit: int) -> list[Record]:
        """The next records of a key, which are under way from then on; none when there are none to deliver."""
        if owned.busy or owned.leaving or anyio.current_time() < owned.rests_until:
            return []
        if owned.earliest > owned.cursor.next:
            await self._require_left(key, owned)
        while owned.read and owned.read[0].offset < owned.cursor.next:
            owned.read.popleft()  # acknowledged meanwhile
        if not owned.read:
            return []
        self._come_last(key, owned)
        record, delivered = owned.read[0], False
        owned.under_way = range(record.offset, record.offset + 1)
        try:
            delivered = await self._is_to_be_processed(record, owned)
        except LogError:  # such as `Fenced`, where it is to be buried
            owned.rests_until = anyio.current_time() + self._membership.latency_s
            raise
        finally:  # also after an error, and when it is cancelled
            if not delivered:
                self._ownership.settle(owned)
        if not delivered or self._owned.get(key) is not owned:  # it was lost meanwhile
            return []
        is_last_try = owned.cursor.failures + 1 >= self._membership.failures_max
        records = [*islice(owned.read, 1 if is_last_try else limit)]
        self._ownership.lost.pop(key, None)
        owned.under_way = range(record.offset, record.offset + len(records))
        return records

    async def _require_left(self, key: str, owned: Owned) -> None:
        """Raise `OffsetOutOfRange` if a retention has deleted what the group processes next."""
        earliest, owned.earliest = owned.earliest, 0
        owned.read.clear()  # it is looked at again
        self._come_last(key, owned)
        await self._change(key, owned, lambda old: old)
        if earliest > owned.cursor.next:
            group = self._membership.group
            hint = f"commit offset {earliest - 1} for group {group!r}, and it goes on behind that"
            raise OffsetOutOfRange(key, owned.cursor.next, earliest, hint)

    def _come_last(self, key: str, owned: Owned) -> None:
        """Let the other keys come before this one from now on."""
        if self._owned.get(key) is owned:
            self._owned[key] = self._owned.pop(key)

    async def _is_to_be_processed(self, record: Record, owned: Owned) -> bool:
        """Count the death of the last owner, if there was one; False when the record was buried."""
        if owned.suspect:
            failures = owned.cursor.failures + 1  # a number, so that a repeat counts once
            await self._change(
                record.key, owned, lambda old: old.failed(record.offset, failures, DIED)
            )
            owned.suspect = False
        owned.failures = owned.cursor.failures
        if self._has_failed_for_good(owned):
            await self._bury(record, owned)
            return False
        return True

    def _has_failed_for_good(self, owned: Owned) -> bool:
        return owned.cursor.failures >= self._membership.failures_max

    async def _bury(self, record: Record, owned: Owned) -> None:
        letter: Value = {
            "key": record.key,
            "offset": record.offset,
            "failures": owned.cursor.failures,
            **({"cause": owned.cursor.cause} if owned.cursor.cause else {}),
        }
        group = self._membership.group
        await self._named.append_letter(group, record.key, record.offset, letter)
        await self._change(record.key, owned, lambda old: old.raised_to(record.offset))

    def _owner_of(self, record: Record) -> Owned:
        owned = self._owned.get(record.key)
        if owned is None:
            raise NotOwner(
                f"this member has lost {record.key!r}; the record is delivered elsewhere. {LOST}"
            )
        if record.offset not in owned.under_way or record.offset < owned.cursor.next:
            if record.offset in self._ownership.lost.get(record.key, ()):
                raise NotOwner(
                    f"this member has lost {record.key!r}, and owns it anew: take the record from the iterator "
                    f"once more, unless another member has processed it. {LOST}"
                )
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


def _text_of(cause: BaseException | str | None) -> str:
    text = (
        f"{type(cause).__name__}: {cause}" if isinstance(cause, BaseException) else str(cause or "")
    )
    return text[:CAUSE_MAX].encode("utf-8", "backslashreplace").decode()


class Acked(NamedTuple):
    """The answer to an acknowledgement, and the offset that the group processes next."""

    status: Answer
    next: int


async def consume(read: Read, cursors: Cursors, group: str, key: str) -> Record | None:
    """The record at the group's cursor, which does not move; None when there is none yet."""
    cursor = await cursors.read(group, key)
    try:
        records = await read(key, cursor.next, 1)
    except OffsetOutOfRange as lost:
        command = f"leaderless ack {shlex.quote(key)} {lost.earliest - 1} --through"
        hint = f"`{command} --group {shlex.quote(group)}` goes on behind that"
        raise OffsetOutOfRange(key, lost.offset, lost.earliest, hint) from None
    return records[0] if records else None


async def ack(
    cursors: Cursors, group: str, key: str, offset: int, *, through: bool = False
) -> Acked:
    """Acknowledge the record at the cursor, which moves on; `through`: all records up to this one.

    "already_processed": it was before, and nothing changes. "offset_mismatch": the record is further on than
    the cursor, and nothing changes. Raises `Unfit` for a record that is not there yet.
    """
    end = await cursors.end_after(key, offset)
    answer: Answer = "advanced"

    def change(old: Cursor) -> Cursor:
        nonlocal answer
        if offset == old.next or (through and offset > old.next):
            require_reached(key, offset, end)
            answer = "advanced"
            return old.raised_to(offset)
        answer = "already_processed" if offset < old.next else "offset_mismatch"
        return old

    cursor = await cursors.change(group, key, change)
    return Acked(answer, cursor.next)
