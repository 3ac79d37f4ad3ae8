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
from typing import Any

import anyio
import orjson

from leaderless.errors import Unfit
from leaderless.store.calls import patiently, read_once
from leaderless.store.names import segment_of
from leaderless.store.port import Store, replaced

Entries = dict[str, list[Any]]  # member: [beat, keys_max]


@dataclass(frozen=True, slots=True)
class Membership:
    """How a member takes part; see the module. Times are seconds. Raises `Unfit`.

    `lease_s`: how long a dead member keeps its keys. A beat costs a request for each key and two for the
    member, four times as often. `keys_max`: the most keys that this member takes.
    `poll_s`: between two looks at keys without news.
    """

    group: str
    keys: tuple[str, ...]
    lease_s: float = 10.0
    failures_max: int = 5
    keys_max: int | None = None
    poll_s: float = 0.2

    def __post_init__(self) -> None:
        if not self.keys:
            raise Unfit("a consumer needs at least one key")
        if min(self.lease_s, self.poll_s) <= 0 or self.failures_max < 1 or self.keys_max == 0:
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
        self.share = min(membership.keys_max or self._keys, self._keys)

    async def beat(self) -> None:
        """Show that this member is alive, and see who else is. Raises `LogError`."""
        self._beat += 1
        members = await self._change(self._with_me)
        most = {name: bound for name, (_, bound) in members.items()}
        self.share = shares(self._keys, most)[self.name]

    async def leave(self) -> None:
        """Leave at once, so that the others need not wait for the lease. Raises `LogError`."""
        await self._change(lambda members: {n: members[n] for n in members if n != self.name})

    def _with_me(self, members: Entries) -> Entries:
        now = anyio.current_time()
        for name, (beat, _) in members.items():
            if name not in self._seen or self._seen[name][0] != beat:
                self._seen[name] = beat, now
        self._seen = {name: self._seen[name] for name in members}
        alive = {n: members[n] for n in members if now - self._seen[n][1] < self.membership.lease_s}
        return alive | {self.name: [self._beat, self.membership.keys_max]}

    async def _change(self, change: Callable[[Entries], Entries]) -> Entries:
        async def attempt() -> Entries | None:
            held = await read_once(self._store, self._register, members_of)
            version, old = held.value if held else (0, {})
            new: Entries = change(old)
            if new == old:
                return old
            value = orjson.dumps({"version": version + 1, "members": new})
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


def members_of(value: Any) -> tuple[int, Entries]:
    """The version and the members in a register's value. Raises `ValueError` for what is none."""
    match value:
        case {"version": int(version), "members": dict(members)}:
            for entry in members.values():
                match entry:
                    case [int(_), int(_) | None]:
                        continue
                raise ValueError(f"no member: {entry!r}")
            return version, members
    raise ValueError("no list of members")


def membership_of(group: str, keys: Iterable[str], **options: float | None) -> Membership:
    """A `Membership`. Raises `Unfit`, also for names that no object can have."""
    keys = tuple(keys)
    try:
        for name in (group, *keys):
            segment_of(name)
    except ValueError as error:
        raise Unfit(str(error)) from None
    return Membership(group, keys, **options)  # type: ignore[arg-type]
