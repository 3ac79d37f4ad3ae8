"""A member of a group of consumers: it claims keys, gets their records in order, and acknowledges them.

    async with log.consumer("billing", keys=["eu", "us"]) as consumer:
        async for record in consumer:
            await charge(record.value)
            await consumer.ack(record)

Every key has at most one live owner: a lease on `group/<group>/claim/<key>` (`leaderless.core.lease`). A member
that dies loses its keys after `lease_s`. Before a new owner gets a record it writes its epoch into the
cursor; from then on the acknowledgement of an older owner raises `NotOwner`. So each record is delivered at
least once, in the order of its key, and the next one of the key only after it was acknowledged or buried.

A record that fails `failures_max` times (`fail`, or the death of the member that had it) is *buried*: the log
gets a dead letter `{"key": ..., "offset": ..., "failures": ...}` in the key `dead/<group>`, and the cursor
moves on. A crash between the two buries it again.

Members share the keys equally (`leaderless.library.members`). When a member joins, the others each finish the
record that they have of a surplus key, and release the key.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

import anyio

from leaderless.core.coordination import StoreSilent
from leaderless.core.lease import Lease, LeaseLost, State
from leaderless.core.process import Process
from leaderless.core.strategy import Clock
from leaderless.errors import LogError, NotOwner, Unfit
from leaderless.library.cursors import Cursor, Cursors, require_owner
from leaderless.library.host import Host
from leaderless.library.members import Members
from leaderless.library.record import Record
from leaderless.store.names import segment_of
from leaderless.store.values import Value

T = TypeVar("T")
BEATS = 4  # of a lease, while it may stand still
READ_AT_ONCE = 100  # records of a key
STEP_S = 5.0  # how long a step of a lease holds up a member that leaves


class Records(Protocol):
    """What a consumer needs of a log (`leaderless.library.log.Log`)."""

    async def append(self, key: str, value: Value) -> int: ...

    async def read_many(
        self, offsets: Mapping[str, int], limit: int
    ) -> dict[str, list[Record]]: ...


@dataclass(slots=True, eq=False)
class _Owned:
    """A key that this member owns in `epoch`; `in_flight`: its record was delivered, and is not settled.

    `suspect`: the last owner died, perhaps of the record at the cursor. `leaving`: the key is another member's
    share; nothing more is delivered, and it is released when its record is settled.
    """

    epoch: int
    cursor: Cursor
    suspect: bool
    in_flight: bool = False
    leaving: bool = False
    read: deque[Record] = field(default_factory=deque)


class Consumer:
    """One member; `leaderless.library.log.Log.consumer` makes and runs it."""

    def __init__(
        self, log: Records, cursors: Cursors, host: Host, clock: Clock, members: Members
    ) -> None:
        self._log = log
        self._cursors = cursors
        self._host = host
        self._clock = clock
        self._members = members
        self._membership = members.membership
        self._owned: dict[str, _Owned] = {}
        self._taking = 0  # keys that are owned, or about to be
        self._changed = anyio.Event()

    @property
    def keys(self) -> list[str]:
        """The keys that this member owns now."""
        return [*self._owned]

    async def run(self) -> None:
        """Claim keys, and keep what was claimed, until it is cancelled."""
        with suppress(LogError):  # it goes on without knowing the others
            await self._members.beat()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._take_part)
            for key in dict.fromkeys(self._membership.keys):
                tasks.start_soon(self._hold, key)

    def __aiter__(self) -> AsyncIterator[Record]:
        return self

    async def __anext__(self) -> Record:
        """The next record of a key that is owned here; waits until there is one."""
        while True:
            self._changed = anyio.Event()
            for key, owned in [*self._owned.items()]:
                with suppress(NotOwner):
                    if record := await self._deliver(key, owned):
                        return record
            if not await self._read():
                with anyio.move_on_after(self._membership.poll_s):
                    await self._changed.wait()

    async def ack(self, record: Record) -> None:
        """The record was processed. Raises `NotOwner`: another member has the key, and gets it again."""
        owned = self._owner_of(record)
        await self._change(record.key, owned, lambda old: old.raised_to(record.offset))
        self._settle(owned)

    async def fail(self, record: Record) -> None:
        """The record was not processed: it comes again, or is buried. Raises `NotOwner` as `ack`."""
        owned = self._owner_of(record)
        await self._change(record.key, owned, _failed)
        if owned.cursor.failures >= self._membership.failures_max:
            await self._bury(record, owned)
        owned.read.clear()
        self._settle(owned)

    # ------------------------------------------------------------ records

    async def _read(self) -> bool:
        """Read records of keys that have none here; whether there are any."""
        wanted = {
            key: each.cursor.next
            for key, each in self._owned.items()
            if not each.in_flight and not each.leaving
        }
        if not wanted:
            return False
        before = dict(self._owned)
        found = await self._log.read_many(wanted, READ_AT_ONCE)
        for key, records in found.items():
            if (owned := self._owned.get(key)) and owned is before[key] and not owned.in_flight:
                owned.read = deque(records)
        return bool(found)

    async def _deliver(self, key: str, owned: _Owned) -> Record | None:
        while owned.read and owned.read[0].offset < owned.cursor.next:
            owned.read.popleft()  # acknowledged meanwhile
        if owned.in_flight or owned.leaving or not owned.read:
            return None
        owned.in_flight = True
        record = owned.read[0]
        if record.offset > owned.cursor.next:  # a retention deleted what was before
            await self._change(key, owned, lambda old: old.raised_to(record.offset - 1))
        if owned.suspect:
            owned.suspect = False
            await self._change(key, owned, _failed)
        if owned.cursor.failures >= self._membership.failures_max:
            await self._bury(record, owned)
            self._settle(owned)
            return None
        return record

    async def _bury(self, record: Record, owned: _Owned) -> None:
        letter: Value = {
            "key": record.key,
            "offset": record.offset,
            "failures": owned.cursor.failures,
        }
        await self._log.append(self._membership.dead_letters, letter)
        await self._change(record.key, owned, lambda old: old.raised_to(record.offset))

    def _settle(self, owned: _Owned) -> None:
        owned.in_flight = False
        self._changed.set()

    def _owner_of(self, record: Record) -> _Owned:
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

    async def _change(self, key: str, owned: _Owned, change: Callable[[Cursor], Cursor]) -> None:
        def fenced(old: Cursor) -> Cursor:
            require_owner(old, owned.epoch, key)
            return change(old)

        try:
            owned.cursor = await self._cursors.change(self._membership.group, key, fenced)
        except NotOwner:
            self._lose(key, owned)
            raise

    # ------------------------------------------------------------ claims

    async def _take_part(self) -> None:
        """Tell the other members that this one is alive, and give them what is their share."""
        try:
            while True:
                await anyio.sleep(self._membership.lease_s / BEATS)
                with suppress(LogError):
                    await self._members.beat()
                self._give_up_surplus()
        finally:
            with anyio.move_on_after(STEP_S, shield=True), suppress(LogError):
                await self._members.leave()

    def _give_up_surplus(self) -> None:
        """Let go of as many keys as there are above the share, idle ones first."""
        kept = [each for each in self._owned.values() if not each.leaving]
        kept.sort(key=lambda each: each.in_flight)
        for owned in kept[: max(0, len(kept) - self._members.share)]:
            owned.leaving = True

    async def _hold(self, key: str) -> None:
        """Claim a key whenever its owner is gone, and keep it."""
        membership = self._membership
        register = f"group/{segment_of(membership.group)}/claim/{segment_of(key)}"
        while True:
            lease = Lease(self._clock, register, self._members.name, membership.lease_s)
            with suppress(LeaseLost, StoreSilent, LogError):  # it is claimed again
                found = await self._host.call(lease.seek())
                if self._taking < self._members.share:
                    await self._take(key, lease, found)
            await anyio.sleep(membership.lease_s / BEATS)

    async def _take(self, key: str, lease: Lease, found: State) -> None:
        """Take the lease that was found free or dead, and keep it."""
        self._taking += 1
        try:
            if await self._whole(lease.take(found)):
                await self._keep(key, lease, suspect=found["owner"] is not None)
        finally:
            self._taking -= 1

    async def _keep(self, key: str, lease: Lease, suspect: bool) -> None:
        epoch = lease.held["epoch"]
        owned = _Owned(epoch, Cursor(), suspect)
        self._owned[key] = owned
        owned.in_flight = True  # until the cursor is known
        try:
            owned.cursor = await self._cursors.change(
                self._membership.group, key, partial(_owned_in, epoch=epoch)
            )
            require_owner(owned.cursor, epoch, key)
            self._settle(owned)
            while self._owned.get(key) is owned:
                if owned.leaving and not owned.in_flight:
                    self._lose(key, owned)
                    await self._whole(lease.release())
                    return
                await anyio.sleep(self._membership.lease_s / BEATS)
                await self._whole(lease.beat())
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(STEP_S, shield=True), suppress(StoreSilent, LogError):
                await self._host.call(lease.release())
            raise
        finally:
            self._lose(key, owned)

    async def _whole(self, process: Process[T]) -> T:
        """Run a step of a lease to its end although this task is cancelled, for the lease goes on with it.

        Raises `LeaseLost` if it takes longer than `STEP_S`: then the lease may be held or not.
        """
        with anyio.move_on_after(STEP_S, shield=True):
            return await self._host.call(process)
        raise LeaseLost(f"no answer within {STEP_S:g} s")

    def _lose(self, key: str, owned: _Owned) -> None:
        if self._owned.get(key) is owned:
            del self._owned[key]


def _owned_in(cursor: Cursor, epoch: int) -> Cursor:
    return cursor._replace(epoch=max(cursor.epoch, epoch))


def _failed(cursor: Cursor) -> Cursor:
    return cursor._replace(failures=cursor.failures + 1)
