"""Who takes part in a group of consumers, and which keys each member owns: one register for a group.

    group/<group>/members     {"version": n, "members": {member: [beat, keys_max or null, wanted], ...},
                               "keys": {key: [epoch, owner or null, first], ...}}

Each member raises its beat. The same compare-and-set takes keys that are free, up to its share, and gives keys
back. So a beat costs one write, whatever the number of keys. A member whose beat stood still for `lease_s` of
the watcher's own clock counts as dead, and is taken out. Its keys are free then. If it was only slow, its next
beat brings it back, and it goes on with the keys that nobody has taken.

Law (`OneLiveClaim`): a key gets another owner only together with a higher `epoch`.

A key stays in `keys` for as long as there is the group, so a retention knows what the group has still to read.
`first` is the first offset that the log had of it when a member wanted it for the first time. `wanted` is a
digest of the keys that a member wants: those with the same one share their keys equally. `version` counts the
changes, so that the register never holds one value twice.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from math import inf
from typing import NamedTuple

import anyio
import orjson

from leaderless.core.coordination import Json
from leaderless.core.decoding import KNOWN, Decoder, record, row
from leaderless.errors import Unfit
from leaderless.hosting.named import letters_of
from leaderless.store.calls import Held, patiently, read_once
from leaderless.store.names import path_segment
from leaderless.store.port import Store, replaced

LATENCY_S = 2.0  # the longest pause between two looks at a log without news
IDLE_S = 300.0  # a member that is not asked for records gives its keys to others


class Member(NamedTuple):
    """What a member tells of itself: its beat, the most keys that it takes, None: any number, and `wanted`."""

    beat: int
    keys_max: int | None = None
    wanted: str = ""


class Tenure(NamedTuple):
    """Who owns a key in `epoch`, None: nobody; `first`: see the module."""

    epoch: int = 0
    owner: str | None = None
    first: int = 0


class Roster(NamedTuple):
    """What the register of a group holds."""

    version: int = 0
    members: Mapping[str, Member] = {}
    keys: Mapping[str, Tenure] = {}

    @property
    def value(self) -> dict[str, Json]:
        """As the register holds it."""
        members: dict[str, Json] = {name: [*member] for name, member in self.members.items()}
        keys: dict[str, Json] = {key: [*tenure] for key, tenure in self.keys.items()}
        return {"version": self.version, "members": members, "keys": keys}


KNOWN[Tenure] = row(Tenure, lambda tenure: tenure.owner is None or tenure.epoch > 0)
roster_of: Decoder[Roster] = record(Roster)  # of the register of a group


@dataclass(frozen=True, slots=True)
class Membership:
    """How a member takes part; see `leaderless.api.log.Log.consumer`. Raises `Unfit`."""

    group: str
    keys: tuple[str, ...]
    lease_s: float = 10.0
    failures_max: int = 5
    keys_max: int | None = None
    latency_s: float = LATENCY_S
    idle_s: float = IDLE_S

    def __post_init__(self) -> None:
        try:
            for name in (self.group, *self.keys):
                path_segment(name)
        except ValueError as error:
            raise Unfit(str(error)) from None
        if not self.keys:
            raise Unfit("a consumer needs at least one key")
        for name in ("lease_s", "latency_s", "idle_s"):
            if not getattr(self, name) > 0:
                raise Unfit(f"{name} must be more than 0, got {getattr(self, name)!r}")
        for name in ("failures_max", "keys_max"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise Unfit(f"{name} must be at least 1, got {getattr(self, name)!r}")
        if (letters := letters_of(self.group)) in self.keys:
            raise Unfit(
                f"group {self.group!r} puts its dead letters into {letters!r}, so it would bury them "
                "for ever: read them with another group"
            )


class Members:
    """The view that the member called `name` has of its group.

    `starts`: gives the first offset of each key that has lost records. `share`: how many keys this member
    should have now. `suspect`: keys that it took from a dead member, with their epochs.
    """

    def __init__(
        self,
        store: Store,
        membership: Membership,
        name: str,
        starts: Callable[[], Awaitable[Mapping[str, int]]],
    ) -> None:
        self.membership = membership
        self.name = name
        self.share: int = 0
        self.suspect: set[tuple[str, int]] = set()
        self._store = store
        self._starts = starts
        self._register = f"group/{path_segment(membership.group)}/members"
        self._keys = [*dict.fromkeys(membership.keys)]
        digest = blake2b(orjson.dumps(sorted(self._keys)), digest_size=8)
        self._wanted = digest.hexdigest()
        self._beat = 0
        self._seen: dict[str, tuple[int, float]] = {}  # the beats of others, and when they were new
        # While this member is alone nobody else changes the register, so it is not read.
        self._alone: Held[Roster] | None = None

    async def beat(self, keys_max: int | None, released: Collection[str]) -> Roster:
        """Show that this member is alive, give back keys, and take what is free of its share.

        `keys_max`: the most keys that it takes while there are others. Raises `LogError`.
        """
        self._beat += 1
        return await self._change(partial(self._with_me, keys_max, released))

    async def leave(self) -> None:
        """Leave at once, so that the others need not wait for the lease. Raises `LogError`."""
        await self._change(self._without_me)

    def next_death(self, began: float) -> float:
        """When the next member is dead if it does not beat any more; `began`: when the last beat here did."""
        deaths = (since + self.membership.lease_s for _, since in self._seen.values())
        return min((death for death in deaths if death > began), default=inf)

    def _with_me(
        self,
        keys_max: int | None,
        released: Collection[str],
        old: Roster,
        asked: float,
        starts: Mapping[str, int],
    ) -> Roster:
        members = self._alive(old.members, asked)
        most = {n: each.keys_max for n, each in members.items() if each.wanted == self._wanted}
        most[self.name] = keys_max if most else self.membership.keys_max
        members[self.name] = Member(self._beat, most[self.name], self._wanted)
        self.share = shares(len(self._keys), most)[self.name]
        keys = {key: Tenure(first=starts.get(key, 0)) for key in self._keys} | {**old.keys}
        own = [key for key in self._keys if keys[key].owner == self.name]
        keys |= {key: keys[key]._replace(owner=None) for key in own if key in released}
        free = [key for key in self._keys if keys[key].owner not in members and key not in released]
        for key in free[: max(0, self.share - len(own))]:
            epoch, owner, first = keys[key]
            keys[key] = Tenure(epoch + 1, self.name, first)
            # Another attempt may have found its owner dead, which has left since.
            (self.suspect.discard if owner is None else self.suspect.add)((key, epoch + 1))
        return Roster(old.version, members, keys)

    def _without_me(self, old: Roster, _asked: float, _starts: Mapping[str, int]) -> Roster:
        members = {name: old.members[name] for name in old.members if name != self.name}
        keys = {
            key: tenure._replace(owner=None) if tenure.owner == self.name else tenure
            for key, tenure in old.keys.items()
        }
        return Roster(old.version, members, keys)

    def _alive(self, members: Mapping[str, Member], asked: float) -> dict[str, Member]:
        """The others whose beat has moved within their lease before the register was `asked` for."""
        now, others = anyio.current_time(), {n: members[n] for n in members if n != self.name}
        for name, member in others.items():
            if name not in self._seen or self._seen[name][0] != member.beat:
                self._seen[name] = member.beat, now
        self._seen = {name: self._seen[name] for name in others}
        lease_s = self.membership.lease_s
        return {n: others[n] for n in others if asked < self._seen[n][1] + lease_s}

    async def _change(self, change: Callable[[Roster, float, Mapping[str, int]], Roster]) -> Roster:
        async def attempt() -> Roster | None:
            held, self._alone, asked = self._alone, None, anyio.current_time()
            if held is None:
                held = await read_once(self._store, self._register, roster_of)
            old = held.value if held else Roster()
            is_new = not old.keys.keys() >= {*self._keys}
            new = change(old, asked, await self._starts() if is_new else {})
            if new == old:
                return old
            new = new._replace(version=old.version + 1)
            text = orjson.dumps(new.value)
            version = await replaced(self._store, self._register, text, held and held.version)
            if version is None:
                return None
            self._alone = Held(new, version) if new.members.keys() == {self.name} else None
            return new

        while (roster := await patiently(attempt)) is None:
            pass  # another member was faster: so something moves
        return roster


def shares(keys: int, most: Mapping[str, int | None]) -> dict[str, int]:
    """How many of `keys` each member takes: as equally as `most`, the bound of each, allows.

    Shares of members without a bound differ by one at most. Their sum is `keys`, unless the bounds forbid it.
    """
    taken = dict.fromkeys(sorted(most), 0)
    left = keys
    while left:
        hungry = [name for name in taken if (bound := most[name]) is None or taken[name] < bound]
        if not hungry:
            break
        for name in hungry[:left]:
            taken[name] += 1
        left -= min(left, len(hungry))
    return taken
