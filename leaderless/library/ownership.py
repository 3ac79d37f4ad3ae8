"""Which keys of a group a member owns: it claims them, keeps them, and gives them up.

Every key has at most one live owner: a lease on `group/<group>/claim/<key>` (`leaderless.core.lease`). A member
looks at the claims of its keys four times in `lease_s`. It takes a key whose claim is free or stood still for
`lease_s`, as soon as its share has room. So all keys of a member that died are owned again after
`1.5 * lease_s` and a few requests, counted from the death, or from when the members that take them joined.

Law: a key that is owned is kept by a task that renews its claim. Whatever ends that task gives the claim back,
unless it is not known whether the claim is held: then it stands still.
"""

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import anyio

from leaderless.core.coordination import StoreSilent, read_as
from leaderless.core.lease import Holder, Lease, LeaseLost, lease_of
from leaderless.core.process import Process
from leaderless.errors import LogError
from leaderless.library.cursors import Cursor, Cursors, require_owner
from leaderless.library.host import Host
from leaderless.library.members import Members
from leaderless.library.record import Record
from leaderless.store.names import segment_of

T = TypeVar("T")
BEATS = 4  # of a lease, while it may stand still
STEP_S = 5.0  # how long a step of a lease holds up a member that leaves


@dataclass(slots=True, eq=False)
class Owned:
    """A key that this member owns in `epoch`; `in_flight`: its record was delivered, and is not settled.

    `suspect`: the last owner died, perhaps of the record at the cursor. `leaving`: the key is another member's
    share; nothing more is delivered, and it is released when its record is settled. `failures`: how often the
    record had failed when it was delivered.
    """

    epoch: int
    suspect: bool
    cursor: Cursor = field(default_factory=Cursor)
    in_flight: bool = True  # until the cursor is known
    leaving: bool = False
    failures: int = 0
    read: deque[Record] = field(default_factory=deque)


class Ownership:
    """What one member owns: `keys`. `changed` is set whenever another record may be delivered."""

    def __init__(self, cursors: Cursors, host: Host, members: Members) -> None:
        self._cursors = cursors
        self._host = host
        self._members = members
        self._group = members.membership.group
        self._lease_s = members.membership.lease_s
        self._taking = 0  # keys that are owned, or about to be
        self._share_changed = anyio.Event()
        self.keys: dict[str, Owned] = {}
        self.changed: anyio.Event = anyio.Event()

    async def run(self) -> None:
        """Claim keys, and keep what was claimed, until it is cancelled."""
        with suppress(LogError):  # it goes on without knowing the others
            await self._members.beat()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._take_part)
            for key in dict.fromkeys(self._members.membership.keys):
                tasks.start_soon(self._hold, key)

    def settle(self, owned: Owned) -> None:
        """No record of the key is under way any more."""
        owned.in_flight = False
        self.changed.set()

    def lose(self, key: str, owned: Owned) -> None:
        """Another member has the key, or it is to be claimed again."""
        if self.keys.get(key) is owned:
            del self.keys[key]

    async def _take_part(self) -> None:
        """Tell the other members that this one is alive, and give them what is their share."""
        try:
            while True:
                await anyio.sleep(self._lease_s / BEATS)
                share = self._members.share
                with suppress(LogError):
                    await self._members.beat()
                self._give_up_surplus()
                if share != self._members.share:
                    self._share_changed.set()
                    self._share_changed = anyio.Event()
        finally:
            with anyio.move_on_after(STEP_S, shield=True), suppress(LogError):
                await self._members.leave()

    def _give_up_surplus(self) -> None:
        """Let go of as many keys as there are above the share, idle ones first."""
        kept = [each for each in self.keys.values() if not each.leaving]
        kept.sort(key=lambda each: each.in_flight)
        for owned in kept[: max(0, len(kept) - self._members.share)]:
            owned.leaving = True

    async def _hold(self, key: str) -> None:
        """Claim a key whenever its owner is gone, and keep it."""
        register = f"group/{segment_of(self._group)}/claim/{segment_of(key)}"
        seen: Lease | None = None
        since = 0.0  # when that was known to be there
        while True:
            with suppress(LeaseLost, StoreSilent, LogError):  # it is looked at again
                asked = anyio.current_time()
                found = await self._host.call(read_as(register, lease_of)) or Lease()
                if found != seen:
                    seen, since = found, anyio.current_time()
                is_gone = found.owner is None or asked - since >= self._lease_s
                if is_gone and self._taking < self._members.share:
                    name, clock = self._members.name, self._host.clock
                    lease = Holder(clock, register, name, self._lease_s, lease_of)
                    await self._take(key, lease, found)
            with anyio.move_on_after(self._lease_s / BEATS):
                await self._share_changed.wait()

    async def _take(self, key: str, lease: Holder[Lease], found: Lease) -> None:
        """Take the lease that was found free or dead, and keep it."""
        self._taking += 1
        try:
            if await self._whole(lease.take(found)):
                await self._keep(key, lease, suspect=found.owner is not None)
        finally:
            self._taking -= 1

    async def _keep(self, key: str, lease: Holder[Lease], suspect: bool) -> None:
        """Own a key until it is given up or lost. Raises `LeaseLost`, `StoreSilent`, `LogError`."""
        owned = self.keys[key] = Owned(lease.held.epoch, suspect)
        try:
            change = partial(_owned_in, epoch=owned.epoch)
            owned.cursor = await self._cursors.change(self._group, key, change)
            require_owner(owned.cursor, owned.epoch, key)
            self.settle(owned)
            while self.keys.get(key) is owned:
                if owned.leaving and not owned.in_flight:
                    self.lose(key, owned)
                    await self._whole(lease.release())
                    return
                await anyio.sleep(self._lease_s / BEATS)
                await self._whole(lease.beat())
        except (LeaseLost, StoreSilent):
            raise
        except BaseException:
            self.lose(key, owned)
            with anyio.move_on_after(STEP_S, shield=True), suppress(StoreSilent, LogError):
                await self._host.call(lease.release())
            raise
        finally:
            self.lose(key, owned)

    async def _whole(self, process: Process[T]) -> T:
        """Run a step of a lease to its end although this task is cancelled, for the lease goes on with it.

        Raises `LeaseLost` if it takes longer than `STEP_S`: then the lease may be held or not.
        """
        with anyio.move_on_after(STEP_S, shield=True):
            return await self._host.call(process)
        raise LeaseLost(f"no answer within {STEP_S:g} s")


def _owned_in(cursor: Cursor, epoch: int) -> Cursor:
    return cursor._replace(epoch=max(cursor.epoch, epoch))
