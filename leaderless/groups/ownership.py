"""Which keys of a group a member owns: what the register of the group says (`leaderless.groups.members`).

Every key has at most one live owner. A member beats three times in `lease_s`, and as soon as another one's
lease has run out. So all keys of a member that died are owned again after `1.5 * lease_s` and a few requests,
counted from the death, or from when the members that take them joined.

Law: what this member owns is what the register said after its last beat. When no beat came through for
`lease_s`, it owns nothing until the next one does. Records of a key come when its epoch stands in the cursor:
from then on acknowledgements of older owners are refused.

A member that no program asks for records for `idle_s` counts as one that takes no more keys than it has records
under way. So while there are other members, they get the rest.
"""

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf

import anyio
import anyio.abc

from leaderless.errors import LogError, NotOwner
from leaderless.groups.cursors import Cursor, Cursors, require_owner
from leaderless.groups.members import Members, Roster, Tenure
from leaderless.hosting.reads import Record

log: logging.Logger = logging.getLogger("leaderless")

BEATS = 3  # of a lease, while it may stand still
STEP_S = 5.0  # how long a beat may take that begins when the lease is over, or a member that leaves
NOTHING = range(0)
STOOD_STILL = (
    "group %s: the event loop of this program stood still for %.1f s. With lease_s=%g other members take it "
    "for dead, and count a failure of its record: run what blocks in a thread, or choose a longer lease_s"
)


@dataclass(slots=True, eq=False)
class Owned:
    """A key that this member owns in `epoch`; `under_way`: offsets that were delivered, and are not settled.

    `suspect`: the last owner died, perhaps of the record at the cursor. `ready`: the epoch stands in the
    cursor. `leaving`: the key is another member's share; nothing more is delivered, and it is given back when
    nothing is under way. `failures`: how often the first record under way had failed when it was delivered.
    `earliest`: the first offset that a retention has left, if the cursor was before it at the last look.
    `rests_until`: a time before which no record of the key is tried, because the last one raised an error.
    """

    epoch: int
    suspect: bool
    cursor: Cursor = field(default_factory=Cursor)
    ready: bool = False
    under_way: range = NOTHING
    leaving: bool = False
    failures: int = 0
    read: deque[Record] = field(default_factory=deque)
    earliest: int = 0
    rests_until: float = -inf

    @property
    def busy(self) -> bool:
        """Whether nothing may be delivered yet."""
        return not self.ready or bool(self.under_way)


class Ownership:
    """What one member owns: `keys`. `changed` is set whenever another record may be delivered.

    `lost`: offsets that were under way when a key was lost, until its records are delivered anew.
    """

    def __init__(self, cursors: Cursors, members: Members) -> None:
        self._cursors = cursors
        self._members = members
        self._membership = members.membership
        self._until = -inf  # when the lease runs out, unless a beat comes through
        self._due = inf  # when the next beat is due
        self._woken = anyio.Event()
        self._asking = 0  # calls that wait for a record
        self._asked_at = anyio.current_time()
        self.keys: dict[str, Owned] = {}
        self.lost: dict[str, range] = {}
        self.changed: anyio.Event = anyio.Event()

    async def run(self) -> None:
        """Claim keys, and keep what was claimed, until it is cancelled."""
        async with anyio.create_task_group() as tasks:
            try:
                while True:
                    began, shown = anyio.current_time(), self._keys_max()
                    await self._beat(began, shown, tasks)
                    await self._rest(began, shown)
            finally:
                with anyio.move_on_after(STEP_S, shield=True), suppress(LogError):
                    await self._members.leave()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """A program waits for a record."""
        if self._is_idle():
            self._woken.set()
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1
            self._asked_at = anyio.current_time()

    def settle(self, owned: Owned) -> None:
        """No record of the key is under way any more."""
        owned.under_way = NOTHING
        self.changed.set()
        if owned.leaving:
            self._woken.set()

    def lose(self, key: str, owned: Owned) -> None:
        """Another member has the key, or it is to be claimed again."""
        if self.keys.get(key) is owned:
            del self.keys[key]
            self.lost[key] = owned.under_way or self.lost.get(key, NOTHING)

    def _is_idle(self) -> bool:
        away_s = anyio.current_time() - self._asked_at
        return not self._asking and away_s >= self._membership.idle_s

    def _keys_max(self) -> int | None:
        most = self._membership.keys_max
        if not self._is_idle():
            return most
        busy = sum(bool(each.under_way) for each in self.keys.values())
        return busy if most is None else min(busy, most)

    def _released(self) -> list[str]:
        return [key for key, owned in self.keys.items() if owned.leaving and not owned.busy]

    async def _beat(self, began: float, keys_max: int | None, tasks: anyio.abc.TaskGroup) -> None:
        """Beat, and follow what the register says then; without a beat that came through, lose all."""
        lease_s, late_s = self._membership.lease_s, began - self._due
        if self.keys and late_s > lease_s * (1 - 1 / BEATS):
            log.warning(STOOD_STILL, self._membership.group, late_s, lease_s)
        left_s = self._until - began  # it owns nothing when they are over
        with anyio.move_on_after(left_s if left_s > 0 else STEP_S), suppress(LogError):
            roster = await self._members.beat(keys_max, self._released())
            self._until = began + lease_s
            self._follow(roster, tasks)
        if anyio.current_time() >= self._until:
            for key, owned in [*self.keys.items()]:
                self.lose(key, owned)

    def _follow(self, roster: Roster, tasks: anyio.abc.TaskGroup) -> None:
        """Own what the register says, and let go of as many keys as there are above the share."""
        own = {key: each for key, each in roster.keys.items() if each.owner == self._members.name}
        for key, owned in [*self.keys.items()]:
            if key not in own or own[key].epoch != owned.epoch:
                self.lose(key, owned)
        for key in [key for key in own if key not in self.keys]:
            name = key, own[key].epoch
            owned = self.keys[key] = Owned(own[key].epoch, name in self._members.suspect)
            self._members.suspect.discard(name)
            tasks.start_soon(self._begin, key, owned, own[key])
        kept = [each for each in self.keys.values() if not each.leaving]
        kept.sort(key=lambda each: each.busy)  # idle ones first
        for owned in kept[: max(0, len(kept) - self._members.share)]:
            owned.leaving = True

    async def _rest(self, began: float, shown: int | None) -> None:
        """Wait until the next beat is due."""
        self._woken = anyio.Event()
        if self._released() or shown != self._keys_max():
            return
        beat_at = began + self._membership.lease_s / BEATS
        self._due = min(beat_at, self._members.next_death(began))
        with anyio.CancelScope(deadline=self._due):
            await self._woken.wait()

    async def _begin(self, key: str, owned: Owned, tenure: Tenure) -> None:
        """Write the epoch into the cursor; the key is ready then."""

        def begun(old: Cursor) -> Cursor:
            new = old._replace(epoch=max(old.epoch, tenure.epoch))
            return new.raised_to(tenure.first - 1) if old.committed is None else new

        while self.keys.get(key) is owned:
            try:
                owned.cursor = await self._cursors.change(self._membership.group, key, begun)
                require_owner(owned.cursor, owned.epoch, key)
                owned.ready = True
                self.settle(owned)
                return
            except NotOwner:
                self.lose(key, owned)
            except LogError:
                await anyio.sleep(self._membership.lease_s / BEATS)
