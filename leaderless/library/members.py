"""Who takes part in a group of consumers, so that each member knows its fair share of the keys.

    group/<group>/members/<digest>     {"version": n, "members": {member: [beat, keys_max or null], ...}}

Members that want the same keys share a register; `digest` is of those keys. Each member raises its beat. One
whose beat stood still for `lease_s` of the watcher's own clock counts as dead, and is taken out; if it was
only slow, its next beat brings it back.

This decides how many keys a member takes, never who owns one: that is the lease of the key
(`leaderless.library.ownership`). So a wrong view of the members costs balance, not safety. `version` counts the
changes, so that the register never holds one value twice.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from reprlib import repr as brief
from typing import NamedTuple

import anyio
import orjson

from leaderless.core.coordination import Json, Misfit, count_of
from leaderless.errors import Unfit
from leaderless.library.tail import LATENCY_S
from leaderless.store.calls import patiently, read_once
from leaderless.store.names import segment_of
from leaderless.store.port import Store, replaced


class Member(NamedTuple):
    """What a member tells of itself: its beat, and the most keys that it takes, None: any number."""

    beat: int
    keys_max: int | None = None


class Roster(NamedTuple):
    """What the register of a group's members holds."""

    version: int
    members: dict[str, Member]

    @property
    def value(self) -> dict[str, Json]:
        """As the register holds it."""
        return {"version": self.version, "members": {n: [*m] for n, m in self.members.items()}}


def roster_of(value: Json) -> Roster:
    """What the register of a group's members holds. Raises `Misfit`."""
    match value:
        case {"version": version, "members": dict(members)}:
            found = {name: _member_of(entry) for name, entry in members.items()}
            return Roster(count_of(version), found)
    raise Misfit(f"no list of members: {brief(value)}")


def _member_of(entry: Json) -> Member:
    match entry:
        case [beat, int() | None as keys_max]:
            return Member(count_of(beat), keys_max)
    raise Misfit(f"no member: {brief(entry)}")


@dataclass(frozen=True, slots=True)
class Membership:
    """How a member takes part; see the module. Times are seconds. Raises `Unfit`.

    `lease_s`: how long a dead member keeps its keys. A beat costs a request for each key and two for the
    member, four times as often. `keys_max`: the most keys that this member takes.
    `latency_s`: the longest pause between two looks at keys without news.
    """

    group: str
    keys: tuple[str, ...]
    lease_s: float = 10.0
    failures_max: int = 5
    keys_max: int | None = None
    latency_s: float = LATENCY_S

    def __post_init__(self) -> None:
        if not self.keys:
            raise Unfit("a consumer needs at least one key")
        counts = self.failures_max, 1 if self.keys_max is None else self.keys_max
        if min(self.lease_s, self.latency_s) <= 0 or min(counts) < 1:
            raise Unfit("times, failures_max and keys_max must be positive")
        if self.dead_letters in self.keys:
            raise Unfit(
                f"group {self.group!r} puts its dead letters into {self.dead_letters!r}, so it would bury them "
                "for ever: read them with another group"
            )

    @property
    def dead_letters(self) -> str:
        """The key of the group's dead letters."""
        return f"dead/{self.group}"


class Members:
    """The view that the member called `name` has of its group. `share`: how many keys it should have now."""

    def __init__(self, store: Store, membership: Membership, name: str) -> None:
        keys = sorted(set(membership.keys))
        digest = blake2b(orjson.dumps(keys), digest_size=16).hexdigest()
        self._register = f"group/{segment_of(membership.group)}/members/{digest}"
        self._store = store
        self.membership = membership
        self.name = name
        self._keys = len(keys)
        self._beat = 0
        self._seen: dict[str, tuple[int, float]] = {}  # each member's beat, and when it was new
        self.share: int = min(membership.keys_max or self._keys, self._keys)

    async def beat(self) -> None:
        """Show that this member is alive, and see who else is. Raises `LogError`."""
        self._beat += 1
        members = await self._change(self._with_me)
        most = {name: member.keys_max for name, member in members.items()}
        self.share = shares(self._keys, most)[self.name]

    async def leave(self) -> None:
        """Leave at once, so that the others need not wait for the lease. Raises `LogError`."""
        await self._change(lambda members: {n: members[n] for n in members if n != self.name})

    def _with_me(self, members: dict[str, Member]) -> dict[str, Member]:
        now = anyio.current_time()
        for name, member in members.items():
            if name not in self._seen or self._seen[name][0] != member.beat:
                self._seen[name] = member.beat, now
        self._seen = {name: self._seen[name] for name in members}
        alive = {n: members[n] for n in members if now - self._seen[n][1] < self.membership.lease_s}
        return alive | {self.name: Member(self._beat, self.membership.keys_max)}

    async def _change(
        self, change: Callable[[dict[str, Member]], dict[str, Member]]
    ) -> dict[str, Member]:
        async def attempt() -> dict[str, Member] | None:
            held = await read_once(self._store, self._register, roster_of)
            version, old = held.value if held else Roster(0, {})
            new = change(old)
            if new == old:
                return old
            value = orjson.dumps(Roster(version + 1, new).value)
            was_first = await replaced(self._store, self._register, value, held and held.version)
            return new if was_first else None

        while (members := await patiently(attempt)) is None:
            pass  # another member was faster: so something moves
        return members


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


def membership_of(
    group: str,
    keys: Iterable[str],
    *,
    lease_s: float,
    failures_max: int,
    keys_max: int | None,
    latency_s: float,
) -> Membership:
    """A `Membership`. Raises `Unfit`, also for names that no object can have."""
    keys = tuple(keys)
    try:
        for name in (group, *keys):
            segment_of(name)
    except ValueError as error:
        raise Unfit(str(error)) from None
    return Membership(group, keys, lease_s, failures_max, keys_max, latency_s)
