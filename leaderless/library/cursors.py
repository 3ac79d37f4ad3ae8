"""Committed offsets of groups of consumers: an object for each group and key, which only ever rises.

    group/<group>/cursor/<key>     {"committed": offset or null, "epoch": n, "failures": n}

`committed` is the offset of the last record that was processed. `epoch` is that of the member that owns the key
(`leaderless.library.groups`): a commit of an older one is refused. No value comes twice: `epoch` and
`committed` never fall, and `failures` rises until `committed` does.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

import orjson

from leaderless.errors import Broken, NotOwner, Unfit
from leaderless.store.calls import patiently, side_by_side
from leaderless.store.names import name_of, segment_of
from leaderless.store.port import Found, Store, all_of, replaced

Change = Callable[["Cursor"], "Cursor"]


class Cursor(NamedTuple):
    """Where a group is in a key."""

    committed: int | None = None
    epoch: int = 0
    failures: int = 0

    @property
    def next(self) -> int:
        """The offset to be processed next."""
        return 0 if self.committed is None else self.committed + 1

    def raised_to(self, offset: int) -> "Cursor":
        """The cursor after `offset` was processed, or itself when it is there or further."""
        return self if offset < self.next else self._replace(committed=offset, failures=0)


class Cursors:
    """The cursors of all groups of one log."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def commit(self, group: str, offsets: Mapping[str, int]) -> None:
        """Raise cursors; see `leaderless.library.log.Log.commit`."""
        for offset in offsets.values():
            if type(offset) is not int or offset < 0:
                raise Unfit(f"an offset is a number from 0 up, not {offset!r}")
        await side_by_side(
            [partial(self._raise, group, key, offset) for key, offset in offsets.items()]
        )

    async def _raise(self, group: str, key: str, offset: int) -> Cursor:
        return await self.change(group, key, lambda old: old.raised_to(offset))

    async def committed(self, group: str, keys: Iterable[str]) -> dict[str, int]:
        """The committed offsets that there are."""
        names = list(keys)
        cursors = await side_by_side([partial(self.read, group, key) for key in names])
        found = zip(names, cursors, strict=True)
        return {key: cursor.committed for key, cursor in found if cursor.committed is not None}

    async def read(self, group: str, key: str) -> Cursor:
        """The cursor of a group in a key."""
        found = await patiently(lambda: self._store.read(_name(group, key)))
        return _decoded(found, group, key)

    async def change(self, group: str, key: str, change: Change) -> Cursor:
        """Change a cursor atomically; returns what it is then. `change` may be called more than once."""

        async def attempt() -> Cursor | None:
            found = await self._store.read(name)
            old = _decoded(found, group, key)
            new = change(old)
            if new == old:
                return old
            value = orjson.dumps(new._asdict())
            was_first = await replaced(self._store, name, value, found and found.version)
            return new if was_first else None

        name = _name(group, key)
        while True:
            cursor = await patiently(attempt)
            if cursor is not None:
                return cursor  # or else another process was faster: so something moves

    async def groups(self) -> dict[str, dict[str, Cursor]]:
        """All groups, and their cursors by key."""
        groups: dict[str, dict[str, Cursor]] = {}
        async for listed in all_of(self._store, "group"):
            _, group, kind, key = listed.key.split("/")
            if kind == "cursor":
                names = name_of(group), name_of(key)
                groups.setdefault(names[0], {})[names[1]] = await self.read(*names)
        return groups


def require_owner(cursor: Cursor, epoch: int, key: str) -> None:
    """Raise `NotOwner` if a member of a newer epoch owns the key."""
    if cursor.epoch != epoch:
        raise NotOwner(
            f"another member of the group owns {key!r} now; the record is delivered there"
        )


def _name(group: str, key: str) -> str:
    try:
        return f"group/{segment_of(group)}/cursor/{segment_of(key)}"
    except ValueError as error:
        raise Unfit(str(error)) from None


def _decoded(found: Found | None, group: str, key: str) -> Cursor:
    if found is None:
        return Cursor()
    try:
        return Cursor(**orjson.loads(found.value))
    except (orjson.JSONDecodeError, TypeError):
        raise Broken(
            f"the cursor of group {group!r} in key {key!r} is none: {found.value[:80]!r}"
        ) from None
